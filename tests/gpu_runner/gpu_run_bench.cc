// Measures gpu_run: what it adds to a command on a free device, and the gap between two jobs.
//
//   gpu_run_bench GPU_RUN DEVICE [JOBS]
//   gpu_run_bench --job FILE ID MS [--orphan]     the job of compare_queues.py
// Medians in milliseconds on stdout. The gap is from the last instruction of a job to the first of
// the next, so it holds the end of one process and the start of another. A benchmark, not a test:
// it asserts nothing. Set CRUCIBLE_LOCK_DIR and CRUCIBLE_HOME to folders of its own.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/subprocess.h"

namespace crucible {
namespace {

double Percentile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values.empty() ? -1 : values[static_cast<std::size_t>(part * double(values.size() - 1))];
}

double TimeMs(const std::vector<std::string>& argv) {
  const std::int64_t start = SystemClock().MonotonicNs();
  auto child = Subprocess::Start({.argv = argv});
  CRUCIBLE_CHECK(child.has_value() && child->Wait()->ok(), "the benchmark's command failed");
  return double(SystemClock().MonotonicNs() - start) / 1e6;
}

// Says "ID TIME PID" every few milliseconds: what was working when is seen also of who was killed.
void Work(const std::string& file, const std::string& id, int ms) {
  const std::int64_t until = SystemClock().MonotonicNs() + ms * std::int64_t{1'000'000};
  for (bool over = false; !over; SystemClock().SleepFor(std::chrono::milliseconds(3))) {
    const std::int64_t now = SystemClock().MonotonicNs();
    std::ostringstream line;
    line << id << ' ' << now << ' ' << ::getpid();
    (void)AppendLine(file, line.str());
    over = now >= until;
  }
}

int Main(int argc, char** argv) {
  if (argc >= 5 && std::string(argv[1]) == "--job") {
    const std::string file = argv[2], id = argv[3];
    if (argc > 5 && ::fork() == 0) {  // what a job may leave behind: it works on after the job
      ::setsid();
      Work(file, id + ".orphan", 150);
      ::_exit(0);
    }
    Work(file, id, std::stoi(argv[4]));
    return 0;
  }
  if (argc == 3 && std::string(argv[1]) == "--stamp") {  // the job itself
    const std::int64_t begin = SystemClock().MonotonicNs();
    SystemClock().SleepFor(std::chrono::milliseconds(2));
    std::ostringstream line;
    line << begin << ' ' << SystemClock().MonotonicNs();
    return AppendLine(argv[2], line.str()) ? 0 : 1;
  }
  if (argc < 3) return 2;
  const std::string runner = argv[1], device = argv[2];
  const int jobs = argc > 3 ? std::stoi(argv[3]) : 100;
  std::vector<double> direct, queued;
  for (int i = 0; i < jobs; ++i) {
    direct.push_back(TimeMs({"true"}));
    queued.push_back(TimeMs({runner, "--device", device, "--", "true"}));
  }
  std::printf(
      "true: median %.2f ms; gpu_run -- true: median %.2f ms, 90%% %.2f ms; added %.2f ms\n",
      Percentile(direct, 0.5), Percentile(queued, 0.5), Percentile(queued, 0.9),
      Percentile(queued, 0.5) - Percentile(direct, 0.5));
  const auto folder = MakeTemporaryDirectory("gpu_run_bench");
  CRUCIBLE_CHECK(folder.has_value(), "no temporary folder");
  const std::string stamps = (*folder / "stamps").string();
  std::vector<Subprocess> callers;
  for (int i = 0; i < jobs; ++i) {
    auto child = Subprocess::Start(
        {.argv = {runner, "--quiet", "--device", device, "--", argv[0], "--stamp", stamps}});
    CRUCIBLE_CHECK(child.has_value(), "gpu_run did not start");
    callers.push_back(std::move(*child));
    while (callers.size() >= 16) {  // sixteen in the queue at any time
      (void)callers.front().Wait();
      callers.erase(callers.begin());
    }
  }
  for (Subprocess& child : callers) (void)child.Wait();
  std::istringstream lines(ReadFile(stamps).value_or(""));
  std::vector<double> gaps;
  std::int64_t last = 0;
  for (std::int64_t begin, end; lines >> begin >> end; last = end)
    if (last != 0) gaps.push_back(double(begin - last) / 1e6);
  std::printf(
      "gap between jobs, 16 callers: median %.2f ms, 90%% %.2f ms, smallest %.2f ms (%zu gaps)\n",
      Percentile(gaps, 0.5), Percentile(gaps, 0.9), Percentile(gaps, 0), gaps.size());
  (void)RemoveTree(*folder);
  return 0;
}

}  // namespace
}  // namespace crucible

int main(int argc, char** argv) { return crucible::Main(argc, argv); }
