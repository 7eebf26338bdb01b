#include "checks/harness/guarded_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <new>

namespace crucible {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPlaces = 1024;  // different addresses, one line apart

std::size_t RoundUp(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

std::uint64_t Hash(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::string name, std::size_t bytes, std::uint64_t secret)
    : name_(std::move(name)), bytes_(bytes), mapped_bytes_(MappedBytes(bytes)), secret_(secret) {
  void* memory = ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(memory);
  current_ = mapping_ + kCanaryBytes;
  Place();
}

GuardedBuffer::GuardedBuffer(std::string name, std::size_t bytes, std::uint64_t secret,
                             std::span<std::byte> memory)
    : name_(std::move(name)),
      bytes_(bytes),
      mapped_bytes_(MappedBytes(bytes)),
      mapping_(memory.data()),
      owned_(false),
      secret_(secret) {
  if (memory.size() < mapped_bytes_) throw std::bad_alloc();
  current_ = mapping_ + kCanaryBytes;
  Place();
}

GuardedBuffer::~GuardedBuffer() {
  if (owned_) ::munmap(mapping_, mapped_bytes_);
}

std::size_t GuardedBuffer::MappedBytes(std::size_t bytes) {
  return RoundUp(bytes) + 2 * kCanaryBytes + kPlaces * kLine;
}

std::uint64_t GuardedBuffer::NextWord() { return Hash(secret_ + ++counter_ * 0x9e3779b97f4a7c15); }

std::byte GuardedBuffer::CanaryByte(std::size_t position) const {
  // Seven words of the secret, repeated: cheap, and no constant pattern to imitate.
  return static_cast<std::byte>(Hash(secret_ ^ (position % 7)) >> 24);
}

void GuardedBuffer::Place() {
  current_ = mapping_ + kCanaryBytes + (NextWord() % kPlaces) * kLine;
  std::byte pattern[7];
  for (std::size_t i = 0; i < 7; ++i) pattern[i] = CanaryByte(i);
  for (std::size_t i = 0; i < kCanaryBytes; ++i) {
    current_[-1 - static_cast<std::ptrdiff_t>(i)] = pattern[i % 7];
    current_[bytes_ + i] = pattern[i % 7];
  }
}

std::string GuardedBuffer::Damage() const {
  std::byte pattern[7];
  for (std::size_t i = 0; i < 7; ++i) pattern[i] = CanaryByte(i);
  for (std::size_t i = 0; i < kCanaryBytes; ++i) {
    if (current_[bytes_ + i] != pattern[i % 7])
      return fmt::format("wrote past the end of {} ({} bytes): byte {} behind it changed", name_,
                         bytes_, i);
    if (current_[-1 - static_cast<std::ptrdiff_t>(i)] != pattern[i % 7])
      return fmt::format("wrote before the start of {}: byte {} ahead of it changed", name_, i + 1);
  }
  return "";
}

}  // namespace crucible
