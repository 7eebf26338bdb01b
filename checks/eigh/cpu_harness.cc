#include "checks/eigh/cpu_harness.h"

#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/json.h"
#include "checks/eigh/case.h"
#include "checks/eigh/gates.h"
#include "checks/eigh/spectra.h"
#include "checks/harness/machine.h"
#include "checks/harness/protocol_server.h"

namespace crucible::eigh {
namespace {

using Json = nlohmann::json;

// JSON has no infinity: an exact-zero gate that failed is reported as this.
constexpr double kInfinite = 1e30;
constexpr int kToolThreads = 16;  // of a profiler, in the process of a CUDA library

Json MarginsJson(const Margins& margins) {
  const auto finite = [](double value) { return std::min(value, kInfinite); };
  return {{"ascending", finite(margins.ascending)},
          {"eigen", finite(margins.eigen)},
          {"orthogonal", finite(margins.orthogonal)},
          {"reconstruction", finite(margins.reconstruction)}};
}

Json WorstJson(const WorstMatrices& worst) {
  return {{"ascending", worst.ascending},
          {"eigen", worst.eigen},
          {"orthogonal", worst.orthogonal},
          {"reconstruction", worst.reconstruction}};
}

Json LimitsJson() {
  return {{"ascending", kAscendingLimit},
          {"eigen", kEigenLimit},
          {"orthogonal", kOrthogonalLimit},
          {"reconstruction", kReconstructionLimit}};
}

std::uint64_t SecretSeed() {
  const std::string hex = RandomHex(8);
  return std::stoull(hex, nullptr, 16);
}

bool AllNaN(const float* values, std::int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isnan(value); });
}

bool AnyUnwritten(const float* values, std::int64_t count) {
  return std::any_of(values, values + count, [](float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits == kUnwrittenBits;
  });
}

}  // namespace

Result<GuardedSolver*> CpuHarness::Solver() {
  if (solver_) return solver_.get();
  // Before the worker is started, so that its threads inherit the CPU set.
  CRUCIBLE_TRY(PinToFirstCpus(options_.worker.threads));
  const int cpus = static_cast<int>(AllowedCpus().size());
  if (options_.worker.cuda && !gpu_) gpu_ = std::make_unique<GpuWatch>();
  CRUCIBLE_ASSIGN(LibraryWorker worker, LibraryWorker::Start(options_.worker));
  // A library may keep one pool: its own threads, or (a peer) one of a library it calls. One for a
  // GPU has none: the driver's were there before it was loaded (a profiler's tools may start more).
  const bool peer = options_.worker.role == LibraryRole::kPeer;
  const int pool = options_.worker.cuda ? (peer ? kToolThreads : 0)
                                        : options_.worker.threads + (peer ? cpus : 0);
  solver_ = std::make_unique<GuardedSolver>(std::move(worker), options_.worker.threads, pool,
                                            SecretSeed());
  return solver_.get();
}

Result<Json> CpuHarness::Hello(const Json& request) {
  CRUCIBLE_TRY(IntegerField(request, "protocol", kHarnessProtocol, kHarnessProtocol));
  CRUCIBLE_ASSIGN(GuardedSolver* const solver, Solver());
  const Awake awake(solver->worker());
  Json configuration = Json::parse(solver->worker().configuration(), nullptr, false);
  if (!configuration.is_object())
    return Fail(ErrorKind::kUsage, "read eigh_cpu_configuration of",
                options_.worker.library.string(), "it is no JSON object",
                "return one, such as {\"compiler\":\"…\"}");
  Json conditions = MachineConditions();
  const Json theirs = Json::parse(solver->worker().conditions(), nullptr, false);
  if (theirs.is_object()) conditions.update(theirs);
  conditions["device"] = conditions.value(gpu_ ? "gpu" : "cpu", "unknown");
  if (gpu_) {
    conditions["driver"] = gpu_->driver();
    conditions["clock"] = "unknown";  // the job's record tells the GPU's
  }
  if (options_.worker.admit_any) conditions["admission"] = "any";
  conditions["threads"] = std::to_string(options_.worker.threads);
  conditions["blas"] = fmt::format("OpenBLAS {}", openblas_get_corename());
  conditions["protocol"] = std::to_string(kHarnessProtocol);
  conditions["margins"] =
      fmt::format("ascending {:g}, eigen {:g}, orthogonal {:g}, reconstruction {:g} (n eps)",
                  kAscendingLimit, kEigenLimit, kOrthogonalLimit, kReconstructionLimit);
  CRUCIBLE_ASSIGN(conditions["harness_sha256"], Sha256HexOfFile("/proc/self/exe"));
  const auto compiler = configuration.find("compiler");
  conditions["compiler"] = compiler != configuration.end() && compiler->is_string()
                               ? compiler->get<std::string>()
                               : "unknown";
  return Json{{"protocol", kHarnessProtocol},
              {"target", options_.target},
              {"conditions", std::move(conditions)},
              {"configuration", std::move(configuration)},
              {"library_sha256", solver->worker().sha256()}};
}

