#include "gpu_runner/clocks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

using Json = nlohmann::json;

constexpr double kObservedTolerance = 0.04;
constexpr std::size_t kMaxSamples = 200'000;  // two days, 8 MB; then they are thinned

Json Of(const ClockSample& sample) {
  Json json;
  if (sample.mhz >= 0) json["mhz"] = sample.mhz;
  if (sample.temperature_c >= 0) json["temperature_c"] = sample.temperature_c;
  if (sample.power_w >= 0) json["power_w"] = sample.power_w;
  if (sample.load >= 0) json["load"] = sample.load;
  if (sample.reasons != 0) json["reasons"] = fmt::format("0x{:x}", sample.reasons);
  return json.is_null() ? Json::object() : json;
}

struct Range {
  int low = 0, high = 0;
  double mean = 0;
  int count = 0;
};

// `working`: without the samples at which the GPU had nothing to do: then it clocks down by itself,
// locked or not, and a job that begins on the CPU would look as if its clock had moved.
Range MhzRange(const std::vector<ClockSample>& samples, bool working) {
  Range range;
  for (const ClockSample& sample : samples) {
    if (sample.mhz < 0 || (working && (sample.reasons & kReasonIdle) != 0)) continue;
    range.low = range.count == 0 ? sample.mhz : std::min(range.low, sample.mhz);
    range.high = std::max(range.high, sample.mhz);
    range.mean += sample.mhz;
    ++range.count;
  }
  if (range.count > 0) range.mean /= range.count;
  return range;
}

// Every second sample goes, and what it told of throttling to the one before it.
void Thin(std::vector<ClockSample>* samples) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < samples->size(); i += 2, ++kept) {
    (*samples)[kept] = (*samples)[i];
    if (i + 1 < samples->size()) (*samples)[kept].reasons |= (*samples)[i + 1].reasons;
  }
  samples->resize(kept);
}

// The mean of the first CPUs: reading the clock of each of hundreds would itself take milliseconds.
int CpuMhz() {
  double sum = 0;
  int count = 0;
  for (int cpu = 0; cpu < 8; ++cpu) {
    const auto text =
        ReadFile(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu));
    if (!text) break;
    sum += std::strtod(text->c_str(), nullptr) / 1000;
    ++count;
  }
  if (count > 0) return static_cast<int>(sum / count + 0.5);
  const UniqueFd fd(::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC));
  char text[8192];
  const ssize_t size = fd.valid() ? ::read(fd.get(), text, sizeof text - 1) : 0;
  if (size <= 0) return -1;
  text[size] = '\0';
  for (const char* line = text; (line = std::strstr(line, "cpu MHz")) != nullptr; ++line) {
    const char* colon = std::strchr(line, ':');
    if (colon == nullptr) break;
    sum += std::strtod(colon + 1, nullptr);
    ++count;
  }
  return count > 0 ? static_cast<int>(sum / count + 0.5) : -1;
}

}  // namespace

std::string DriftVerdict(const ClockReport& report) {
  if (report.policy == ClockPolicy::kOff) return "off";
  if (report.gone) return "gone";
  std::uint64_t reasons = 0;
  for (const ClockSample& sample : report.during) reasons |= sample.reasons;
  if (reasons & (kReasonHwSlowdown | kReasonSwThermal | kReasonHwThermal | kReasonPowerBrake))
    return "throttled";
  const Range range = MhzRange(report.during, true);
  if (report.pin_refused) return "unlocked";
  if (report.pinned_mhz > 0) {
    if (range.count == 0) return "unknown";
    const double off =
        std::max(std::abs(range.low - report.pinned_mhz), std::abs(range.high - report.pinned_mhz));
    if (off > kPinnedTolerance * report.pinned_mhz) return "drifted";
    return "steady";
  }
  if (range.count < 2) return "unknown";  // one sample shows no movement
  if (range.high - range.low > kObservedTolerance * range.high)
    return reasons & kReasonPowerCap ? "power_capped" : "drifted";
  return "steady";
}

std::string ToJson(const ClockReport& report) {
  Json json;
  if (report.policy == ClockPolicy::kOff) return "{}";
  json["policy"] = report.policy == ClockPolicy::kPin ? "pin" : "observe";
  if (report.pinned_mhz > 0) json["pinned_mhz"] = report.pinned_mhz;
  if (report.pin_refused || report.repin_failed) json["clock"] = "unlocked";
  json["before"] = Of(report.before);
  json["after"] = Of(report.after);
  if (report.repinned.mhz >= 0) json["after_repin"] = Of(report.repinned);
  const Range range = MhzRange(report.during, false);
  Json during = {{"samples", report.during.size()}};
  if (range.count > 0) {
    during["mhz_min"] = range.low;
    during["mhz_mean"] = range.mean;
    during["mhz_max"] = range.high;
  }
  std::uint64_t reasons = 0;
  int hottest = -1;
  double power = -1;
  for (const ClockSample& sample : report.during) {
    reasons |= sample.reasons;
    hottest = std::max(hottest, sample.temperature_c);
    power = std::max(power, sample.power_w);
  }
  if (hottest >= 0) during["temperature_max_c"] = hottest;
  if (power >= 0) during["power_max_w"] = power;
  if (reasons != 0) during["reasons"] = fmt::format("0x{:x}", reasons);
  json["during"] = during;
  return json.dump();
}

