// cpu_slot.cc: the timed half of the harness (prepare, slot); see cpu_harness.h for the rules.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "base/json.h"
#include "checks/eigh/case.h"
#include "checks/eigh/cpu_harness.h"
#include "checks/eigh/gates.h"
#include "checks/eigh/parallel.h"
#include "checks/eigh/probe.h"
#include "checks/eigh/slot_times.h"
#include "checks/eigh/variant.h"
#include "checks/harness/machine.h"
#include "checks/harness/protocol_server.h"

namespace crucible::eigh {
namespace {

using Json = nlohmann::json;

constexpr double kInputBytesTarget = 256e6;
constexpr std::int64_t kMostInputs = 8;
constexpr double kPrepareFlops = 1.5e9;
constexpr double kFlopsPerEntryTimesN = 12;  // making, solving and judging: about 12 n^3 a matrix
// A full sweep of the last-level cache goes before a call (or a slot) this many times as long.
constexpr std::int64_t kSweepWorth = 5;
// Hand-overs of nothing are measured after the calls, as many as there were of them up to this.
constexpr std::size_t kMostHandovers = 15;
// A slot is throttled when somebody else had more than this share of the CPUs. The counter's tick
// is 10 ms, so in a short slot one or two of them say nothing about a share.
constexpr double kStealLimit = 0.05;
constexpr std::int64_t kFewestStealTicks = 3;
// A call is undisturbed that did not wait for a CPU for more than this share of its time.
constexpr double kWaitedShare = 0.01;
// A slot whose times are in doubt decides nothing; so many in a row that no other process can have
// caused are the library's doing.
constexpr int kCaughtSlots = 3;

std::int64_t InputCount(const EighCase& c) {
  const double entries = static_cast<double>(c.batch * c.n * c.n);
  const auto by_bytes =
      std::clamp<std::int64_t>(std::llround(kInputBytesTarget / (4 * entries)), 1, 50);
  const double flops = kFlopsPerEntryTimesN * entries * static_cast<double>(c.n);
  const auto by_time =
      static_cast<std::int64_t>(std::clamp(kPrepareFlops / flops, 2.0, double{kMostInputs}));
  return std::min(by_bytes, by_time);
}

// Over the calls after which the GPU still had something to do, if there were any.
SmClock MedianClock(const std::vector<SmClock>& clocks) {
  std::vector<std::int64_t> working, idle;
  for (const SmClock& clock : clocks)
    if (clock.mhz >= 0) (clock.idle ? idle : working).push_back(clock.mhz);
  if (working.empty() && idle.empty()) return {};
  const bool only_idle = working.empty();
  return {static_cast<int>(Median(only_idle ? idle : working)), only_idle};
}

}  // namespace

struct CpuHarness::Prepared {
  EighCase parameters;
  std::vector<std::vector<float>> inputs;
  Random random{0};  // of the variants, probes and choices: never repeats within a process
  std::uint64_t calls = 0;
  std::int64_t last_call_ns = 0;
  std::vector<float> variant;
  Answer answer;
};

// One slot while it runs.
struct CpuHarness::SlotRun {
  std::int64_t budget_ns = 0;
  SlotTimes times;
  std::vector<SmClock> clocks;     // a GPU's, right after each call
  std::int64_t background_ns = 0;  // CPU time the worker spent between calls
};

CpuHarness::CpuHarness(CpuHarnessOptions options) : options_(std::move(options)) {}

CpuHarness::~CpuHarness() = default;

Result<Json> CpuHarness::Prepare(const Json& request) {
  CRUCIBLE_ASSIGN(const EighCase parameters, ParseCase(request));
  CRUCIBLE_ASSIGN(const std::uint64_t seed, SeedField(request));
  CRUCIBLE_ASSIGN(GuardedSolver* const solver, Solver());
  const Awake awake(solver->worker());
  prepared_.reset();
  if (!FindFamily(parameters.kind)->finite)
    return Fail(ErrorKind::kUsage, "prepare", parameters.name,
                "inputs with NaN or infinity are checked, not timed", "choose another kind");
  if (!handover_) handover_ = std::make_unique<Handover>();
  auto prepared = std::make_unique<Prepared>();
  prepared->parameters = parameters;
  // The request's seed makes the inputs; what happens to them in a call is this process's secret.
  prepared->random = Random(std::stoull(RandomHex(8), nullptr, 16));
  const std::int64_t count = InputCount(parameters);
  for (std::int64_t i = 0; i < count; ++i) {
    prepared->inputs.push_back(GenerateBatch(
        parameters, MixKey(seed, static_cast<std::uint64_t>(i)), options_.worker.threads));
    if (const std::string reason =
            SolveAndJudge(solver, parameters, prepared->inputs.back(), nullptr);
        !reason.empty())
      return Fail(ErrorKind::kInternal, "prepare", parameters.name,
                  fmt::format("input {} of {}: {}", i, count, reason));
  }
  (void)solver->worker().AwaitQuiet();  // a thread that does not sleep shows in the first slot
  const std::size_t bytes = prepared->inputs.front().size() * sizeof(float);
  prepared_ = std::move(prepared);
  return Json{{"inputs", count}, {"bytes", bytes}};
}

// One cold call on a new variant; returns why it must not count, or "".
std::string CpuHarness::TimedCall(SlotRun* slot, bool full_gates) {
  SlotTimes& times = slot->times;
  Prepared& p = *prepared_;
  const std::int64_t batch = p.parameters.batch, n = p.parameters.n;
  Random random = p.random.Stream(++p.calls);
  const auto which = static_cast<std::size_t>(p.calls % p.inputs.size());
  MakeVariant(batch, n, p.inputs[which], random.Stream(1), &p.variant);

  // A full sweep where the call is long enough to carry it. A slot too short for one goes without:
  // its buffers are cold all the same.
  LibraryWorker& worker = solver_->worker();
  const std::int64_t carries_ns =
      times.call_ns.empty() ? std::max(p.last_call_ns, slot->budget_ns) : p.last_call_ns;
  auto sweep_ns = worker.Sweep(false);
  if (sweep_ns && carries_ns > kSweepWorth * *sweep_ns) sweep_ns = worker.Sweep(true);
  if (!sweep_ns)
    return worker.violation().empty() ? "the worker does not answer" : worker.violation();

  const ProcessTimes before = ReadProcessTimes(worker.pid());
  const CallReport report = solver_->Solve(batch, n, p.variant, /*cold=*/true, &p.answer);
  const std::int64_t waited_ns = (ReadProcessTimes(worker.pid()) - before).waited_ns;
  const std::int64_t cpu_before = worker.CpuNs();
  times.call_ns.push_back(report.elapsed_ns);
  if (gpu_) slot->clocks.push_back(gpu_->Clock());
  if (static_cast<double>(waited_ns) <= kWaitedShare * static_cast<double>(report.elapsed_ns))
    times.undisturbed_ns.push_back(report.elapsed_ns);
  times.finished_ns.push_back(report.finished_ns);
  times.done_ns.push_back(report.done_ns);
  times.copy_ns.push_back(report.copy_ns);
  times.early_cpu_ns.push_back(report.early_cpu_ns);
  times.hindered_ns.push_back(0);
  p.last_call_ns = report.elapsed_ns;
  if (!report.violation.empty()) return report.violation;

  std::string reason = ProbeBatch(batch, n, p.variant.data(), p.answer.eigenvalues.data(),
                                  p.answer.eigenvectors.data(), p.answer.info.data(),
                                  random.Stream(2), options_.worker.threads);
  if (reason.empty() && full_gates) {
    const std::int64_t i = random.Stream(3).Below(batch);
    const SingleThreadedBlas single;
    const Verdict verdict =
        JudgeMatrix({n, p.variant.data() + i * n * n, p.answer.eigenvalues.data() + i * n,
                     p.answer.eigenvectors.data() + i * n * n});
    if (!verdict.pass) reason = fmt::format("matrix {} of {}: {}", i, batch, verdict.reason);
  }
  slot->background_ns += worker.CpuNs() - cpu_before;
  if (std::string late = solver_->LateWrite(p.answer, reason.empty() ? 0 : 200); !late.empty())
    return late;
  if (reason.empty()) reason = worker.AwaitQuiet();  // before the next input is there
  times.hindered_ns.back() = (ReadProcessTimes(worker.pid()) - before).HinderedNs();
  return reason;
}

Result<Json> CpuHarness::Slot(const Json& request) {
  CRUCIBLE_ASSIGN(const double budget_ms, NumberField(request, "budget_ms", 0, 600'000));
  CRUCIBLE_ASSIGN(const std::int64_t min_calls, IntegerField(request, "min_calls", 1, 1'000'000));
  CRUCIBLE_ASSIGN(const std::int64_t max_calls,
                  IntegerField(request, "max_calls", min_calls, 1'000'000));
  if (!prepared_)
    return Fail(ErrorKind::kUsage, "time a slot", "", "no case is prepared",
                "send \"prepare\" first");
  const std::int64_t start = MonotonicNs();
  const std::int64_t deadline = start + static_cast<std::int64_t>(budget_ms * 1e6);
  const Disturbance before = ReadDisturbance();
  const bool held_before = gpu_ && gpu_->Throttled();
  SlotRun slot{.budget_ns = deadline - start};
  SlotTimes& times = slot.times;
  times.on_device = gpu_ != nullptr;
  Awake awake(solver_->worker());
  std::string reason = awake.reason();
  // A call of the first min_calls, so that it is certain to take place.
  const std::int64_t judged = prepared_->random.Stream(0).Stream(prepared_->calls).Below(min_calls);
  for (std::int64_t call = 0; call < max_calls && reason.empty(); ++call) {
    if (call >= min_calls && MonotonicNs() >= deadline) break;
    reason = TimedCall(&slot, call == judged);
    if (!reason.empty()) reason = fmt::format("call {}: {}", call, reason);
  }
  const std::int64_t wall_ns = MonotonicNs() - start;
  const Disturbance during = ReadDisturbance() - before;
  awake.End();
  while (times.handover_ns.size() < std::min(kMostHandovers, times.call_ns.size()))
    times.handover_ns.push_back(handover_->MeasureNs());
  const std::int64_t sum_ns = std::accumulate(times.call_ns.begin(), times.call_ns.end(), 0ll);
  if (reason.empty() && sum_ns > wall_ns)
    reason = fmt::format("the calls add up to {} ns in a slot of {} ns", sum_ns, wall_ns);
  if (times.call_ns.empty())  // the library was stopped before its first call
    return Json{{"calls", 0}, {"median_us", 0.0}, {"verified", false}, {"reason", reason}};
  const Excess missing = MissingTime(times), late = LateAnswer(times), early = EarlyWork(times);
  const Doubt doubt = DoubtIn(times, solver_->worker().cpu_time_counts());
  caught_slots_ = doubt.caught ? caught_slots_ + 1 : 0;
  if (reason.empty() && caught_slots_ >= kCaughtSlots) reason = doubt.words;
  const double capacity_ns =
      static_cast<double>(wall_ns) * static_cast<double>(AllowedCpus().size());
  const double steal = static_cast<double>(during.steal_ticks) * 1e7 / capacity_ns;
  const bool held = (steal > kStealLimit && during.steal_ticks >= kFewestStealTicks) ||
                    during.thermal_throttles > 0;
  const SmClock clock = MedianClock(slot.clocks);
  Json answer{
      {"calls", times.call_ns.size()},
      {"undisturbed", times.undisturbed_ns.size()},
      {"median_us", SlotMedianNs(times) / 1e3},
      {"mean_us", static_cast<double>(sum_ns) / 1e3 / times.call_ns.size()},
      {"min_us", *std::min_element(times.call_ns.begin(), times.call_ns.end()) / 1e3},
      {"wall_us", static_cast<double>(wall_ns) / 1e3},
      {"sum_us", static_cast<double>(sum_ns) / 1e3},
      {"missing_us", missing.us},
      {"missing_limit_us", missing.limit_us},
      {"late_us", late.us},
      {"late_limit_us", late.limit_us},
      {"early_us", early.us},
      {"early_limit_us", early.limit_us},
      {"background_us", static_cast<double>(slot.background_ns) / 1e3},
      {"steal", steal},
      {"preemptions", during.preemptions},
      {"verified", reason.empty()},
      {"throttled", !doubt.words.empty() || (gpu_ ? held_before || gpu_->Throttled() : held)},
      {"clock", gpu_ ? GpuWatch::Stamp(clock) : CpuClockPolicy()},
      {"doubt", doubt.words},
      {"reason", reason}};
  if (clock.mhz >= 0) answer["sm_mhz"] = clock.mhz;
  return answer;
}

}  // namespace crucible::eigh
