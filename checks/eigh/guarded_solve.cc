#include "checks/eigh/guarded_solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <thread>

#include "checks/eigh/gates.h"
#include "checks/eigh/random.h"
#include "checks/harness/machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace crucible::eigh {
namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{16} << 30;
constexpr std::int32_t kUnwrittenInfo = 0x5a5a5a5a;
// A joined thread stays visible for a moment; one that works on stays longer.
constexpr std::int64_t kThreadGraceNs = 100'000'000;
constexpr double kClockTolerance = 0.05;
constexpr std::int64_t kClockResolutionNs = 20'000;

void FillWords(std::span<std::byte> bytes, std::uint32_t word) {
  const std::size_t whole = bytes.size() / sizeof word;
  auto* words = reinterpret_cast<std::uint32_t*>(bytes.data());
  std::fill(words, words + whole, word);
  for (std::size_t i = whole * sizeof word; i < bytes.size(); ++i) bytes[i] = std::byte{0xff};
}

template <class T>
void CopyOut(GuardedBuffer& from, std::vector<T>* to) {
  to->resize(from.size() / sizeof(T));
  if (from.size() > 0) std::memcpy(to->data(), from.data(), from.size());
}

template <class T>
bool Same(GuardedBuffer& live, const std::vector<T>& copy) {
  return live.size() == 0 || std::memcmp(live.data(), copy.data(), live.size()) == 0;
}

// Rounding, flush-to-zero and exception masks, without the sticky flags.
struct FloatMode {
  int rounding = std::fegetround();
#if defined(__x86_64__)
  unsigned control = _mm_getcsr() & 0xffc0u;
  void Restore() const { _mm_setcsr(control), std::fesetround(rounding); }
#else
  void Restore() const { std::fesetround(rounding); }
#endif
  bool operator==(const FloatMode&) const = default;
};

// The process's threads once those that are ending have gone.
int SettledThreadCount(int limit) {
  int count = ThreadCount();
  for (const std::int64_t start = MonotonicNs();
       count > limit && MonotonicNs() - start < kThreadGraceNs; count = ThreadCount())
    std::this_thread::yield();
  return count;
}

}  // namespace

GuardedSolver::GuardedSolver(CpuLibrary library, int threads, int pool_allowance,
                             std::uint64_t secret)
    : library_(std::move(library)),
      threads_(threads),
      thread_limit_(ThreadCount() + pool_allowance),
      secret_(secret) {
  CPU_ZERO(&cpus_);
  sched_getaffinity(0, sizeof cpus_, &cpus_);
}

Result<std::size_t> GuardedSolver::WorkspaceBytes(std::int64_t batch, std::int64_t n) const {
  const std::size_t bytes = library_.workspace_bytes(batch, n, threads_);
  if (bytes <= kLargestWorkspace) return bytes;
  return Fail(ErrorKind::kUsage, "lend a workspace for", fmt::format("batch={} n={}", batch, n),
              fmt::format("the library asks for {} bytes", bytes), "at most 16 GiB are lent");
}

void GuardedSolver::Lend(std::int64_t batch, std::int64_t n, std::size_t workspace_bytes) {
  if (lent_ && lent_->batch == batch && lent_->n == n && lent_->workspace.size() == workspace_bytes)
    return;
  lent_.reset();  // give the old memory back before the new is taken
  const auto floats = [](std::int64_t count) { return static_cast<std::size_t>(count) * 4; };
  lent_.reset(new Lent{batch,
                       n,
                       {"the input", floats(batch * n * n), MixKey(secret_, 1)},
                       {"the eigenvalues", floats(batch * n), MixKey(secret_, 2)},
                       {"the eigenvectors", floats(batch * n * n), MixKey(secret_, 3)},
                       {"info", floats(batch), MixKey(secret_, 4)},
                       {"the workspace", workspace_bytes, MixKey(secret_, 5)}});
  secret_ = MixKey(secret_, 6);
}

void GuardedSolver::PlaceAndPoison(const std::vector<float>& a) {
  Lent& lent = *lent_;
  for (GuardedBuffer* buffer :
       {&lent.input, &lent.eigenvalues, &lent.eigenvectors, &lent.info, &lent.workspace})
    buffer->Place();
  std::memcpy(lent.input.data(), a.data(), lent.input.size());
  FillWords(lent.eigenvalues.bytes(), kUnwrittenBits);
  FillWords(lent.eigenvectors.bytes(), kUnwrittenBits);
  FillWords(lent.info.bytes(), static_cast<std::uint32_t>(kUnwrittenInfo));
  FillWords(lent.workspace.bytes(), kUnwrittenBits);
}

