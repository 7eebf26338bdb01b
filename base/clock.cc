#include "base/clock.h"

#include <fmt/format.h>
#include <time.h>

#include <cerrno>

namespace crucible {
namespace {

class RealClock final : public Clock {
 public:
  std::int64_t UnixMs() override { return Read(CLOCK_REALTIME) / 1'000'000; }
  std::int64_t MonotonicNs() override { return Read(CLOCK_MONOTONIC); }
  void SleepFor(std::chrono::nanoseconds duration) override {
    timespec left{static_cast<time_t>(duration.count() / 1'000'000'000),
                  static_cast<long>(duration.count() % 1'000'000'000)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
  }

 private:
  static std::int64_t Read(clockid_t id) {
    timespec now{};
    clock_gettime(id, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
};

}  // namespace

Clock& SystemClock() {
  static RealClock clock;
  return clock;
}

std::string FormatUtc(std::int64_t unix_ms) {
  const time_t seconds = static_cast<time_t>(unix_ms / 1000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     unix_ms % 1000);
}

std::string FormatDuration(std::int64_t ms) {
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (ms < 60'000) return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000.0);
  const std::int64_t seconds = ms / 1000;
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds / 60 % 60);
}

std::string FormatMicroseconds(double us) {
  const bool in_ms = us >= 999.5;
  const double value = in_ms ? us / 1000 : us;
  // Three digits, the zeros among them too, so that a column's points stand below each other.
  const int decimals = value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, in_ms ? "ms" : "us");
}

}  // namespace crucible
