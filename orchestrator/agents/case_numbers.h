// case_numbers.h: a comparison's numbers in a line, for an entry's summary. Pure.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "orchestrator/judge.h"

namespace crucible {

// "n32 662 us -> 601 us (-9.2 %, -9.8 % .. -8.5 %); …": of each case that has a ratio.
inline std::string CaseNumbers(const JudgeReport& report) {
  const auto percent = [](double ratio) { return fmt::format("{:+.1f} %", (ratio - 1) * 100); };
  std::vector<std::string> parts;
  for (const CaseResult& result : report.cases) {
    if (!result.ratio) continue;
    parts.push_back(fmt::format(
        "{} {} -> {} ({}, {} .. {})", result.name, FormatMicroseconds(result.before_us.value_or(0)),
        FormatMicroseconds(result.after_us.value_or(0)), percent(*result.ratio),
        percent(result.ratio_low.value_or(*result.ratio)),
        percent(result.ratio_high.value_or(*result.ratio))));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace crucible
