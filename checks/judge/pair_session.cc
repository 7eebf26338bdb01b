#include "checks/judge/pair_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "checks/decide/burn_in.h"

namespace crucible::judge {
namespace {

using decide::Decision;
using decide::Round;

constexpr std::int64_t kTellEveryNs = 1'000'000'000;

double MillisecondsSince(Clock& clock, std::int64_t start_ns) {
  return static_cast<double>(clock.MonotonicNs() - start_ns) / 1e6;
}

}  // namespace

Decider DeciderFor(decide::Comparison& comparison) {
  const decide::Rule& rule = comparison.rule();
  return {.add = [&](const Round& round) { return comparison.Add(round); },
          .finish = [&](const std::string& why) { return comparison.Finish(why); },
          .needs_another = [&](const Round& round) { return comparison.NeedsAnother(round); },
          .rounds_planned = rule.looks.front().units,
          .pairs_needed = rule.evidence.unit == decide::Unit::kPair ? rule.looks.front().units : 0};
}

Decider DeciderFor(decide::Ratchet& ratchet) {
  return {.add = [&](const Round& round) { return ratchet.Add(round); },
          .finish = [&](const std::string& why) { return ratchet.Finish(why); },
          .take_restart = [&] { return ratchet.TakeRestart(); },
          .rounds_planned = ratchet.rule().rerun.front()};
}

PairSession::PairSession(ArmRunner& baseline, ArmRunner& candidate, std::string case_json,
                         Options options, std::mt19937_64& random, Clock& clock)
    : baseline_(baseline),
      candidate_(candidate),
      case_json_(std::move(case_json)),
      options_(std::move(options)),
      random_(random),
      clock_(clock),
      end_ns_(clock.MonotonicNs() + options_.time_ms * 1'000'000) {}

PairSession::~PairSession() {
  baseline_.Stop();
  candidate_.Stop();
}

double PairSession::LeftMs() const {
  return static_cast<double>(end_ns_ - clock_.MonotonicNs()) / 1e6;
}

void PairSession::Tell(const std::string& line) {
  const std::int64_t now = clock_.MonotonicNs();
  if (!options_.progress || now - told_ns_ < kTellEveryNs) return;
  told_ns_ = now;
  options_.progress(fmt::format("{}, {:.0f} s left", line, std::max(0.0, LeftMs() / 1000)));
}

Outcome<Slot> PairSession::RunSlot(ArmRunner& arm, const SlotRequest& request) {
  auto slot = arm.RunSlot(request);
  if (slot) clocks_.Add(*slot);
  return slot;
}

// Fresh processes for both arms, in random order, on the same new inputs, settled.
Outcome<> PairSession::OpenPair() {
  const std::int64_t start = clock_.MonotonicNs();
  const std::uint64_t seed = random_() & kSeedMask;
  std::array<ArmRunner*, 2> order = {&baseline_, &candidate_};
  if (random_() & 1) std::swap(order[0], order[1]);
  for (ArmRunner* arm : order) {
    CRUCIBLE_TRY(arm->Restart());
    CRUCIBLE_TRY(arm->Prepare(case_json_, seed));
  }
  ++pair_;
  start_ms_ = MillisecondsSince(clock_, start);  // without the first, long burn-in
  CRUCIBLE_TRY(Settle());
  if (pair_ > 0) start_ms_ = MillisecondsSince(clock_, start);
  return {};
}

// Alternates the arms, unrecorded, until the device holds still or has had its time.
Outcome<> PairSession::Settle() {
  const BurnInPlan plan =
      PlanBurnIn(options_.device, static_cast<double>(options_.time_ms), pair_ == 0);
  const std::int64_t start = clock_.MonotonicNs();
  decide::BurnIn burn_in(plan.tolerance);
  for (;;) {
    double window = 0;
    for (ArmRunner* arm : {&baseline_, &candidate_}) {
      auto slot = RunSlot(*arm, {.budget_ms = plan.slot_ms, .min_calls = 1, .max_calls = 500});
      if (!slot) return tl::unexpected(slot.error());
      window += 0.5 * std::log(slot->median_us);
      if (arm == &baseline_) baseline_us_ = slot->median_us;
      call_us_ = slot->median_us;
    }
    const double spent_ms = MillisecondsSince(clock_, start);
    const bool settled = burn_in.Add(window);
    if ((settled && spent_ms >= plan.least_ms) || spent_ms >= plan.most_ms) return {};
    Tell("burn-in");
  }
}

Outcome<Round> PairSession::RunRound() {
  const std::int64_t start = clock_.MonotonicNs();
  Round round{.pair = pair_};
  const bool baseline_first = (random_() & 1) != 0;
  // The same for all four slots, another in every round: a kernel cannot count on it.
  SlotRequest request = slot_;
  request.budget_ms *= std::uniform_real_distribution<double>(0.9, 1.1)(random_);
  for (int position = 0; position < 4; ++position) {
    const bool outer = position == 0 || position == 3;
    const bool baseline = outer == baseline_first;
    auto slot = RunSlot(baseline ? baseline_ : candidate_, request);
    if (!slot) return tl::unexpected(slot.error());
    round.throttled = round.throttled || slot->throttled;
    const bool first = position < 2;
    (baseline ? (first ? round.a_first_us : round.a_second_us)
              : (first ? round.b_first_us : round.b_second_us)) = slot->median_us;
  }
  round_ms_ = MillisecondsSince(clock_, start);
  return round;
}

Outcome<Decision> PairSession::Run(Decider decider) {
  for (;;) {
    CRUCIBLE_TRY(OpenPair());
    if (pair_ == 0) {
      decider.learn_time(baseline_us_);
      slot_ = PlanSlot(call_us_, options_.slot_ms, LeftMs(), decider.rounds_planned);
    }
    const double guess_ms = 4 * std::max(slot_.budget_ms, slot_.min_calls * call_us_ / 1000);
    const int most = RoundsPerPair(start_ms_, round_ms_ > 0 ? round_ms_ : guess_ms,
                                   static_cast<double>(options_.time_ms), decider.pairs_needed);
    bool closed = false;
    for (int i = 1; !closed; ++i) {
      const double next_ms = round_ms_ > 0 ? round_ms_ : guess_ms;
      if (LeftMs() < next_ms) return decider.finish("the time for this case ran out");
      auto round = RunRound();
      if (!round) return tl::unexpected(round.error());
      closed = i >= most && !decider.needs_another(*round);
      round->closes_pair = closed;
      if (auto decision = decider.add(*round)) return *decision;
      Tell(fmt::format("{} rounds", ++rounds_done_));
      if (decider.take_restart()) break;
    }
    if (LeftMs() < start_ms_ + round_ms_) return decider.finish("the time for this case ran out");
  }
}

}  // namespace crucible::judge
