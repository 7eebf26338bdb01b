#include "results_log/case_text.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/counted.h"

namespace crucible {

std::string CaseText(const CaseResult& result, bool whole) {
  std::string text = result.name;
  const bool both = result.before_us && result.after_us;
  if (both)
    text += fmt::format(" {} -> {}", FormatMicroseconds(*result.before_us),
                        FormatMicroseconds(*result.after_us));
  else if (result.after_us)
    text += " " + FormatMicroseconds(*result.after_us);
  if (!result.ratio) return text;
  const bool opposite = both && (*result.after_us - *result.before_us) * (*result.ratio - 1) < 0;
  text += opposite ? " by the medians, but in pairs" : "";
  text += fmt::format(" ({:+.1f} %", (*result.ratio - 1) * 100);
  if (whole && result.ratio_low && result.ratio_high)
    text += fmt::format(", {:+.1f} to {:+.1f} %", (*result.ratio_low - 1) * 100,
                        (*result.ratio_high - 1) * 100);
  if (whole && result.rounds) text += ", " + Counted(*result.rounds, "round");
  return text + ")";
}

std::string MarginText(const Margin& margin) {
  std::string text = fmt::format("{:.4g}", margin.value);
  if (!margin.known()) return text;
  text += " (" + margin.check;
  if (margin.matrix >= 0) text += fmt::format(", matrix {}", margin.matrix);
  return text + fmt::format(", seed {})", margin.seed);
}

}  // namespace crucible
