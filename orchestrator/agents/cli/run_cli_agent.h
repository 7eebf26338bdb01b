// run_cli_agent.h: runs one command-line agent on one mission, from start to a defined end.
//
// The mission is its stdin, a file in memory, so nothing waits for it to be read. What it prints is
// written to the transcript as it comes, one JSON object a line, and read for its use of turns,
// tokens and money. It is ended with its whole process group when a budget is spent, when it is
// silent too long, or when it has said that it is done but does not go. Blocks its thread, which
// the child dies with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/subprocess.h"
#include "orchestrator/agents/cli/cli_profile.h"
#include "orchestrator/agents/llm/settings.h"

namespace crucible {

// Zero: no limit, except for the last two.
struct CliLimits {
  int turns = 0;
  std::int64_t tokens = 0;  // all but those read from the cache, which cost next to nothing
  double usd = 0;
  std::int64_t wall_ms = 0;
  std::int64_t silence_ms = 0;  // no byte on either stream
  std::int64_t output_bytes = 256 << 20;
  std::int64_t goodbye_ms = 10'000;  // to go after its result, or after SIGTERM, before SIGKILL
};

struct CliAgentOutcome {
  enum class Kind {
    kEnded,    // by itself, without an error
    kBudget,   // a limit was reached; `detail` says which
    kHung,     // silent for limits.silence_ms
    kCrashed,  // it said so, exited otherwise than 0, or ended in the middle
    kStopped,  // by the stop token
  };
  Kind kind = Kind::kEnded;
  std::string detail;  // one line: why; the end of its stderr where it crashed
  int turns = 0;
  Usage usage;
  bool usage_known = false;
  double usd = 0;
  std::string last_text;
  ExitStatus status;
};

struct CliAgentSpec {
  CliProfile profile;
  std::string model;                               // empty: the program's own choice
  std::vector<std::string> arguments;              // more of them, before the profile's last
  std::string mission;                             // what it reads on stdin
  std::filesystem::path directory;                 // the worktree
  std::map<std::string, std::string> environment;  // added to this process's, without the keys
  CliLimits limits;
  Prices prices;                             // for a program that tells tokens but no money
  std::filesystem::path transcript;          // appended to; empty: none
  std::int64_t transcript_bytes = 64 << 20;  // then rows are left out, and one says so
  std::size_t line_bytes = 1 << 20;          // of one line; the rest of a longer one is dropped
  bool sandboxed = false;                    // chooses the profile's arguments
  // Wraps the command, as Sandboxed() does. Null: as it is.
  std::function<Result<SubprocessSpec>(SubprocessSpec)> wrap;
  std::function<void(const CliEvent& event)> on_event;
  // Whenever the stream told of more turns, tokens or money: what was used so far.
  std::function<void(const CliAgentOutcome& so_far)> on_spend;
  // Asked every second: a budget that the stream does not show, in words, once it is used up.
  std::function<std::string()> used_up;
  std::stop_token stop;
};

// "ended", "budget", "hung", "crashed", "stopped"
std::string ToString(CliAgentOutcome::Kind kind);

// An error where it could not be started at all, or its transcript could not be written.
Result<CliAgentOutcome> RunCliAgent(const CliAgentSpec& spec, Clock& clock = SystemClock());

}  // namespace crucible
