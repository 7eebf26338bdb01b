// random.h: a counter-based generator, so that a matrix depends on (seed, index) alone.
//
// The i-th word of a stream is a hash of (key, i) (the SplitMix64 finaliser over a Weyl sequence):
// no state is shared between matrices, threads may fill them in any order, and the same seed gives
// the same bits everywhere. Not cryptographic: the seed is what is kept from a candidate.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace crucible::eigh {

inline std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// One key out of several words; the order counts.
inline std::uint64_t MixKey(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  return Mix(Mix(Mix(a + 0x9e3779b97f4a7c15ull) ^ (b + 0x7f4a7c159e3779b9ull)) ^
             (c + 0x1ce4e5b9bf58476dull));
}

class Random {
 public:
  explicit Random(std::uint64_t key) : key_(key) {}
  // A stream of its own for one purpose ("the spectrum", "the rotation").
  Random Stream(std::uint64_t purpose) const { return Random(MixKey(key_, purpose)); }

  std::uint64_t Next() { return Mix(key_ + ++counter_ * 0x9e3779b97f4a7c15ull); }
  // In (0, 1): never 0, so that its logarithm is finite.
  double Uniform() { return (static_cast<double>(Next() >> 11) + 0.5) * 0x1p-53; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // In [0, bound); the bias is below bound / 2^64.
  std::int64_t Below(std::int64_t bound) {
    return static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(Next()) * static_cast<std::uint64_t>(bound)) >> 64);
  }
  double Sign() { return (Next() >> 63) != 0 ? -1.0 : 1.0; }

  // N(0,1) by Box and Muller, two at a time.
  void FillNormal(double* out, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 2) {
      const double radius = std::sqrt(-2 * std::log(Uniform()));
      const double angle = 2 * std::numbers::pi * Uniform();
      out[i] = radius * std::cos(angle);
      if (i + 1 < count) out[i + 1] = radius * std::sin(angle);
    }
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace crucible::eigh
