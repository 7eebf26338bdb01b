#include "gpu_runner/slurm.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/subprocess.h"
#include "gpu_runner/bookkeeper.h"
#include "gpu_runner/job_process.h"
#include "gpu_runner/queue.h"
#include "gpu_runner/run_job.h"
#include "gpu_runner/slurm_command.h"
#include "gpu_runner/slurm_report.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFirstLineMs = 1000, kAnnounceEveryMs = 30'000;
constexpr std::int64_t kLookMs = 50, kLookSlowlyMs = 500;
constexpr std::int64_t kInsistMs = 15'000;  // after SIGTERM; the node's gpu_run needs 5 s of them
constexpr int kLateReportTries = 10;

void Say(const std::string& text) {
  const std::string line = "gpu_run: " + text + "\n";  // one write, as in run_job.cc
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

// A Slurm command's output; empty when it fails.
std::string Ask(std::vector<std::string> words) {
  SubprocessSpec spec;
  spec.argv = std::move(words);
  const auto run = RunCaptured(spec, std::chrono::seconds(10));
  return run && run->status.ok() && !run->timed_out ? run->out : "";
}

bool Tell(std::vector<std::string> words) {
  SubprocessSpec spec;
  spec.argv = std::move(words);
  const auto run = RunCaptured(spec, std::chrono::seconds(10));
  return run && run->status.ok() && !run->timed_out;
}

class SlurmRunner {
 public:
  SlurmRunner(const RunOptions& options, SlurmPlace place)
      : options_(options), place_(place), books_(HistoryFileHere()) {}

  Result<int> Run() {
    CRUCIBLE_ASSIGN(signals_, RunnerSignals::Block());
    queued_ms_ = SystemClock().UnixMs();
    since_ms_ = QueueNowMs();
    job_ = "j" + RandomHex(5);
    file_ = books_.file().parent_path() / "slurm" / (job_ + ".json");
    const fs::path gpu_run = ProgramDirectory() / "gpu_run";
    CRUCIBLE_ASSIGN(std::vector<std::string> words,
                    SrunWords(options_, place_, job_, file_, gpu_run, ProcessEnvironment));
    if (!FindExecutable("srun"))
      return Fail(ErrorKind::kUnavailable, "use backend", "slurm", "there is no srun in PATH",
                  "install Slurm's commands (Debian: slurm-client), or use --backend local");
    CRUCIBLE_TRY(CreateReport(file_));
    books_.Queued(OpenRow());  // first, so that no death of this process leaves a job unrecorded
    words.insert(words.begin(), {gpu_run.string(), "--srun"});
    SubprocessSpec spec;
    spec.argv = std::move(words);
    // srun would stop on reading a terminal that is another group's.
    spec.in = ::isatty(STDIN_FILENO) != 0 ? Stdio::kNull : Stdio::kInherit;
    auto srun = Subprocess::Start(spec);
    if (srun) Supervise(&*srun);
    const Result<int> code =
        srun ? Result<int>(Finish(*srun->Wait())) : tl::unexpected(srun.error());
    std::error_code ignored;
    fs::remove(file_, ignored);
    return code;
  }

 private:
  void Supervise(Subprocess* srun) {
    std::int64_t announce_at_ms = since_ms_ + kFirstLineMs;
    while (srun->running()) {
      Look();
      const std::int64_t now = QueueNowMs();
      std::int64_t wait_ms = -1;
      if (!started_) wait_ms = now - since_ms_ < 2000 ? kLookMs : kLookSlowlyMs;
      if (!report_.arrived && options_.queue_limit_ms && !limit_over_) {
        const std::int64_t left = since_ms_ + *options_.queue_limit_ms - now;
        if (left <= 0) {
          limit_over_ = true;
          Say(fmt::format("the turn did not come within {}; {}",
                          FormatDuration(*options_.queue_limit_ms), Situation()));
          srun->Signal(SIGTERM);  // srun takes its job out of the queue
        } else {
          wait_ms = std::min(wait_ms, left);
        }
      }
      if (!report_.arrived && now >= announce_at_ms && asked_ == 0) {
        if (!options_.quiet) Say(Situation());
        announce_at_ms = now + kAnnounceEveryMs;
      }
      if (insist_at_ms_ != 0) {
        if (now >= insist_at_ms_) srun->Signal(SIGTERM);  // Slurm sends SIGKILL to the step
        wait_ms = wait_ms < 0 ? 1000 : std::min<std::int64_t>(wait_ms, 1000);
      }
      pollfd items[2] = {{signals_.fd(), POLLIN, 0}, {srun->pidfd(), POLLIN, 0}};
      ::poll(items, 2, static_cast<int>(wait_ms));
      while (const auto stop = signals_.NextStop()) Stop(*stop, srun);
    }
  }

  // Whether the node has said something new.
  void Look() {
    if (started_) return;
    report_ = ReadReport(file_);
    if (!report_.row.started_ms) return;
    started_ = true;
    if (!report_.row.ended_ms) books_.Started(Ours(report_.row));
  }

  // The first Ctrl-C asks, the next insists, as for a job of this machine.
  void Stop(int number, Subprocess* srun) {
    const int sent = number == SIGINT && asked_ == 0 ? SIGINT : SIGTERM;
    asked_ = number;
    Look();
    if (sent == SIGTERM && insist_at_ms_ == 0) insist_at_ms_ = QueueNowMs() + kInsistMs;
    const std::string name = sent == SIGINT ? "--signal=INT" : "--signal=TERM";
    if (!report_.arrived || !Tell({"scancel", name, report_.step})) srun->Signal(SIGTERM);
  }

  std::string Situation() const {
    if (place_ != SlurmPlace::kOutside)
      return "waiting for a free GPU of Slurm job " + ProcessEnvironment("SLURM_JOB_ID");
    std::string state =
        Ask({"squeue", "--noheader", "--name=" + SlurmJobName(job_), "--format=job %i is %T (%r)"});
    while (!state.empty() && state.back() == '\n') state.pop_back();
    return "waiting for Slurm: " + (state.empty() ? "it does not answer" : state);
  }

  JobRow OpenRow() const {
    JobRow row;
    row.id = job_;
    row.device = "slurm";  // until one is given
    row.argv = options_.command;
    std::error_code ignored;
    row.directory = fs::current_path(ignored).string();
    row.mission = ProcessEnvironment("CRUCIBLE_MISSION");
    row.priority = PriorityName(options_.priority);
    row.queued_ms = queued_ms_;
    row.runner = ToText(OwnIdentity());
    return row;
  }

  // The node's row with what only this side knows: who answers for it, since when it waits.
  JobRow Ours(JobRow row) const {
    row.id = job_;
    row.queued_ms = queued_ms_;
    row.runner = ToText(OwnIdentity());
    return row;
  }

  int Finish(const ExitStatus& srun) {
    report_ = ReadReport(file_);
    for (int i = 0; i < kLateReportTries && report_.row.started_ms && !report_.row.ended_ms; ++i) {
      SystemClock().SleepFor(
          std::chrono::milliseconds(100));  // a network file system takes a while
      report_ = ReadReport(file_);
    }
    if (srun.signal != 0) CancelBySelf();
    if (report_.row.ended_ms) {
      books_.Ended(Ours(report_.row));
      return report_.row.exit_code.value_or(kExitRunnerFailed);
    }
    JobRow row = report_.arrived ? Ours(report_.row) : OpenRow();
    row.ended_ms = SystemClock().UnixMs();
    row.exit_code = CodeWithoutEnd(srun, &row);
    books_.Ended(row);
    return *row.exit_code;
  }

  // Nobody on the node said how it ended.
  int CodeWithoutEnd(const ExitStatus& srun, JobRow* row) const {
    const bool ran = row->started_ms.has_value();
    if (limit_over_ && !ran) {
      row->outcome = "queue_limit";
      return kExitQueueLimit;
    }
    if (asked_ != 0) {
      row->outcome = "cancelled";
      return 128 + asked_;
    }
    row->outcome = ran ? "killed" : "failed";
    if (!ran) {
      Say(fmt::format("the job did not start: srun ended with {}", srun.Describe()));
      return kExitRunnerFailed;
    }
    Say(fmt::format("Slurm ended step {} on {} before it could say how: srun ended with {}",
                    report_.step, report_.node, srun.Describe()));
    return srun.ok() ? kExitRunnerFailed : srun.ShellCode();
  }

  // srun is gone without having cleaned up: its job would hold the GPU, or wait for it, for ever.
  void CancelBySelf() const {
    if (place_ == SlurmPlace::kOutside)
      Tell({"scancel", "--name=" + SlurmJobName(job_)});
    else if (report_.arrived)
      Tell({"scancel", report_.step});
  }

  const RunOptions& options_;
  SlurmPlace place_;
  Bookkeeper books_;
  RunnerSignals signals_;
  std::string job_;
  fs::path file_;
  std::int64_t queued_ms_ = 0, since_ms_ = 0, insist_at_ms_ = 0;
  SlurmReport report_;
  bool started_ = false, limit_over_ = false;
  int asked_ = 0;  // the last signal that asked to stop
};

// kUsage: the variable names no backend.
Result<bool> IsForSlurm(const RunOptions& options) {
  const std::string variable = ProcessEnvironment("CRUCIBLE_GPU_BACKEND");
  if (!options.backend.empty()) return options.backend == "slurm";
  if (variable.empty() || variable == "local") return false;
  if (variable == "slurm") return true;
  return Fail(ErrorKind::kUsage, "use", "CRUCIBLE_GPU_BACKEND=" + variable, "it is local or slurm",
              "set it to one of them or unset it");
}

Result<int> RunHereOrThere(const RunOptions& options) {
  if (!options.report.empty()) {  // on a Slurm node, started from elsewhere
    CRUCIBLE_TRY(CheckReport(options.report));
    RunOptions on_node = options;
    on_node.device = DeviceOfStep(options.device, ProcessEnvironment);
    return RunGpuJob(on_node);
  }
  CRUCIBLE_ASSIGN(const bool slurm, IsForSlurm(options));
  const SlurmPlace place = WhereInSlurm(ProcessEnvironment);
  if (!slurm || place == SlurmPlace::kOwnJob) return RunGpuJob(options);
  return SlurmRunner(options, place).Run();
}

}  // namespace

int RunOnBackend(const RunOptions& options) {
  const Result<int> code = RunHereOrThere(options);
  if (code) return *code;
  Say(code.error().text);
  return code.error().kind == ErrorKind::kUsage ? 2 : kExitRunnerFailed;
}

int BecomeSrun(const std::vector<std::string>& words) {
  if (words.empty()) return 2;
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent || parent == 1) return kExitRunnerFailed;  // it died before
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  Say(std::string("run srun: ") + std::strerror(errno));
  return kExitRunnerFailed;
}

}  // namespace crucible
