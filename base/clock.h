// clock.h: the time seam. Everything that waits or stamps takes a Clock, so a test can tick it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace crucible {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t UnixMs() = 0;       // wall time, milliseconds since 1970 (UTC)
  virtual std::int64_t MonotonicNs() = 0;  // CLOCK_MONOTONIC: for limits and durations
  virtual void SleepFor(std::chrono::nanoseconds duration) = 0;
};

// The machine's clocks. Thread-safe.
Clock& SystemClock();

// "2026-01-31T12:00:00.123Z"
std::string FormatUtc(std::int64_t unix_ms);
// "1 h 02 min", "3 min 04 s", "5.2 s", "120 ms"
std::string FormatDuration(std::int64_t ms);

// A time of a kernel to three digits: "12 us", "652 us", "4.56 ms", "1250 ms".
std::string FormatMicroseconds(double us);

}  // namespace crucible
