#include "checks/decide/burn_in.h"

#include <algorithm>

namespace crucible::decide {
namespace {

constexpr std::size_t kWindows = 3;

}  // namespace

bool BurnIn::Add(double log_time) {
  windows_.push_back(log_time);
  if (windows_.size() > kWindows) windows_.pop_front();
  if (windows_.size() < kWindows) return false;
  const auto [least, most] = std::minmax_element(windows_.begin(), windows_.end());
  return *most - *least <= tolerance_;
}

}  // namespace crucible::decide
