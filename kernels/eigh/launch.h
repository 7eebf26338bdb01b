// launch.h: grid sizes and workspace carving, shared by the host side of every stage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace crucible::eigh {

// Blocks for `batch` matrices in a kernel that strides over the batch.
inline unsigned grid_for(int64_t batch, int64_t blocks_max) {
  return static_cast<unsigned>(std::clamp<int64_t>(batch, 1, blocks_max));
}

constexpr int64_t kGridYMax = 65535;  // blocks in the second dimension of a grid

constexpr size_t kAlign = 256;
constexpr size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Hands out aligned pieces of one buffer. With a null base it only measures.
class Carver {
 public:
  explicit Carver(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(size_t count) {
    T* piece = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += aligned(count * sizeof(T));
    return piece;
  }
  size_t used() const { return used_; }

 private:
  char* base_;
  size_t used_ = 0;
};

}  // namespace crucible::eigh
