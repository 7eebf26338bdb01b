#include "checks/judge/arm_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace crucible::judge {
namespace {

using decide::Verdict;

constexpr int kProtocol = 1;

std::string TextOr(const nlohmann::json& object, const char* key, std::string fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : fallback;
}

bool BoolOr(const nlohmann::json& object, const char* key, bool fallback) {
  const auto found = object.find(key);
  return found != object.end() && found->is_boolean() ? found->get<bool>() : fallback;
}

std::string ObjectText(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? found->dump() : "{}";
}

}  // namespace

void ClocksSeen::Add(const Slot& slot) {
  Add(ClocksSeen{.stamps = {slot.clock}, .low_mhz = slot.sm_mhz, .high_mhz = slot.sm_mhz});
}

void ClocksSeen::Add(const ClocksSeen& other) {
  stamps.insert(other.stamps.begin(), other.stamps.end());
  if (other.low_mhz < 0) return;
  low_mhz = low_mhz < 0 ? other.low_mhz : std::min(low_mhz, other.low_mhz);
  high_mhz = std::max(high_mhz, other.high_mhz);
}

std::string CaseJson(const std::string& name, const std::string& params) {
  nlohmann::json object = nlohmann::json::parse(params);
  object["name"] = name;
  return object.dump();
}

tl::unexpected<Failure> ArmRunner::Crashed(const std::string& text) {
  process_.reset();
  return tl::unexpected(
      Failure{options_.side, false, Verdict::kCrashed, options_.name + ": " + text});
}

void ArmRunner::Stop() {
  if (process_) process_->Stop();
  process_.reset();
}

Outcome<> ArmRunner::Restart() {
  Stop();
  auto started = HarnessProcess::Start(options_.command, options_.log, *clock_);
  if (!started)
    return tl::unexpected(Failure{options_.side, true, Verdict::kCrashed,
                                  options_.name + ": " + started.error().text});
  process_.emplace(std::move(*started));
  auto hello = Ask({{"op", "hello"}, {"protocol", kProtocol}});
  if (!hello) return tl::unexpected(hello.error());
  if (!(*hello)["ok"].get<bool>())
    return Crashed("harness says: " + TextOr(*hello, "error", "(no reason)"));
  return Bind(*hello);
}

Outcome<> ArmRunner::Bind(const nlohmann::json& hello) {
  const auto protocol = hello.find("protocol");
  if (protocol == hello.end() || *protocol != kProtocol)
    return Crashed(fmt::format("the harness speaks another protocol than {}", kProtocol));
  const std::string target = TextOr(hello, "target", "");
  if (!options_.target.empty() && target != options_.target)
    return Crashed(fmt::format("the harness is of target '{}', not '{}'", target, options_.target));
  const std::string sha256 = TextOr(hello, "library_sha256", "");
  if (!library_sha256_.empty() && sha256 != library_sha256_)
    return Crashed("its library changed during the measurement");
  library_sha256_ = sha256;
  conditions_ = ObjectText(hello, "conditions");
  // However its command was written (a script may hide the word): what is judged was admitted.
  if (const auto conditions = hello.find("conditions");
      !options_.may_be_cheat && conditions != hello.end() && conditions->is_object() &&
      TextOr(*conditions, "admission", "") == "any")
    return Crashed(fmt::format("its harness was started with {}, which is for [[exploit]] kernels",
                               kAdmitAny));
  configuration_ = ObjectText(hello, "configuration");
  return {};
}

Outcome<nlohmann::json> ArmRunner::Ask(const nlohmann::json& request) {
  if (!process_) return Crashed("its harness is not running");
  auto reply = process_->Ask(request, options_.request_limit_ms);
  if (!reply) return Crashed(reply.error().text);
  return std::move(*reply);
}

Outcome<CheckResult> ArmRunner::Check(const std::string& case_json, std::uint64_t seed) {
  auto reply = Ask({{"op", "check"}, {"case", nlohmann::json::parse(case_json)}, {"seed", seed}});
  if (!reply) return tl::unexpected(reply.error());
  CheckResult result{.seed = seed};
  result.pass = (*reply)["ok"].get<bool>() && BoolOr(*reply, "pass", false);
  result.margins = ObjectText(*reply, "margins");
  result.limits = ObjectText(*reply, "limits");
  result.worst = ObjectText(*reply, "worst");
  result.reason = TextOr(*reply, (*reply)["ok"].get<bool>() ? "reason" : "error",
                         result.pass ? "" : "(no reason given)");
  return result;
}

Outcome<> ArmRunner::Prepare(const std::string& case_json, std::uint64_t seed) {
  auto reply = Ask({{"op", "prepare"}, {"case", nlohmann::json::parse(case_json)}, {"seed", seed}});
  if (!reply) return tl::unexpected(reply.error());
  if ((*reply)["ok"].get<bool>()) return {};
  return tl::unexpected(
      Failure{options_.side, false, Verdict::kCheckFailed,
              fmt::format("{}: prepare: {}", options_.name, TextOr(*reply, "error", "refused"))});
}

Outcome<Slot> ArmRunner::RunSlot(const SlotRequest& request) {
  auto asked = Ask({{"op", "slot"},
                    {"budget_ms", request.budget_ms},
                    {"min_calls", request.min_calls},
                    {"max_calls", request.max_calls}});
  if (!asked) return tl::unexpected(asked.error());
  const nlohmann::json& reply = *asked;
  if (!reply["ok"].get<bool>())
    return Crashed("slot: harness says: " + TextOr(reply, "error", "(no reason)"));
  if (!BoolOr(reply, "verified", false))
    return tl::unexpected(
        Failure{options_.side, false, Verdict::kCheckFailed,
                fmt::format("{}: an output of a measured call is wrong: {}", options_.name,
                            TextOr(reply, "reason", "(no reason given)"))});
  Slot slot{.throttled = BoolOr(reply, "throttled", false),
            .doubt = TextOr(reply, "doubt", ""),
            .clock = TextOr(reply, "clock", "unknown")};
  if (const auto mhz = reply.find("sm_mhz"); mhz != reply.end() && mhz->is_number())
    slot.sm_mhz = static_cast<int>(mhz->get<double>());
  const auto calls = reply.find("calls"), median = reply.find("median_us");
  if (calls == reply.end() || !calls->is_number_integer() || median == reply.end() ||
      !median->is_number())
    return Crashed("slot: a reply without \"calls\" and \"median_us\"");
  slot.calls = calls->get<int>();
  slot.median_us = median->get<double>();
  if (slot.calls < 1 || !(slot.median_us > 0) || !std::isfinite(slot.median_us))
    return Crashed(
        fmt::format("slot: {} calls of {} us are no measurement", slot.calls, slot.median_us));
  return slot;
}

}  // namespace crucible::judge