CallReport GuardedSolver::Solve(std::int64_t batch, std::int64_t n, const std::vector<float>& a,
                                bool cold, Answer* answer) {
  CRUCIBLE_CHECK(static_cast<std::int64_t>(a.size()) == batch * n * n, "the input has its shape");
  CallReport report;
  const Result<std::size_t> workspace_bytes = WorkspaceBytes(batch, n);
  if (!workspace_bytes.has_value()) {
    report.violation = workspace_bytes.error().text;
    return report;
  }
  Lend(batch, n, *workspace_bytes);
  PlaceAndPoison(a);
  Lent& lent = *lent_;
  if (cold)
    for (GuardedBuffer* buffer :
         {&lent.input, &lent.eigenvalues, &lent.eigenvectors, &lent.info, &lent.workspace})
      ColdCache::Flush(buffer->bytes());
  const FloatMode mode;

  // The counter is read inside the clock's interval: however the thread is preempted, it can only
  // measure less, so a clock that shows less than the counter was tampered with.
  const std::int64_t start = MonotonicNs();
  const std::int64_t counter_start = CounterNs();
  const int code = library_.solve(batch, n, reinterpret_cast<const float*>(lent.input.data()),
                                  reinterpret_cast<float*>(lent.eigenvalues.data()),
                                  reinterpret_cast<float*>(lent.eigenvectors.data()),
                                  reinterpret_cast<std::int32_t*>(lent.info.data()),
                                  lent.workspace.size() > 0 ? lent.workspace.data() : nullptr,
                                  lent.workspace.size(), threads_);
  const std::int64_t counter_end = CounterNs();
  const std::int64_t end = MonotonicNs();
  // First of all: what a thread still running writes later must not count.
  CopyOut(lent.eigenvalues, &answer->eigenvalues);
  CopyOut(lent.eigenvectors, &answer->eigenvectors);
  CopyOut(lent.info, &answer->info);

  report.elapsed_ns = end - start;
  const FloatMode mode_after;
  mode.Restore();
  report.violation = Inspect(a, code, *answer);
  if (report.violation.empty() && !(mode == mode_after))
    report.violation = "left the floating-point mode changed (rounding or flush-to-zero)";
  const std::int64_t counter_ns = counter_end - counter_start;
  if (report.violation.empty() &&
      static_cast<double>(counter_ns - report.elapsed_ns) >
          kClockTolerance * static_cast<double>(counter_ns) + kClockResolutionNs)
    report.violation =
        fmt::format("the clock was tampered with: {} ns by the system's, {} by the processor's",
                    report.elapsed_ns, counter_ns);
  return report;
}

std::string GuardedSolver::Inspect(const std::vector<float>& a, int code,
                                   const Answer& answer) const {
  Lent& lent = *lent_;
  if (code != 0) return fmt::format("eigh_cpu_solve returned {}", code);
  for (GuardedBuffer* buffer :
       {&lent.input, &lent.eigenvalues, &lent.eigenvectors, &lent.info, &lent.workspace})
    if (std::string damage = buffer->Damage(); !damage.empty()) return damage;
  if (!Same(lent.input, a)) return "changed its input";
  const auto unwritten = std::count(answer.info.begin(), answer.info.end(), kUnwrittenInfo);
  if (unwritten > 0)
    return fmt::format("info: {} of {} entries were never written{}", unwritten, answer.info.size(),
                       LateWrite(answer, 200).empty()
                           ? ""
                           : " when the call returned, but later: it works on after returning");
  if (const int threads = SettledThreadCount(thread_limit_); threads > thread_limit_)
    return fmt::format("left threads behind: the process has {}, at most {} are allowed", threads,
                       thread_limit_);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(0, sizeof cpus, &cpus);
  if (!CPU_EQUAL(&cpus, &cpus_)) return "changed the caller's CPU set";
  return "";
}

std::string GuardedSolver::LateWrite(const Answer& answer, int patience_ms) const {
  Lent& lent = *lent_;
  const std::int64_t start = MonotonicNs();
  do {
    if (!Same(lent.eigenvalues, answer.eigenvalues) ||
        !Same(lent.eigenvectors, answer.eigenvectors) || !Same(lent.info, answer.info))
      return "outputs were written after the call had returned: it works on after returning";
    std::this_thread::yield();
  } while (MonotonicNs() - start < std::int64_t{patience_ms} * 1'000'000);
  return "";
}

}  // namespace crucible::eigh
