#include "checks/harness/cold_cache.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace crucible {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kUnknownCache = 32u << 20;
constexpr std::size_t kPrivateSweep = 4u << 20;
constexpr std::size_t kLargestSweep = 512u << 20;

}  // namespace

ColdCache::ColdCache(std::int64_t last_level_bytes)
    : bytes_(std::min(kLargestSweep,
                      std::max(kPrivateSweep, 2 * (last_level_bytes > 0
                                                       ? static_cast<std::size_t>(last_level_bytes)
                                                       : kUnknownCache)))),
      memory_(new std::byte[bytes_]()) {}

#if defined(__x86_64__)
bool ColdCache::CanFlush() { return true; }
void ColdCache::Flush(std::span<const std::byte> bytes) {
  // clflush is in every x86-64; its weakly ordered successor would need a run-time test.
  for (std::size_t i = 0; i < bytes.size(); i += kLine) _mm_clflush(bytes.data() + i);
  if (!bytes.empty()) _mm_clflush(bytes.data() + bytes.size() - 1);
  _mm_mfence();
}
#else
bool ColdCache::CanFlush() { return false; }
void ColdCache::Flush(std::span<const std::byte>) {}
#endif

void ColdCache::SweepBytes(std::size_t bytes) {
  volatile std::byte* memory = memory_.get();
  for (std::size_t i = 0; i < bytes; i += kLine)
    memory[i] = static_cast<std::byte>(static_cast<unsigned char>(memory[i]) + 1);
}

std::int64_t ColdCache::SweepBytesRatio() const {
  return static_cast<std::int64_t>(bytes_ / std::min(bytes_, kPrivateSweep));
}

void ColdCache::Sweep() { SweepBytes(bytes_); }
void ColdCache::SweepPrivate() { SweepBytes(std::min(bytes_, kPrivateSweep)); }

}  // namespace crucible
