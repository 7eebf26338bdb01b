// crucible_decisions: prints the table rule x noise model, measured on the simulated device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/command_line.h"
#include "checks/decide/simulate.h"

namespace crucible::decide {
namespace {

constexpr int kSearch = 300;  // null candidates of one search

struct Words {
  std::int64_t nulls = 100'000, gains = 2'000;
  std::uint64_t seed = 1;
  int threads = 1;
  Times times;
  std::vector<int> models, rules;
};

void PrintRow(const Words& words, Method method, const NoiseModel& model) {
  const Tally null =
      Simulate(method, model, 0, words.nulls, words.seed, words.threads, words.times);
  std::string power;
  for (const double gain : {0.005, 0.01, 0.02, 0.2})
    power += fmt::format(" {:.3f} |", Simulate(method, model, gain, words.gains, words.seed + 1,
                                               words.threads, words.times)
                                          .Share());
  const double trials = static_cast<double>(null.trials);
  std::printf(
      "%s\n",
      fmt::format("| {} | {} | {:.3g} |{} {:.1f} | {:.1f} | {:.3f} | {:.3f} |", Describe(method),
                  model.name, kSearch * null.Share(), power, null.slots / trials,
                  (null.slots * words.times.slot_s + null.warm_slots * words.times.warm_slot_s +
                   null.pairs * words.times.start_s) /
                      trials,
                  static_cast<double>(null.refused) / trials,
                  static_cast<double>(null.inconclusive) / trials)
          .c_str());
  std::fflush(stdout);
}

bool Chosen(const std::vector<int>& numbers, std::size_t index) {
  return numbers.empty() ||
         std::find(numbers.begin(), numbers.end(), static_cast<int>(index)) != numbers.end();
}

int Main(int argc, char** argv) {
  Words words;
  CLI::App app("Decision rules on a simulated device: errors, power and cost.",
               "crucible_decisions");
  app.add_option("--nulls", words.nulls, "null candidates per row")->capture_default_str();
  app.add_option("--gains", words.gains, "true gains per power figure")->capture_default_str();
  app.add_option("--seed", words.seed)->capture_default_str();
  app.add_option("--threads", words.threads)->capture_default_str();
  app.add_option("--slot-seconds", words.times.slot_s)->capture_default_str();
  app.add_option("--warm-slot-seconds", words.times.warm_slot_s,
                 "an unrecorded slot of the burn-in")
      ->capture_default_str();
  app.add_option("--start-seconds", words.times.start_s, "starting one pair of processes")
      ->capture_default_str();
  app.add_option("--screen-seconds", words.times.screen_s, "limit of one case, \"in time\" rows")
      ->capture_default_str();
  app.add_option("--confirm-seconds", words.times.confirm_s)->capture_default_str();
  app.add_option("--claim-seconds", words.times.claim_s)->capture_default_str();
  app.add_option("--models", words.models, "numbers of the noise models, from 0; default: all");
  app.add_option("--rules", words.rules, "numbers of the rules, from 0; default: all");
  int code = 0;
  if (!ParseWords(&app, argc, argv, &code)) return code;
  std::printf(
      "| rule | noise | false accepts in %d nulls | power 0.5 %% | 1 %% | 2 %% | 20 %% | slots per "
      "null | "
      "device s per null | refused | inconclusive "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|\n",
      kSearch);
  const std::vector<NoiseModel> models = StandardModels();
  const std::vector<Method> methods = {Method::kFastestOfThree, Method::kWinEveryRound,
                                       Method::kClaim,          Method::kSearch,
                                       Method::kSearchAndGate,  Method::kClaimInTime,
                                       Method::kSearchInTime,   Method::kSearchAndGateInTime};
  for (std::size_t k = 0; k < methods.size(); ++k)
    for (std::size_t i = 0; i < models.size(); ++i)
      if (Chosen(words.rules, k) && Chosen(words.models, i)) PrintRow(words, methods[k], models[i]);
  return 0;
}

}  // namespace
}  // namespace crucible::decide

int main(int argc, char** argv) { return crucible::decide::Main(argc, argv); }
