#include "checks/decide/verdict.h"

#include <array>
#include <utility>

namespace crucible::decide {
namespace {

constexpr std::array<std::pair<Verdict, std::string_view>, 8> kTexts = {{
    {Verdict::kAccepted, "accepted"},
    {Verdict::kRejected, "rejected"},
    {Verdict::kNoDifference, "no_difference"},
    {Verdict::kInconclusive, "inconclusive"},
    {Verdict::kRefused, "refused"},
    {Verdict::kCrashed, "crashed"},
    {Verdict::kCheckFailed, "check_failed"},
    {Verdict::kFlagged, "flagged"},
}};

}  // namespace

std::string_view ToText(Verdict verdict) {
  for (const auto& [value, text] : kTexts)
    if (value == verdict) return text;
  return "";
}

std::optional<Verdict> VerdictFromText(std::string_view text) {
  for (const auto& [value, known] : kTexts)
    if (known == text) return value;
  return std::nullopt;
}

}  // namespace crucible::decide