Result<Json> CpuHarness::Check(const Json& request) {
  CRUCIBLE_ASSIGN(const EighCase parameters, ParseCase(request));
  CRUCIBLE_ASSIGN(const std::uint64_t seed, SeedField(request));
  CRUCIBLE_ASSIGN(GuardedSolver* const solver, Solver());
  const Awake awake(solver->worker());
  CRUCIBLE_TRY(solver->WorkspaceBytes(parameters.batch, parameters.n));
  Verdict verdict;
  std::string reason;
  if (FindFamily(parameters.kind)->finite)
    reason = SolveAndJudge(solver, parameters,
                           GenerateBatch(parameters, seed, options_.worker.threads), &verdict);
  else
    reason = JudgePoisoned(solver, parameters, seed, &verdict);
  return Json{{"pass", reason.empty()},
              {"margins", MarginsJson(verdict.margins)},
              {"worst", WorstJson(verdict.worst)},
              {"limits", LimitsJson()},
              {"reason", std::move(reason)}};
}

std::string CpuHarness::SolveAndJudge(GuardedSolver* solver, const EighCase& parameters,
                                      const std::vector<float>& a, Verdict* judged) {
  Answer answer;
  const CallReport report = solver->Solve(parameters.batch, parameters.n, a, false, &answer);
  if (!report.violation.empty()) return report.violation;
  const Verdict verdict =
      JudgeBatch(parameters.batch, parameters.n, a.data(), answer.eigenvalues.data(),
                 answer.eigenvectors.data(), answer.info.data(), options_.worker.threads);
  if (judged != nullptr) *judged = verdict;
  // An answer that is wrong may only be late: give it a moment, for a better reason.
  const std::string late = solver->LateWrite(answer, verdict.pass ? 0 : 200);
  return late.empty() ? verdict.reason : late;
}

std::string CpuHarness::JudgePoisoned(GuardedSolver* solver, const EighCase& parameters,
                                      std::uint64_t seed, Verdict* judged) {
  const std::int64_t batch = parameters.batch, n = parameters.n;
  const std::int64_t poisoned = PoisonedIndex(parameters, seed);
  EighCase clean_parameters = parameters;
  clean_parameters.kind = "dense";
  const std::vector<float> clean = GenerateBatch(clean_parameters, seed, options_.worker.threads);
  const std::vector<float> dirty = GenerateBatch(parameters, seed, options_.worker.threads);
  Answer want, got;
  for (const auto& [input, answer] : {std::pair{&clean, &want}, std::pair{&dirty, &got}}) {
    const CallReport report = solver->Solve(batch, n, *input, false, answer);
    if (!report.violation.empty()) return report.violation;
  }
  const Verdict verdict =
      JudgeBatch(batch, n, dirty.data(), got.eigenvalues.data(), got.eigenvectors.data(),
                 got.info.data(), options_.worker.threads, poisoned);
  *judged = verdict;
  if (!verdict.pass) {
    const std::string late = solver->LateWrite(got, 200);
    return "beside a NaN or infinite matrix: " + (late.empty() ? verdict.reason : late);
  }
  const float* l = got.eigenvalues.data() + poisoned * n;
  const float* q = got.eigenvectors.data() + poisoned * n * n;
  if (got.info[poisoned] == 0)
    return fmt::format("matrix {} holds a NaN or infinity and its info is 0", poisoned);
  if (!AllNaN(l, n) || !AllNaN(q, n * n) || AnyUnwritten(l, n) || AnyUnwritten(q, n * n))
    return fmt::format(
        "matrix {} holds a NaN or infinity and not all of its outputs were "
        "written as NaN",
        poisoned);
  for (std::int64_t i = 0; i < batch; ++i) {
    if (i == poisoned) continue;
    const auto same = [&](const std::vector<float>& a, const std::vector<float>& b,
                          std::int64_t count) {
      return std::memcmp(a.data() + i * count, b.data() + i * count,
                         static_cast<std::size_t>(count) * sizeof(float)) == 0;
    };
    if (!same(want.eigenvalues, got.eigenvalues, n) ||
        !same(want.eigenvectors, got.eigenvectors, n * n))
      return fmt::format("matrix {} changed because matrix {} of its batch holds a NaN or infinity",
                         i, poisoned);
  }
  return "";
}

}  // namespace crucible::eigh
