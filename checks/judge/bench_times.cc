// The steps of a bench that ask no claim: the ratchet, absolute times, and the report's end.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/json.h"
#include "checks/judge/bench.h"

namespace crucible::judge {
namespace {

using decide::Verdict;

// Goes up with every change of the rules of decision (docs/measurement.md), so that what an older
// one left undecided or missed is up for a retest.
constexpr char kJudgeProtocol[] = "2";
constexpr int kMeasureRounds = 9;
constexpr int kRoundsPerProcess = 3;

struct Timed {
  std::vector<double> slots_us;
  std::string error;
};

// Median and the order-statistic interval: with nine slots the 2nd and the 8th cover 96 %.
void Summarise(std::vector<double> slots, double& median, double& low, double& high) {
  if (slots.empty()) return;
  std::sort(slots.begin(), slots.end());
  median = decide::Median(slots);
  const std::size_t trim = slots.size() >= kMeasureRounds ? 1 : 0;
  low = slots[trim];
  high = slots[slots.size() - 1 - trim];
}

// Which of several cases speaks for all: a crash or a rejection, then what is undecided, then what
// a person must look at.
int Weight(Verdict verdict) {
  if (verdict == Verdict::kAccepted) return 0;
  if (verdict == Verdict::kFlagged) return 1;
  return verdict == Verdict::kInconclusive || verdict == Verdict::kRefused ? 2 : 3;
}

}  // namespace

bool Bench::Ratchet(const std::vector<TargetCase>& cases) {
  const TargetLimits& limits = request_->target.limits;
  const bool same = SameLibrary();
  if (failed()) return false;
  int worst = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CaseRow row{.name = cases[i].name, .role = "ratchet"};
    if (same) {
      row.verdict = Verdict::kAccepted;
      row.reason = "both arms are the same library, byte for byte";
      report_.cases.push_back(row);
      continue;
    }
    decide::Ratchet ratchet({.limit = limits.ratchet});
    Decider decider = DeciderFor(ratchet);
    decider.learn_time = [&](double baseline_us) {
      row.limit =
          decide::RatchetLimit(baseline_us, limits.ratchet, limits.ratchet_short, limits.short_us);
      ratchet.SetLimit(row.limit);
    };
    auto decision =
        RunPair(cases[i], std::move(decider), limits.ratchet_ms, cases.size() - i, "ratchet");
    if (decision) {
      row.verdict = decision->verdict;
      row.reason = decision->reason;
      row.decision = *decision;
      TooGood(*decision, &row.verdict, &row.reason);
    } else {
      Blame(decision.error());
      if (failed()) return false;
      row.verdict = decision.error().verdict;
      row.reason = decision.error().text;
    }
    Tell(fmt::format("ratchet {}: {}, {}", row.name, decide::ToText(row.verdict), row.reason));
    if (Weight(row.verdict) > worst) {
      worst = Weight(row.verdict);
      report_.verdict = row.verdict;
      report_.reason = fmt::format("ratchet {}: {}", row.name, row.reason);
    }
    report_.cases.push_back(std::move(row));
  }
  if (worst > 0) return false;
  report_.verdict = Verdict::kAccepted;
  if (report_.reason.empty()) report_.reason = "no case is slower than its limit";
  return true;
}

