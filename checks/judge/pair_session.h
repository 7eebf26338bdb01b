// pair_session.h: runs paired rounds of one case until a decision is made.
//
// Two harness processes, one per arm, both prepared with the same secret inputs; a round is A B B A
// or B A A B by a coin toss; fresh processes take over every few rounds. The decision itself is the
// pure code of checks/decide; this loop only fetches slots and watches the clock. Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "base/clock.h"
#include "checks/decide/ratchet.h"
#include "checks/decide/rule.h"
#include "checks/judge/arm_runner.h"
#include "checks/judge/budget.h"

namespace crucible::judge {

// What decides: a Comparison or a Ratchet behind one face.
struct Decider {
  std::function<std::optional<decide::Decision>(const decide::Round&)> add;
  std::function<decide::Decision(const std::string& why)> finish;
  std::function<bool(const decide::Round&)> needs_another = [](const auto&) { return false; };
  std::function<bool()> take_restart = [] { return false; };
  std::function<void(double baseline_us)> learn_time = [](double) {};
  int rounds_planned = 11;  // the slot's length is chosen so that these fit
  int pairs_needed = 0;     // units are pairs of processes: this many by the first look; 0: rounds
};
Decider DeciderFor(decide::Comparison& comparison);
Decider DeciderFor(decide::Ratchet& ratchet);

class PairSession {
 public:
  struct Options {
    std::string device = "cpu";
    std::int64_t time_ms = 25'000;  // for everything, starts included
    double slot_ms = 100;
    std::function<void(const std::string&)> progress;  // one short line; may be empty
  };

  PairSession(ArmRunner& baseline, ArmRunner& candidate, std::string case_json, Options options,
              std::mt19937_64& random, Clock& clock);
  ~PairSession();  // ends both processes

  Outcome<decide::Decision> Run(Decider decider);

  const ClocksSeen& clocks() const { return clocks_; }

 private:
  Outcome<> OpenPair();
  Outcome<> Settle();
  Outcome<decide::Round> RunRound();
  Outcome<Slot> RunSlot(ArmRunner& arm, const SlotRequest& request);
  double LeftMs() const;
  void Tell(const std::string& line);

  ArmRunner& baseline_;
  ArmRunner& candidate_;
  std::string case_json_;
  Options options_;
  std::mt19937_64& random_;
  Clock& clock_;
  std::int64_t end_ns_ = 0, told_ns_ = 0;
  SlotRequest slot_;
  ClocksSeen clocks_;
  int pair_ = -1, rounds_done_ = 0;
  double start_ms_ = 0, round_ms_ = 0, call_us_ = 0, baseline_us_ = 0;
};

}  // namespace crucible::judge
