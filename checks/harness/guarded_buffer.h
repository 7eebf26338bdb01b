// guarded_buffer.h: a buffer lent to code that is not trusted: at another address every time, with
// canaries on both sides.
//
// One mapping is kept and its pages stay touched, so placing the buffer anew costs no page fault in
// the timed call. The offset inside it (a multiple of 64 bytes) is drawn for each call: a library
// cannot know a buffer by its address, and no arm is favoured by where its memory happens to lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace crucible {

class GuardedBuffer {
 public:
  static constexpr std::size_t kCanaryBytes = 4096;  // watched on either side

  // `secret` seeds the canary bytes and the offsets. `name` is what error texts call it.
  GuardedBuffer(std::string name, std::size_t bytes, std::uint64_t secret);
  // In memory of the caller's (MappedBytes(bytes) of it), which must outlive the buffer.
  GuardedBuffer(std::string name, std::size_t bytes, std::uint64_t secret,
                std::span<std::byte> memory);
  static std::size_t MappedBytes(std::size_t bytes);
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();

  // Moves the buffer to a new address and lays the canaries around it.
  void Place();
  // Empty while both canaries are whole; else how far outside the first changed byte is.
  std::string Damage() const;

  std::byte* data() { return current_; }
  std::span<std::byte> bytes() { return {current_, bytes_}; }
  std::span<std::byte> mapping() { return {mapping_, mapped_bytes_}; }
  std::size_t size() const { return bytes_; }

 private:
  std::uint64_t NextWord();
  std::byte CanaryByte(std::size_t position) const;

  std::string name_;
  std::size_t bytes_;
  std::size_t mapped_bytes_;
  std::byte* mapping_;
  bool owned_ = true;
  std::byte* current_;
  std::uint64_t secret_, counter_ = 0;
};

}  // namespace crucible
