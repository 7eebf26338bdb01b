#include "orchestrator/agents/loop/spend.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/json.h"

namespace crucible {
namespace {

constexpr double kNearly = 0.8;

bool Nearly(double used, double most) { return most > 0 && used >= kNearly * most; }

}  // namespace

std::string_view ToText(LoopEnd end) {
  switch (end) {
    case LoopEnd::kReported:
      return "reported";
    case LoopEnd::kWall:
      return "wall time used up";
    case LoopEnd::kTurns:
      return "turns used up";
    case LoopEnd::kTokens:
      return "tokens used up";
    case LoopEnd::kUsd:
      return "money used up";
    case LoopEnd::kGpu:
      return "device time used up";
    case LoopEnd::kFormat:
      return "too many malformed replies in a row";
    case LoopEnd::kIdle:
      return "no progress";
    case LoopEnd::kRefused:
      return "the model refused";
    case LoopEnd::kProvider:
      return "no answer from the model";
    case LoopEnd::kConfiguration:
      return "the provider is not set up";
    case LoopEnd::kInterrupted:
      return "interrupted";
  }
  return "";
}

std::int64_t Tokens(const Usage& usage) { return usage.input + usage.output + usage.cache_write; }

std::optional<LoopEnd> UsedUp(const LoopBudgets& budgets, const LoopSpend& spend,
                              std::int64_t now_ms) {
  if (budgets.deadline_ms > 0 && now_ms >= budgets.deadline_ms) return LoopEnd::kWall;
  if (budgets.usd > 0 && spend.usd >= budgets.usd) return LoopEnd::kUsd;
  if (budgets.tokens > 0 && Tokens(spend.usage) >= budgets.tokens) return LoopEnd::kTokens;
  if (budgets.gpu_seconds > 0 && spend.gpu_seconds >= budgets.gpu_seconds) return LoopEnd::kGpu;
  if (budgets.format_errors > 0 && spend.format_errors_in_a_row >= budgets.format_errors)
    return LoopEnd::kFormat;
  if (budgets.idle_turns > 0 && spend.idle_turns_in_a_row >= budgets.idle_turns)
    return LoopEnd::kIdle;
  if (budgets.turns > 0 && spend.turns >= budgets.turns) return LoopEnd::kTurns;
  return std::nullopt;
}

std::string NearlyUsedUp(const LoopBudgets& budgets, const LoopSpend& spend, std::int64_t start_ms,
                         std::int64_t now_ms) {
  std::vector<std::string> parts;
  if (Nearly(spend.turns, budgets.turns))
    parts.push_back(fmt::format("turn {} of {}", spend.turns, budgets.turns));
  if (budgets.deadline_ms > start_ms && Nearly(static_cast<double>(now_ms - start_ms),
                                               static_cast<double>(budgets.deadline_ms - start_ms)))
    parts.push_back(FormatDuration(std::max<std::int64_t>(0, budgets.deadline_ms - now_ms)) +
                    " left");
  if (Nearly(static_cast<double>(Tokens(spend.usage)), static_cast<double>(budgets.tokens)))
    parts.push_back(fmt::format("{} of {} tokens", Tokens(spend.usage), budgets.tokens));
  if (Nearly(spend.usd, budgets.usd))
    parts.push_back(fmt::format("{:.2f} of {:.2f} USD", spend.usd, budgets.usd));
  if (Nearly(spend.gpu_seconds, budgets.gpu_seconds))
    parts.push_back(
        fmt::format("{:.0f} of {:.0f} s of device time", spend.gpu_seconds, budgets.gpu_seconds));
  if (Nearly(spend.idle_turns_in_a_row, budgets.idle_turns))
    parts.push_back(fmt::format("{} of {} turns without an edit, a comparison or a log entry",
                                spend.idle_turns_in_a_row, budgets.idle_turns));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string SpendText(const LoopSpend& spend) {
  const nlohmann::json object = {{"model", spend.model},
                                 {"turns", spend.turns},
                                 {"restarts", spend.restarts},
                                 {"retries", spend.retries},
                                 {"format_errors", spend.format_errors},
                                 {"idle_turns", spend.idle_turns},
                                 {"tokens_input", spend.usage.input},
                                 {"tokens_output", spend.usage.output},
                                 {"tokens_cache_read", spend.usage.cache_read},
                                 {"tokens_cache_write", spend.usage.cache_write},
                                 {"usage_known", spend.usage_known},
                                 {"usd", spend.usd},
                                 {"gpu_seconds", spend.gpu_seconds},
                                 {"wall_ms", spend.wall_ms}};
  return JsonText(object);
}

}  // namespace crucible
