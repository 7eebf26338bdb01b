// device_model.h: a made-up device whose noise is known, to try decision rules on.
//
// Every model is an effect that was seen on a real device (docs/measurement.md). Times are around
// 100 us; the candidate's true gain is given, so a rule's errors can be counted. Deterministic for
// a seed; not thread-safe.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace crucible::decide {

// Shares of the time, on a log scale, unless said otherwise.
struct NoiseModel {
  std::string name;
  double slot_sigma = 0.006;     // independent, per slot: also the deviation of a round's d
  double excursion_share = 0;    // of slots that run on boosted clocks …
  double excursion_gain = 0.10;  // … and are this much faster
  double cold_gain = 0;          // the first slots after idle are this much faster …
  double cold_slots = 4;         // … fading with this many slots
  double trend = 0;              // the device slows by this much, per slot, for ever
  double wander_sigma = 0;       // random walk of the device, per slot
  double swing = 0;              // slow wave of the device …
  double swing_slots = 60;       // … and its length
  double step_share = 0;         // of slots in the slower of two modes …
  double step = 0.03;            // … which is this much slower
  double placement_sigma = 0;    // of a process: where it landed in memory
  double unlucky_share = 0;      // of processes that landed badly …
  double unlucky = 0.02;         // … and are this much slower
};

// The models of the decision table, from the plain one to all effects at once.
std::vector<NoiseModel> StandardModels();

class SimulatedDevice {
 public:
  SimulatedDevice(NoiseModel model, double gain, std::uint64_t seed);

  double Slot(bool candidate);      // microseconds
  double WarmSlot(bool candidate);  // unrecorded: counted apart
  void FreshProcesses();            // new placement for both; the device cools down meanwhile
  bool Toss() { return (random_() & 1) != 0; }
  int slots() const { return slots_; }
  int warm_slots() const { return warm_slots_; }
  int pairs() const { return pairs_; }

 private:
  double Normal() { return normal_(random_); }
  bool Chance(double share) { return share > 0 && uniform_(random_) < share; }

  NoiseModel model_;
  double log_gain_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double placement_[2] = {0, 0};
  double wander_ = 0, phase_ = 0;
  int slots_ = 0, warm_slots_ = 0, since_idle_ = 0, pairs_ = 0;
};

}  // namespace crucible::decide
