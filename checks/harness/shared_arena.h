// shared_arena.h: memory that a harness and its worker process both see, and the control block
// through which one gives the other work.
//
// The harness makes the arena and hands the descriptor to the worker, which closes it once mapped.
// Space is handed out from the front and given back as a whole. Sparse: only touched pages cost.
// The worker runs code that is not trusted, so nothing in here is ever believed: the harness keeps
// its own copy of all that it judges by. Not thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"
#include "base/result.h"

namespace crucible {

inline constexpr std::size_t kWorkerArguments = 16;

struct WorkerControl {
  // Sequence numbers; each side waits until the other's has caught up.
  std::atomic<std::uint32_t> request{0};  // harness: there is work
  std::atomic<std::uint32_t> ready{0};    // worker: everything is set up, the timed part comes next
  std::atomic<std::uint32_t> go{0};       // harness: begin
  std::atomic<std::uint32_t> finished{0};  // worker: the timed part is over
  std::atomic<std::uint32_t> done{0};      // worker: the answer is there
  std::uint32_t operation = 0;
  std::int64_t arguments[kWorkerArguments] = {};
  std::int64_t results[kWorkerArguments] = {};
  char text[65536] = {};    // in: a path; out: an answer in words, or why there is none
  char verdict[1024] = {};  // why the worker was stopped, in words
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

class SharedArena {
 public:
  // `bytes` of address space for buffers, behind the control block.
  static Result<SharedArena> Make(std::size_t bytes);
  // The worker's end; takes the size from the descriptor and closes it.
  static Result<SharedArena> Attach(UniqueFd memory);
  SharedArena(SharedArena&& other) noexcept;
  SharedArena& operator=(SharedArena&&) = delete;
  ~SharedArena();

  WorkerControl& control() { return *reinterpret_cast<WorkerControl*>(base_); }
  int descriptor() const { return memory_.get(); }

  // Zeroed pages; empty when the arena is full.
  std::span<std::byte> Take(std::size_t bytes);
  void GiveAllBack();

  std::int64_t OffsetOf(const std::byte* at) const { return at - base_; }
  std::byte* At(std::int64_t offset) { return base_ + offset; }

 private:
  SharedArena(UniqueFd memory, std::byte* base, std::size_t bytes);

  UniqueFd memory_;
  std::byte* base_;
  std::size_t bytes_, used_;
};

// Waits while `word` is `value`, at most `limit_ms`; wakes whoever waits on it in any process.
void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t value, int limit_ms);
void FutexWake(std::atomic<std::uint32_t>& word);
// Waits until `word` is `value`: awake for a moment, because the other side is about to set it,
// then asleep, because on a busy machine it may be long. Whoever sets it wakes.
void AwaitValue(std::atomic<std::uint32_t>& word, std::uint32_t value);

}  // namespace crucible
