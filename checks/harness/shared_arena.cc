#include "checks/harness/shared_arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "checks/harness/machine.h"

namespace crucible {
namespace {

constexpr std::size_t kPage = 4096;
// What a worker may so spend before a timed call is small beside what it could compute in it.
constexpr std::int64_t kAwakeNs = 20'000;
constexpr int kPausesBetweenLooks = 16;
constexpr int kWakeEveryMs = 1000;

std::size_t WholePages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

constexpr std::size_t kControlBytes = (sizeof(WorkerControl) + kPage - 1) / kPage * kPage;

Result<std::byte*> Map(int fd, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED)
    return Fail(ErrorKind::kIo, "map the memory shared with the worker",
                fmt::format("{} bytes", bytes), std::strerror(errno));
  return static_cast<std::byte*>(memory);
}

}  // namespace

SharedArena::SharedArena(UniqueFd memory, std::byte* base, std::size_t bytes)
    : memory_(std::move(memory)), base_(base), bytes_(bytes), used_(kControlBytes) {}

SharedArena::SharedArena(SharedArena&& other) noexcept
    : memory_(std::move(other.memory_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(other.bytes_),
      used_(other.used_) {}

SharedArena::~SharedArena() {
  if (base_ != nullptr) ::munmap(base_, bytes_);
}

Result<SharedArena> SharedArena::Make(std::size_t bytes) {
  bytes = WholePages(bytes) + kControlBytes;
  UniqueFd memory(static_cast<int>(::memfd_create("crucible-worker", MFD_CLOEXEC)));
  if (!memory.valid() || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    return Fail(ErrorKind::kIo, "make the memory shared with the worker",
                fmt::format("{} bytes", bytes), std::strerror(errno));
  CRUCIBLE_ASSIGN(std::byte* const base, Map(memory.get(), bytes));
  new (base) WorkerControl;
  return SharedArena(std::move(memory), base, bytes);
}

Result<SharedArena> SharedArena::Attach(UniqueFd memory) {
  struct stat status {};
  if (::fstat(memory.get(), &status) != 0 ||
      status.st_size < static_cast<off_t>(sizeof(WorkerControl)))
    return Fail(ErrorKind::kUsage, "map the memory shared with the harness", "",
                "the descriptor is none of a harness's", "this program is started by a harness");
  const auto bytes = static_cast<std::size_t>(status.st_size);
  CRUCIBLE_ASSIGN(std::byte* const base, Map(memory.get(), bytes));
  memory.Reset();
  return SharedArena(std::move(memory), base, bytes);
}

std::span<std::byte> SharedArena::Take(std::size_t bytes) {
  const std::size_t whole = WholePages(bytes);
  if (whole < bytes || whole > bytes_ - used_) return {};
  const std::span<std::byte> taken(base_ + used_, bytes);
  used_ += whole;
  return taken;
}

void SharedArena::GiveAllBack() {
  if (used_ > kControlBytes)
    (void)::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(kControlBytes), static_cast<off_t>(used_ - kControlBytes));
  used_ = kControlBytes;
}

void FutexWait(std::atomic<std::uint32_t>& word, std::uint32_t value, int limit_ms) {
  const timespec limit{limit_ms / 1000, (limit_ms % 1000) * 1'000'000L};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void FutexWake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void AwaitValue(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  const std::int64_t start = MonotonicNs();
  for (std::uint32_t seen; (seen = word.load(std::memory_order_acquire)) != value;) {
    for (int i = 0; i < kPausesBetweenLooks && word.load(std::memory_order_acquire) != value; ++i)
      CpuPause();
    if (MonotonicNs() - start > kAwakeNs) FutexWait(word, seen, kWakeEveryMs);
  }
}

}  // namespace crucible
