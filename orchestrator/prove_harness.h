// prove_harness.h: runs a target's cheating kernels before anything is judged by its harness.
//
// A harness that lets a cheat through does not open for business: a campaign proves it first. A
// proof holds for the same judge, harness, cheats, target file, compiler and kernel of the
// operating system, and is remembered in the log under a hash of all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/baseline.h"

namespace crucible {

struct ExploitRow {
  std::string name, expects, seen;  // seen: the whole rejection
  bool caught = false;
};

struct HarnessProof {
  bool holds = false;
  std::string reason;
  std::vector<ExploitRow> rows;  // in the target's order
};

// Builds main at `commit` and runs the suite, whatever is remembered. An Error says that it could
// not be run; a cheat that got through is a proof that does not hold.
Result<HarnessProof> RunExploitSuite(const BaselineContext& context, const std::string& commit);

// Nothing when the proof holds, now or by memory; kUnavailable with the first cheat that got
// through. A target without [[exploit]] tables is taken as it is, and `tell` says so.
Result<> ProveHarness(const BaselineContext& context, Store* store, const std::string& commit,
                      const std::function<void(const std::string&)>& tell);

}  // namespace crucible
