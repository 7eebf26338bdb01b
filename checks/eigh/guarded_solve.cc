#include "checks/eigh/guarded_solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include "checks/eigh/gates.h"
#include "checks/eigh/random.h"
#include "checks/harness/cold_cache.h"
#include "checks/harness/machine.h"

namespace crucible::eigh {
namespace {

constexpr std::size_t kLargestWorkspace = std::size_t{16} << 30;
constexpr std::int32_t kUnwrittenInfo = 0x5a5a5a5a;
constexpr double kClockTolerance = 0.05;
constexpr std::int64_t kClockResolutionNs = 20'000;

void FillWords(std::span<std::byte> bytes, std::uint32_t word) {
  const std::size_t whole = bytes.size() / sizeof word;
  auto* words = reinterpret_cast<std::uint32_t*>(bytes.data());
  std::fill(words, words + whole, word);
  for (std::size_t i = whole * sizeof word; i < bytes.size(); ++i) bytes[i] = std::byte{0xff};
}

template <class T>
void CopyOut(std::span<const std::byte> from, std::vector<T>* to) {
  to->resize(from.size() / sizeof(T));
  if (from.size() > 0) std::memcpy(to->data(), from.data(), from.size());
}

template <class T>
bool Same(GuardedBuffer& live, const std::vector<T>& copy) {
  return live.size() == 0 || std::memcmp(live.data(), copy.data(), live.size()) == 0;
}

}  // namespace

GuardedSolver::GuardedSolver(LibraryWorker worker, int threads, int pool_allowance,
                             std::uint64_t secret)
    : worker_(std::move(worker)),
      threads_(threads),
      thread_limit_(worker_.idle_threads() + pool_allowance),
      secret_(secret) {
  CPU_ZERO(&cpus_);
  sched_getaffinity(0, sizeof cpus_, &cpus_);
}

Result<std::size_t> GuardedSolver::WorkspaceBytes(std::int64_t batch, std::int64_t n) {
  CRUCIBLE_ASSIGN(const std::size_t bytes, worker_.WorkspaceBytes(batch, n));
  if (bytes <= kLargestWorkspace) return bytes;
  return Fail(ErrorKind::kUsage, "lend a workspace for", fmt::format("batch={} n={}", batch, n),
              fmt::format("the library asks for {} bytes", bytes), "at most 16 GiB are lent");
}

Result<> GuardedSolver::Lend(std::int64_t batch, std::int64_t n, std::size_t workspace_bytes) {
  if (lent_ && lent_->batch == batch && lent_->n == n && lent_->workspace.size() == workspace_bytes)
    return {};
  lent_.reset();
  SharedArena& arena = worker_.arena();
  arena.GiveAllBack();  // the old memory, before the new is taken
  const auto floats = [](std::int64_t count) { return static_cast<std::size_t>(count) * 4; };
  const auto buffer = [&](const char* name, std::size_t bytes, std::uint64_t key) {
    return GuardedBuffer(name, bytes, MixKey(secret_, key),
                         arena.Take(GuardedBuffer::MappedBytes(bytes)));
  };
  try {
    lent_.reset(new Lent{batch, n, buffer("the input", floats(batch * n * n), 1),
                         buffer("the eigenvalues", floats(batch * n), 2),
                         buffer("the eigenvectors", floats(batch * n * n), 3),
                         buffer("info", floats(batch), 4),
                         buffer("the workspace", workspace_bytes, 5), arena.Take(floats(batch * n)),
                         arena.Take(floats(batch * n * n)), arena.Take(floats(batch))});
  } catch (const std::bad_alloc&) {
    return Fail(ErrorKind::kIo, "lend buffers for", fmt::format("batch={} n={}", batch, n),
                "the memory shared with the worker is too small for them");
  }
  secret_ = MixKey(secret_, 6);
  for (GuardedBuffer* lent :
       {&lent_->input, &lent_->eigenvalues, &lent_->eigenvectors, &lent_->info, &lent_->workspace})
    CRUCIBLE_TRY(worker_.Touch(lent->mapping()));
  for (const auto copy : {lent_->values_copy, lent_->vectors_copy, lent_->info_copy})
    CRUCIBLE_TRY(worker_.Touch(copy));
  return {};
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
  CallReport report;
  const auto broken = [&](const Error& error) {
    report.violation = worker_.violation().empty() ? error.text : worker_.violation();
    return report;
  };
  const auto workspace_bytes = WorkspaceBytes(batch, n);
  if (!workspace_bytes.has_value()) return broken(workspace_bytes.error());
  if (const auto lent = Lend(batch, n, *workspace_bytes); !lent) return broken(lent.error());
  const std::int64_t cpu_before_input_ns = worker_.CpuNs();
  PlaceAndPoison(a);
  Lent& lent = *lent_;
  if (cold && worker_.on_cpu())
    for (GuardedBuffer* buffer :
         {&lent.input, &lent.eigenvalues, &lent.eigenvectors, &lent.info, &lent.workspace})
      ColdCache::Flush(buffer->bytes());
  SharedArena& arena = worker_.arena();
  const auto at = [&](GuardedBuffer& buffer) { return arena.OffsetOf(buffer.data()); };
  const auto reply = worker_.Solve(
      {batch, n, threads_, cold ? 1 : 0, at(lent.input), at(lent.eigenvalues),
       at(lent.eigenvectors), at(lent.info), at(lent.workspace),
       static_cast<std::int64_t>(lent.workspace.size()), arena.OffsetOf(lent.values_copy.data()),
       arena.OffsetOf(lent.vectors_copy.data()), arena.OffsetOf(lent.info_copy.data()),
       static_cast<std::int64_t>(secret_ = MixKey(secret_, 7))});
  if (!reply) return broken(reply.error());
  const std::int64_t copy_start = MonotonicNs();
  CopyOut(lent.values_copy, &answer->eigenvalues);
  CopyOut(lent.vectors_copy, &answer->eigenvectors);
  CopyOut(lent.info_copy, &answer->info);

  report.copy_ns = MonotonicNs() - copy_start;
  report.finished_ns = reply->finished_ns;
  report.done_ns = reply->done_ns;
  report.early_cpu_ns = reply->cpu_at_go_ns - cpu_before_input_ns;
  report.elapsed_ns = reply->elapsed_ns;
  report.violation = reply->violation;
  if (report.violation.empty()) report.violation = Inspect(a, reply->code, *answer);
  if (report.violation.empty() && reply->mode_changed)
    report.violation = "left the floating-point mode changed (rounding or flush-to-zero)";
  const std::int64_t counter_ns = reply->counter_ns;
  if (report.violation.empty() &&
      static_cast<double>(counter_ns - report.elapsed_ns) >
          kClockTolerance * static_cast<double>(counter_ns) + kClockResolutionNs)
    report.violation =
        fmt::format("the clock was tampered with: {} ns by the system's, {} by the processor's",
                    report.elapsed_ns, counter_ns);
  if (report.violation.empty() && report.elapsed_ns <= 0)
    report.violation = fmt::format("the call is said to have taken {} ns", report.elapsed_ns);
  return report;
}

std::string GuardedSolver::Inspect(const std::vector<float>& a, int code,
                                   const Answer& answer) const {
  Lent& lent = *lent_;
  if (code != 0) return fmt::format("{} returned {}", worker_.entry(), code);
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
  if (const int threads = SettledThreadCount(worker_.pid(), thread_limit_); threads > thread_limit_)
    return fmt::format("left threads behind: the process has {}, at most {} are allowed", threads,
                       thread_limit_);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  sched_getaffinity(worker_.pid(), sizeof cpus, &cpus);
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
