#include "checks/eigh/variant.h"

#include <algorithm>
#include <cmath>

namespace crucible::eigh {
namespace {

// Inside it a factor of two neither overflows nor loses bits of entries that matter.
bool MayScale(const std::vector<float>& base) {
  float largest = 0;
  for (const float value : base) largest = std::max(largest, std::abs(value));
  return largest > 1e-15f && largest < 1e15f;
}

}  // namespace

void MakeVariant(std::int64_t batch, std::int64_t n, const std::vector<float>& base, Random random,
                 std::vector<float>* out) {
  static constexpr float kScales[] = {1.0f, 0.5f, 2.0f};
  const float scale = MayScale(base) ? kScales[random.Below(3)] : 1.0f;
  const std::int64_t shift = random.Below(batch);
  std::vector<float> signs(static_cast<std::size_t>(n));
  out->resize(base.size());
  for (std::int64_t b = 0; b < batch; ++b) {
    const float* from = base.data() + ((b + shift) % batch) * n * n;
    float* to = out->data() + b * n * n;
    for (float& sign : signs) sign = static_cast<float>(random.Sign());
    for (std::int64_t i = 0; i < n; ++i) {
      const float row = scale * signs[i];
      for (std::int64_t j = 0; j < n; ++j) to[i * n + j] = row * signs[j] * from[i * n + j];
    }
  }
}

}  // namespace crucible::eigh
