#include "results_log/conditions.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace crucible {

namespace {
constexpr std::string_view kUnknown = "unknown";
}

bool MattersForRetest(const std::string& field) {
  static constexpr std::array<std::string_view, 10> kFields = {
      "compiler", "driver",         "device",  "clock",   "kernel_generation",
      "protocol", "judge_protocol", "harness", "threads", "margins"};
  return std::find(kFields.begin(), kFields.end(), field) != kFields.end();
}

std::vector<ChangedCondition> ChangedSince(const Conditions& then, const Conditions& now) {
  std::vector<ChangedCondition> changed;
  for (const auto& [field, value] : then) {
    const auto today = now.find(field);
    if (today == now.end() || today->second == value || !MattersForRetest(field)) continue;
    if (value == kUnknown || today->second == kUnknown) continue;
    changed.push_back({field, value, today->second});
  }
  return changed;
}

}  // namespace crucible
