// tool_check.h: a part of the full check that a separate tool makes: a program under a memory
// checker.
//
// The command is run once on the candidate's build, to its end; it passes when it ends with 0. A
// machine without the tool runs nothing and the row says so: the check is then as good as the other
// rows make it, and nobody takes it for more. What goes wrong under the tool is the candidate's
// fault, a command that runs into its limit included.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "checks/judge/verdict_report.h"
#include "checks/target.h"

namespace crucible::judge {

CheckRow RunToolCheck(const ToolCheck& check, const Arm& arm, std::int64_t limit_ms);

// The lines of a tool's output that say what it found: those of its errors, else the last ones.
std::string Findings(const std::string& output);

}  // namespace crucible::judge