bool Bench::Measure(const std::vector<TargetCase>& cases, bool with_peers) {
  const TargetLimits& limits = request_->target.limits;
  std::vector<ArmRunner> arms;
  arms.push_back(std::move(*candidate_));
  if (with_peers) {
    for (const TargetPeer& peer : request_->target.peers) {
      auto arm = MakeArm("peer " + peer.name, Side::kPeer, request_->candidate, peer.command);
      if (!arm) {
        report_.error = arm.error().text;
        return false;
      }
      arms.push_back(std::move(*arm));
    }
  }
  report_.verdict = Verdict::kAccepted;
  report_.reason = fmt::format("{} cases measured", cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::int64_t end_ns =
        clock_->MonotonicNs() + TimeFor(limits.claim_ms, cases.size() - i) * 1'000'000;
    const std::string text = CaseJson(cases[i].name, cases[i].params);
    std::vector<Timed> timed(arms.size());
    std::vector<SlotRequest> plans(arms.size());
    for (int round = 0; round < kMeasureRounds && clock_->MonotonicNs() < end_ns; ++round) {
      const std::uint64_t seed = random_() & kSeedMask;
      Tell(fmt::format("{}: round {}/{}", cases[i].name, round + 1, kMeasureRounds));
      for (std::size_t k = 0; k < arms.size(); ++k) {
        if (!timed[k].error.empty()) continue;
        const auto step = [&]() -> Outcome<> {
          if (round % kRoundsPerProcess == 0) {
            CRUCIBLE_TRY(arms[k].Restart());
            CRUCIBLE_TRY(arms[k].Prepare(text, seed));
            auto warm = arms[k].RunSlot({.budget_ms = 20, .min_calls = 1, .max_calls = 50});
            if (!warm) return tl::unexpected(warm.error());
            plans[k] = PlanSlot(
                warm->median_us, request_->slot_ms.value_or(static_cast<double>(limits.slot_ms)),
                static_cast<double>(limits.claim_ms) / static_cast<double>(arms.size()), 4);
          }
          auto slot = arms[k].RunSlot(plans[k]);
          if (!slot) return tl::unexpected(slot.error());
          clocks_.Add(*slot);
          timed[k].slots_us.push_back(slot->median_us);
          return {};
        };
        if (auto done = step(); !done) {
          timed[k].error = done.error().text;
          if (k == 0) Blame(done.error());
        }
      }
      if (failed() || !timed[0].error.empty()) break;
    }
    for (ArmRunner& arm : arms) arm.Stop();
    if (failed()) break;
    CaseRow row{.name = cases[i].name,
                .role = "measure",
                .verdict = timed[0].error.empty() ? Verdict::kAccepted : report_.verdict,
                .reason = timed[0].error,
                .rounds = static_cast<int>(timed[0].slots_us.size())};
    if (row.rounds == 0 && timed[0].error.empty()) {
      row.verdict = report_.verdict = Verdict::kInconclusive;
      row.reason = report_.reason = "the job's time ran out before this case";
    }
    Summarise(timed[0].slots_us, row.median_us, row.low_us, row.high_us);
    report_.cases.push_back(std::move(row));
    for (std::size_t k = 1; k < arms.size(); ++k) {
      PeerRow peer{.peer = request_->target.peers[k - 1].name,
                   .name = cases[i].name,
                   .error = timed[k].error};
      Summarise(timed[k].slots_us, peer.median_us, peer.low_us, peer.high_us);
      if (peer.error.empty() && timed[k].slots_us.empty()) peer.error = "not measured: no time";
      report_.peers.push_back(std::move(peer));
    }
  }
  candidate_.emplace(std::move(arms.front()));
  return report_.verdict == Verdict::kAccepted && !failed();
}

Report Bench::Finish() {
  const nlohmann::json own = nlohmann::json::parse(candidate_->conditions(), nullptr, false);
  if (own.is_object())
    for (const auto& [key, value] : own.items()) report_.conditions[key] = value.dump();
  if (!clocks_.stamps.empty())
    report_.conditions["clock"] =
        nlohmann::json(clocks_.stamps.size() == 1 ? *clocks_.stamps.begin() : "mixed").dump();
  if (clocks_.low_mhz >= 0)
    report_.conditions["sm_mhz"] =
        nlohmann::json(fmt::format("{} to {}", clocks_.low_mhz, clocks_.high_mhz)).dump();
  report_.conditions["judge_protocol"] = kJudgeProtocol;
  report_.configuration = candidate_->configuration();
  report_.candidate_library = candidate_->library_sha256();
  if (baseline_) {
    report_.baseline_library = baseline_->library_sha256();
    report_.baseline_conditions = baseline_->conditions();
  }
  report_.wall_ms = (clock_->MonotonicNs() - start_ns_) / 1'000'000;
  return std::move(report_);
}

}  // namespace crucible::judge
