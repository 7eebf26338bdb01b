#include "checks/decide/device_model.h"

#include <cmath>
#include <numbers>

namespace crucible::decide {
namespace {

constexpr double kTimeUs = 100;

}  // namespace

std::vector<NoiseModel> StandardModels() {
  return {
      {.name = "noise 0.6 %"},
      {.name = "boosts of 10 % on 5 % of slots", .excursion_share = 0.05},
      {.name = "cold start, 6 % fast", .cold_gain = 0.062},
      {.name = "slow drift", .wander_sigma = 0.001, .swing = 0.01},
      {.name = "two modes 3 % apart", .step_share = 0.3},
      {.name = "placement 0.5 % per process", .placement_sigma = 0.005},
      {.name = "a quarter of processes 2 % slow", .unlucky_share = 0.25},
      {.name = "all of these, half as strong",
       .excursion_share = 0.025,
       .cold_gain = 0.031,
       .wander_sigma = 0.0005,
       .swing = 0.005,
       .step_share = 0.15,
       .step = 0.015,
       .placement_sigma = 0.0025},
      {.name = "a busy machine, noise 8 %", .slot_sigma = 0.08},
  };
}

SimulatedDevice::SimulatedDevice(NoiseModel model, double gain, std::uint64_t seed)
    : model_(std::move(model)), log_gain_(std::log1p(-gain)), random_(seed) {
  phase_ = uniform_(random_);
  FreshProcesses();
}

void SimulatedDevice::FreshProcesses() {
  for (double& place : placement_) {
    place = model_.placement_sigma * Normal();
    if (Chance(model_.unlucky_share)) place += std::log1p(model_.unlucky);
  }
  since_idle_ = 0;
  ++pairs_;
}

double SimulatedDevice::Slot(bool candidate) {
  double log_time = std::log(kTimeUs) + placement_[candidate ? 1 : 0];
  if (candidate) log_time += log_gain_;
  log_time += model_.slot_sigma * Normal();
  if (Chance(model_.excursion_share)) log_time += std::log1p(-model_.excursion_gain);
  if (Chance(model_.step_share)) log_time += std::log1p(model_.step);
  log_time += std::log1p(-model_.cold_gain * std::exp(-since_idle_ / model_.cold_slots));
  wander_ += model_.trend + model_.wander_sigma * Normal();
  log_time += wander_;
  log_time += model_.swing * std::sin(2 * std::numbers::pi *
                                      (phase_ + (slots_ + warm_slots_) / model_.swing_slots));
  ++slots_;
  ++since_idle_;
  return std::exp(log_time);
}

double SimulatedDevice::WarmSlot(bool candidate) {
  const double time = Slot(candidate);
  --slots_;
  ++warm_slots_;
  return time;
}

}  // namespace crucible::decide
