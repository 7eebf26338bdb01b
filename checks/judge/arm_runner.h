// arm_runner.h: one arm of a measurement, through as many harness processes as it takes.
//
// Failures are sorted by whose they are: the candidate's fault is a verdict, the baseline's or the
// machine's is an error that says nothing about the candidate. An arm is bound to its library: the
// hash from the first hello must be in every later one. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "checks/decide/verdict.h"
#include "checks/judge/harness_process.h"
#include "checks/target.h"

namespace crucible::judge {

// Seeds are whole numbers in every JSON reader.
inline constexpr std::uint64_t kSeedMask = (1ull << 53) - 1;

enum class Side { kBaseline, kCandidate, kPeer };

struct Failure {
  Side side = Side::kCandidate;
  bool machine = false;                                 // could not even be started: no arm's fault
  decide::Verdict verdict = decide::Verdict::kCrashed;  // kCrashed or kCheckFailed
  std::string text;
};

template <class T = void>
using Outcome = tl::expected<T, Failure>;

struct Slot {
  int calls = 0;
  double median_us = 0;
  bool throttled = false;
  std::string doubt;  // why its times are not to be believed; then it is throttled
  std::string clock;  // pinned | unlocked | unknown
  int sm_mhz = -1;    // of a GPU, while it was called; -1: not told
};

// What the slots of a measurement said of the device's clock.
struct ClocksSeen {
  std::set<std::string> stamps;
  int low_mhz = -1, high_mhz = -1;

  void Add(const Slot& slot);
  void Add(const ClocksSeen& other);
};

struct CheckResult {
  bool pass = false;
  std::string margins = "{}", limits = "{}";  // JSON object text: a number for each gate
  std::string worst = "{}";                   // … the matrix of the batch that the margin is of
  std::uint64_t seed = 0;                     // the inputs'
  std::string reason;
};

struct SlotRequest {
  double budget_ms = 100;
  int min_calls = 20;
  int max_calls = 500;
};

class ArmRunner {
 public:
  struct Options {
    std::string name;  // for messages: "baseline main", "candidate m12", "peer openblas"
    Side side = Side::kCandidate;
    std::string target;                // the name its hello must give; empty: any
    std::vector<std::string> command;  // placeholders already replaced
    std::filesystem::path log;
    std::int64_t request_limit_ms = 120'000;
    bool may_be_cheat = false;  // its harness may have been started with --admit-any
  };

  ArmRunner(Options options, Clock& clock) : options_(std::move(options)), clock_(&clock) {}

  // Ends the running process, if any, and starts a fresh one up to its hello.
  Outcome<> Restart();
  void Stop();
  bool running() const { return process_.has_value(); }

  Outcome<CheckResult> Check(const std::string& case_json, std::uint64_t seed);
  Outcome<> Prepare(const std::string& case_json, std::uint64_t seed);
  Outcome<Slot> RunSlot(const SlotRequest& request);

  const std::string& library_sha256() const { return library_sha256_; }
  const std::string& conditions() const { return conditions_; }        // JSON object text
  const std::string& configuration() const { return configuration_; }  // JSON object text
  const std::string& name() const { return options_.name; }

 private:
  Outcome<nlohmann::json> Ask(const nlohmann::json& request);
  Outcome<> Bind(const nlohmann::json& hello);
  tl::unexpected<Failure> Crashed(const std::string& text);

  Options options_;
  Clock* clock_;
  std::optional<HarnessProcess> process_;
  std::string library_sha256_, conditions_ = "{}", configuration_ = "{}";
};

// {"name":NAME} and the params: what the protocol calls a case.
std::string CaseJson(const std::string& name, const std::string& params);

}  // namespace crucible::judge
