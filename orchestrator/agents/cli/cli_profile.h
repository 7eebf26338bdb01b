// cli_profile.h: how each known command-line agent is started. Plain data.
//
// Every one gets its mission on stdin, so that no argument list holds it, and works in its current
// folder.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/agents/cli/cli_stream.h"

namespace crucible {

struct CliProfile {
  std::string name;
  std::vector<std::string> argv;
  CliFormat format = CliFormat::kPlain;
  std::vector<std::string> model_flag;  // stands before the model's name: {"--model"}
  // How it may act without asking a person. In a sandbox it may do anything; outside one it is held
  // to what its own rules allow, which may be less than a mission needs.
  std::vector<std::string> when_sandboxed, when_unsandboxed;
  std::vector<std::string> key_variables;  // stay in its environment; every other key is removed
  bool says_when_done = false;  // its stream ends in a result; one without it has crashed
};

// "claude", "codex", "opencode", "gemini"; kNotFound names them all.
Result<CliProfile> FindCliProfile(const std::string& name);

// Any command that reads a mission on stdin and commits in its current folder.
CliProfile CommandProfile(std::vector<std::string> argv);

}  // namespace crucible
