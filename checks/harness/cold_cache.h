// cold_cache.h: makes memory cold before a timed call, outside the timing.
//
// The buffers a call touches are flushed line by line (microseconds), which is exact and coherent
// over all cores. What the library keeps for itself is pushed out by sweeping a buffer of twice the
// last-level cache: tens of milliseconds, so once a slot and before calls that are long enough to
// carry it; between short calls a sweep of a few megabytes clears the private caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace crucible {

class ColdCache {
 public:
  explicit ColdCache(std::int64_t last_level_bytes);

  // True where lines can be flushed one by one (x86-64); elsewhere call Sweep before every call.
  static bool CanFlush();
  static void Flush(std::span<const std::byte> bytes);
  // Reads and writes twice the last-level cache.
  void Sweep();
  // The same over the size of a core's private caches.
  void SweepPrivate();
  // How many times as much memory Sweep touches as SweepPrivate.
  std::int64_t SweepBytesRatio() const;

 private:
  void SweepBytes(std::size_t bytes);

  std::size_t bytes_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace crucible