std::string DescribeAfter(const ClockReport& report) {
  const auto mhz = [](const ClockSample& sample) {
    return sample.mhz >= 0 ? fmt::format("{} MHz", sample.mhz) : std::string("nothing");
  };
  if (report.gone) return "the device no longer answers";
  if (report.policy == ClockPolicy::kOff) return "the clocks were not looked at (--clocks off)";
  if (report.pinned_mhz == 0)
    return fmt::format("the clock is not locked; it read {} before the job and {} after it",
                       mhz(report.before), mhz(report.after));
  if (report.repin_failed)
    return fmt::format(
        "the SM clock was locked at {} MHz and could not be locked again; it reads {}",
        report.pinned_mhz, mhz(report.repinned));
  const int off = std::abs(report.repinned.mhz - report.pinned_mhz);
  const bool holds = report.repinned.mhz >= 0 && off <= kPinnedTolerance * report.pinned_mhz;
  const bool idle = (report.repinned.reasons & kReasonIdle) != 0;
  return fmt::format("the SM clock is locked at {} MHz again and reads {}{}", report.pinned_mhz,
                     mhz(report.repinned),
                     holds  ? ""
                     : idle ? " while it has nothing to do; the next job's samples show if it holds"
                            : "; it does not hold, so do not compare times before it does");
}

ClockSample SampleCpu() {
  ClockSample sample;
  sample.mhz = CpuMhz();
  double load[1];
  if (::getloadavg(load, 1) == 1) sample.load = load[0];
  return sample;
}

std::filesystem::path PinMark(const std::filesystem::path& lock_directory,
                              const std::string& device) {
  return lock_directory / device / "pinned_by_gpu_run";
}

ClockKeeper::ClockKeeper(const Device& device, ClockPolicy policy, std::optional<int> pin_mhz)
    : device_(device), wanted_mhz_(pin_mhz) {
  report_.policy = policy;
}

void ClockKeeper::Use(Nvml* nvml) {
  nvml_ = nvml;
  if (device_.is_gpu && nvml != nullptr) gpu_ = nvml->Find(device_.id);
}

std::optional<ClockSample> ClockKeeper::Sample() {
  if (report_.policy == ClockPolicy::kOff) return std::nullopt;
  if (!device_.is_gpu) return SampleCpu();
  if (gpu_ != nullptr)
    if (const auto now = nvml_->State(*gpu_))
      return ClockSample{now->sm_mhz, now->temperature_c, now->power_w, -1, now->reasons};
  report_.gone = true;
  return std::nullopt;
}

Result<> ClockKeeper::Pin() {
  if (gpu_ == nullptr) return GpuIsGone();
  if (!wanted_mhz_) {
    CRUCIBLE_ASSIGN(wanted_mhz_, nvml_->MaxSmClockMhz(*gpu_));
  }
  return nvml_->LockSmClock(*gpu_, *wanted_mhz_);
}

tl::unexpected<Error> ClockKeeper::GpuIsGone() const {
  return Fail(ErrorKind::kUnavailable, "start on", device_.id, "the GPU does not answer",
              "look at dmesg and nvidia-smi; the GPU may need a reset");
}

Result<std::string> ClockKeeper::Before() {
  std::string warning;
  if (report_.policy == ClockPolicy::kPin) {
    if (!device_.is_gpu) {
      report_.pin_refused = true;
      warning = "the CPU's clock cannot be pinned; its clocks are recorded";
    } else if (const auto pinned = Pin(); !pinned) {
      if (pinned.error().kind != ErrorKind::kConflict) return tl::unexpected(pinned.error());
      report_.pin_refused = true;
      warning = pinned.error().text + "; results are stamped clock=unlocked";
    } else {
      report_.pinned_mhz = *wanted_mhz_;
    }
  }
  if (auto sample = Sample()) report_.before = *sample;
  if (report_.gone) return GpuIsGone();
  return warning;
}

void ClockKeeper::During() {
  auto sample = Sample();
  if (!sample) return;
  if (report_.during.size() >= kMaxSamples) Thin(&report_.during);
  report_.during.push_back(*sample);
}

void ClockKeeper::After() {
  if (auto sample = Sample()) report_.after = *sample;
  if (report_.pinned_mhz == 0) return;
  if (const auto pinned = Pin(); !pinned) {
    report_.repin_failed = true;
    report_.gone = report_.gone || pinned.error().kind == ErrorKind::kUnavailable;
  }
  if (auto sample = Sample()) report_.repinned = *sample;
}

}  // namespace crucible
