// spend.h: what a mission's conversation has used, and which of its budgets that exceeds.
//
// Pure but for WriteSpend. Money and tokens are counted as they are billed, also for replies that
// were of no use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "orchestrator/agents/llm/message.h"

namespace crucible {

// 0 is no limit, save for format_errors and deadline_ms, which a loop always has.
struct LoopBudgets {
  std::int64_t deadline_ms = 0;  // Unix ms: the mission's wall time
  int turns = 200;               // replies of the model
  std::int64_t tokens = 0;       // input, output and cache writes; reads of a cache are not counted
  double usd = 0;
  double gpu_seconds = 0;  // of the device's queue
  int format_errors = 3;   // one after the other
  int idle_turns = 25;     // one after the other, without an edit, a comparison or a log entry
};

struct LoopSpend {
  std::string model;
  int turns = 0, restarts = 0, retries = 0, format_errors = 0, idle_turns = 0;
  Usage usage;
  bool usage_known = true;  // false: the server did not say, the tokens are estimated
  double usd = 0, gpu_seconds = 0;
  std::int64_t wall_ms = 0;
  int format_errors_in_a_row = 0, idle_turns_in_a_row = 0;
};

enum class LoopEnd {
  kReported,  // the agent called report; result.json says the rest
  kWall,
  kTurns,
  kTokens,
  kUsd,
  kGpu,            // a budget
  kFormat,         // too many malformed calls, or replies without one, in a row
  kIdle,           // no progress
  kRefused,        // the model refuses
  kProvider,       // no answer worth having
  kConfiguration,  // the key, the model's name or the request is wrong
  kInterrupted,
};

std::string_view ToText(LoopEnd end);

std::int64_t Tokens(const Usage& usage);

// The first budget that is used up.
std::optional<LoopEnd> UsedUp(const LoopBudgets& budgets, const LoopSpend& spend,
                              std::int64_t now_ms);

// "turn 80 of 100; 3 min left": once 80 % of any budget is used, else "".
std::string NearlyUsedUp(const LoopBudgets& budgets, const LoopSpend& spend, std::int64_t start_ms,
                         std::int64_t now_ms);

// One JSON object, for the spend file and the mission's row.
std::string SpendText(const LoopSpend& spend);

}  // namespace crucible
