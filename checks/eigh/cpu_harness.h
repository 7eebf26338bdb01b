// cpu_harness.h: the five requests of docs/target_protocol.md for a CPU eigh library.
//
// check    one batch from the seed, all five gates (and the rule for NaN/Inf inputs).
// prepare  k inputs, k = clamp(256 MB / bytes of one, 1, 50) as on the GPU, then at most 8 and at
//          most what takes about a second to make and judge on one core (4e9 flops), but 2 where
//          the first bound allows it: a CPU call is long, and every call gets new contents anyway.
//          Each is solved once and passes the full gates, or the request fails.
// slot     until budget_ms of wall time is used (at least min_calls, at most max_calls). Each call:
//          a variant of the next input, fresh addresses, poison, cold memory, the timed call, then
//          the probe on its output; one random matrix of one random call gets the full gates.
//          Reports the median of the calls. Everything but the call itself is outside the times.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/eigh/families.h"
#include "checks/eigh/gates.h"
#include "checks/eigh/gpu_watch.h"
#include "checks/eigh/guarded_solve.h"
#include "checks/harness/handover.h"

namespace crucible::eigh {

struct CpuHarnessOptions {
  WorkerOptions worker;
  std::string target = "eigh_cpu";
};

class CpuHarness {
 public:
  explicit CpuHarness(CpuHarnessOptions options);
  ~CpuHarness();

  Result<nlohmann::json> Hello(const nlohmann::json& request);
  Result<nlohmann::json> Check(const nlohmann::json& request);
  Result<nlohmann::json> Prepare(const nlohmann::json& request);
  Result<nlohmann::json> Slot(const nlohmann::json& request);

 private:
  struct Prepared;
  struct SlotRun;

  // Loads the library at the first request that needs it, so that a missing one is a reply.
  Result<GuardedSolver*> Solver();
  // The verdict on one finite batch: the call's rules, the gates, late writes. `judged` may be
  // null: what the gates found.
  std::string SolveAndJudge(GuardedSolver* solver, const EighCase& parameters,
                            const std::vector<float>& a, Verdict* judged);
  std::string JudgePoisoned(GuardedSolver* solver, const EighCase& parameters, std::uint64_t seed,
                            Verdict* judged);
  std::string TimedCall(SlotRun* slot, bool full_gates);

  CpuHarnessOptions options_;
  int caught_slots_ = 0;  // in a row
  std::unique_ptr<GuardedSolver> solver_;
  std::unique_ptr<Handover> handover_;
  std::unique_ptr<GpuWatch> gpu_;  // of a CUDA library alone
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace crucible::eigh
