// verdict.h: how a measurement or a check can end. "inconclusive" and "refused" are not "rejected":
// they say that nothing was learned about the candidate, so the question goes back to the queue.
#pragma once

#include <optional>
#include <string_view>

namespace crucible::decide {

enum class Verdict {
  kAccepted,      // faster (claim, screen, confirm), or not slower than the limit (ratchet)
  kRejected,      // slower, or over the ratchet's limit
  kNoDifference,  // a gain worth having is excluded
  kInconclusive,  // too noisy for the rounds or the time there were: measure again
  kRefused,       // the device was not fit to measure on: measure again
  kCrashed,       // the candidate crashed, hung or broke the protocol
  kCheckFailed,   // the candidate's output is wrong
  kFlagged,       // too good: a person looks first
};

std::string_view ToText(Verdict verdict);  // "accepted", "no_difference", …
std::optional<Verdict> VerdictFromText(std::string_view text);

}  // namespace crucible::decide
