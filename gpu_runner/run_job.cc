#include "gpu_runner/run_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/paths.h"
#include "gpu_runner/bookkeeper.h"
#include "gpu_runner/clocks.h"
#include "gpu_runner/dead_holder.h"
#include "gpu_runner/device.h"
#include "gpu_runner/driver_files.h"
#include "gpu_runner/job_log.h"
#include "gpu_runner/job_process.h"
#include "gpu_runner/nvml.h"
#include "gpu_runner/queue.h"
#include "gpu_runner/survivors.h"
#include "gpu_runner/token.h"
#include "gpu_runner/toolchain.h"
#include "gpu_runner/turn.h"
#include "gpu_runner/waiter_line.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr int kForeignMs = 2000;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

class Runner {
 public:
  explicit Runner(const RunOptions& options)
      : options_(options), books_(HistoryFileHere(), options.report) {}

  Result<int> Run() {
    CRUCIBLE_ASSIGN(toolchain_, ChosenToolchain(options_));
    CRUCIBLE_ASSIGN(signals_, RunnerSignals::Block());
    queued_ms_ = SystemClock().UnixMs();
    started_waiting_ms_ = QueueNowMs();
    job_ = options_.job_id.empty() ? "j" + RandomHex(5) : options_.job_id;
    nonce_ = RandomHex(16);
    CRUCIBLE_TRY(FindDevices());
    CRUCIBLE_TRY(ReadTokens());
    for (std::size_t i = 0; i < devices_.size(); ++i)
      for (const Token& token : tokens_)
        if (token.device == devices_[i].id) return RunInside(i, token);
    CRUCIBLE_TRY(CheckOrder());
    return TakeTurn();
  }

 private:
  Result<> FindDevices() {
    std::vector<Device> gpus;
    if (MayMeanGpu(options_.device)) {
      if (NvmlCanWait()) gpus = GpusInDriverFiles();
      if (gpus.empty()) {
        LoadNvml();
        gpus = GpusOf(nvml_.get());
      }
    }
    CRUCIBLE_ASSIGN(devices_, ResolveDevices(options_.device, std::move(gpus), why_no_nvml_));
    CRUCIBLE_ASSIGN(lock_directory_, LockDirectory());
    CRUCIBLE_TRY(KeepFitting(toolchain_, nvml_.get(), &devices_));
    for (const Device& device : devices_) {
      CRUCIBLE_ASSIGN(DeviceFolder folder, DeviceFolder::Open(lock_directory_, device.id));
      folders_.push_back(std::move(folder));
    }
    return {};
  }

  // Whether nothing but a look at the job's clocks is wanted of NVML, should the device be free.
  bool NvmlCanWait() const {
    return options_.clocks != ClockPolicy::kPin && !options_.say_clocks && !toolchain_;
  }

  void LoadNvml() {
    if (nvml_ != nullptr || !why_no_nvml_.empty()) return;
    auto loaded = Nvml::Load();
    if (loaded)
      nvml_ = std::move(*loaded);
    else
      why_no_nvml_ = loaded.error().text;
  }

  // Keeps the valid tokens of the environment: the devices this call already holds.
  Result<> ReadTokens() {
    const std::string own_nonce = Variable(kNonceVariable);
    for (const Token& token : ParseTokens(Variable(kTokenVariable))) {
      CRUCIBLE_ASSIGN(const DeviceFolder folder, DeviceFolder::Open(lock_directory_, token.device));
      const std::string why = WhyInvalid(token, folder);
      if (why.empty()) {
        tokens_.push_back(token);
        continue;
      }
      // A survivor of a dead job would be cleaned up by the next holder, perhaps by itself.
      if (!own_nonce.empty() && token.nonce == own_nonce && why == "its holder is dead")
        return Fail(ErrorKind::kConflict, "gpu_run", token.device,
                    "the job this call was made in has lost its runner", "start the job again");
      if (!options_.quiet)
        Say(fmt::format("gpu_run: the token for {} was not accepted: {}; waiting in the queue",
                        token.device, why));
    }
    return {};
  }

  // Two jobs that each hold one device and want the other's would wait for ever; in ascending
  // order nobody can.
  Result<> CheckOrder() {
    for (const Token& token : tokens_)
      for (const Device& device : devices_)
        if (device.id < token.device)
          return Fail(ErrorKind::kConflict, "take device", device.id,
                      "this job already holds " + token.device + ", which comes after it",
                      "take devices in ascending order of their ids, so that no two jobs can block "
                      "each other");
    return {};
  }

  Result<int> TakeTurn() {
    CRUCIBLE_ASSIGN(Turn turn, WaitForTurn({.options = &options_,
                                            .lock_directory = lock_directory_,
                                            .devices = &devices_,
                                            .folders = &folders_,
                                            .job = job_,
                                            .since_ms = started_waiting_ms_,
                                            .signals = &signals_,
                                            .waiting = [this] { MakeUseOfTheWait(); }}));
    device_ = turn.device;
    lock_ = std::move(turn.lock);
    sequence_ = turn.sequence;
    if (lock_.valid()) return RunAsHolder();
    JobRow row = RowOf(MakeRecord());
    row.started_ms.reset();
    row.ended_ms = SystemClock().UnixMs();
    row.exit_code = turn.exit_code;
    row.outcome = turn.outcome;
    books_.Ended(row);
    return turn.exit_code;
  }

  // It will take a while: let `crucible gpu history` know, and be ready when the turn comes.
  void MakeUseOfTheWait() {
    JobRow row = RowOf(MakeRecord());
    row.started_ms.reset();
    books_.Queued(row);
    if (MayMeanGpu(options_.device)) LoadNvml();
  }

  HolderRecord MakeRecord() const {
    HolderRecord record;
    record.nonce = nonce_;
    record.job = job_;
    record.device = devices_[device_].id;
    record.priority = PriorityName(options_.priority);
    record.mission = Variable("CRUCIBLE_MISSION");
    std::error_code ignored;
    record.directory = fs::current_path(ignored).string();
    record.runner = OwnIdentity();
    record.argv = options_.command;
    record.queued_ms = queued_ms_;
    record.limit_ms = options_.limit_ms.value_or(0);
    record.sequence = sequence_;
    if (options_.report.empty()) record.database = books_.file().string();
    const std::string mission_folder = Variable("CRUCIBLE_MISSION_DIR");
    if (options_.log || !mission_folder.empty()) {
      const fs::path folder =
          mission_folder.empty() ? books_.file().parent_path() : fs::path(mission_folder);
      record.log_path = (folder / "jobs" / (job_ + ".log")).string();
    }
    return record;
  }

  Result<> CheckDeviceIsFree() {
    const Device& device = devices_[device_];
    if (!device.is_gpu || options_.share || (nvml_ == nullptr && NobodyUsesCuda())) return {};
    LoadNvml();
    if (nvml_ == nullptr || nvml_->Find(device.id) == nullptr)
      return Fail(ErrorKind::kUnavailable, "start on", device.id,
                  nvml_ == nullptr ? why_no_nvml_ : "NVML does not list it",
                  "check the GPU with nvidia-smi");
    const std::string foreign = ForeignProcesses(*nvml_, device.id, kForeignMs);
    if (foreign.empty()) return {};
    return Fail(ErrorKind::kConflict, "start on", device.id,
                "processes outside the queue compute on it: " + foreign,
                "end them, run them through gpu_run, or use --share");
  }

  JobRequest MakeRequest(const std::string& nonce, const std::string& job) const {
    JobRequest request;
    request.argv = options_.command;
    request.limit_ms = options_.limit_ms;
    request.environment = {
        {kJobVariable, job}, {kNonceVariable, nonce}, {kTokenVariable, ToText(tokens_)}};
    if (toolchain_)
      request.environment.insert(request.environment.end(), toolchain_->environment.begin(),
                                 toolchain_->environment.end());
    if (devices_[device_].is_gpu) {
      request.environment.emplace_back("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
      request.environment.emplace_back("CUDA_VISIBLE_DEVICES", devices_[device_].id);
    }
    return request;
  }

  Result<int> RunAsHolder() {
    if (const auto clean = CleanUpAfterDead(folders_[device_]); !clean)
      return NotFit(nullptr, clean.error());  // the record stays: what it names is still there
    HolderRecord record = MakeRecord();
    ClockKeeper clocks(devices_[device_], options_.clocks, options_.clock_mhz);
    JobLog log;
    if (const auto ready = Prepare(record, &clocks, &log); !ready)
      return NotFit(&record, ready.error());
    record.cgroup = JobCgroupPath(job_);
    record.started_ms = SystemClock().UnixMs();
    if (const auto written = folders_[device_].WriteHolder(record); !written)
      return NotFit(nullptr, written.error());
    // After the record, so that whoever comes after a crash knows what to remove.
    if (!MakeJobCgroup(record.cgroup)) record.cgroup.clear();
    tokens_.push_back({record.device, nonce_, record.runner.pid, record.runner.start_ticks});
    JobRow row = RowOf(record);
    JobRequest request = MakeRequest(nonce_, job_);
    const int pinned_mhz = clocks.report().pinned_mhz;
    request.environment.emplace_back(kSmClockVariable,
                                     pinned_mhz > 0 ? std::to_string(pinned_mhz) : "");
    request.cgroup = record.cgroup;
    request.out = log.out();
    request.err = log.err();
    request.started = [&] {
      log.Start();
      row.toolchain = ToolchainJson(toolchain_, devices_[device_], nvml_.get());
      books_.Started(row);
    };
    if (options_.clocks != ClockPolicy::kOff) request.sample = [&] { SampleClocks(&clocks); };
    const Result<JobEnd> end = RunJobProcess(request, &signals_);
    if (CanReadClocks()) clocks.After();
    books_.AwaitStarted();
    record.released = !end || end->left.empty();
    LetGo(record);
    if (end && !end->left.empty()) log.Abandon();
    if (!end) log.Start();  // closes the job's ends, so that nobody waits for them
    log.Finish();
    const int code = ExitCodeOf(end);
    FinishRow(end, code, clocks, &row);
    SweepDeadHolders(lock_directory_);  // of devices that nobody may ask for again
    return code;
  }

  Result<> Prepare(const HolderRecord& record, ClockKeeper* clocks, JobLog* log) {
    CRUCIBLE_TRY(CheckDeviceIsFree());
    if (CanReadClocks()) {
      clocks->Use(nvml_.get());
      CRUCIBLE_TRY(Pin(record, clocks));
    }
    if (!record.log_path.empty()) {
      CRUCIBLE_ASSIGN(*log, JobLog::Open(record.log_path));
    }
    return {};
  }

  bool CanReadClocks() const { return !devices_[device_].is_gpu || nvml_ != nullptr; }

  // The first look comes 50 ms after the start, and by it NVML where the job did not wait for it:
  // a job that is over by then has computed nothing, because a CUDA context alone takes longer.
  void SampleClocks(ClockKeeper* clocks) {
    if (!CanReadClocks()) {
      if (!why_no_nvml_.empty()) return;
      LoadNvml();
      if (nvml_ == nullptr) return Say("gpu_run: the clocks are not recorded: " + why_no_nvml_);
      clocks->Use(nvml_.get());
    }
    clocks->During();
  }

  // The mark comes first: a runner killed between the two must not leave a lock that nobody knows.
  Result<> Pin(const HolderRecord& record, ClockKeeper* clocks) {
    const fs::path mark = PinMark(lock_directory_, record.device);
    std::error_code ignored;
    const bool pins = options_.clocks == ClockPolicy::kPin && devices_[device_].is_gpu;
    const bool is_new = pins && !fs::exists(mark, ignored);
    if (pins) CRUCIBLE_TRY(AppendLine(mark, job_));
    CRUCIBLE_ASSIGN(const std::string warning, clocks->Before());
    if (!warning.empty()) Say("gpu_run: " + warning);
    if (is_new && clocks->report().pinned_mhz == 0) fs::remove(mark, ignored);
    return {};
  }

  void LetGo(const HolderRecord& record) {
    if (const auto written = folders_[device_].WriteHolder(record); !written)
      Say("gpu_run: " + written.error().text);  // the next holder looks for survivors in vain
    Unlock();
  }

  void Unlock() {
    lock_.Reset();
    WakeNext(lock_directory_, folders_[device_]);
  }

  // The device is not fit for a job. `record`: to be left as released; null: the file stays.
  Result<int> NotFit(HolderRecord* record, const Error& error) {
    if (record != nullptr) {
      record->released = true;
      record->started_ms = SystemClock().UnixMs();
      LetGo(*record);
    } else {
      Unlock();
    }
    return devices_.size() > 1 ? TryAnother(error) : Refused(error);
  }

  // Another would do as well: back into the others' queues.
  Result<int> TryAnother(const Error& error) {
    Say("gpu_run: " + error.text + "; trying another device");
    devices_.erase(devices_.begin() + static_cast<std::ptrdiff_t>(device_));
    folders_.erase(folders_.begin() + static_cast<std::ptrdiff_t>(device_));
    return TakeTurn();
  }

  // The call fails, and its row says that it did.
  Result<int> Refused(const Error& error) {
    JobRow row = RowOf(MakeRecord());
    row.started_ms.reset();
    row.ended_ms = SystemClock().UnixMs();
    row.exit_code = kExitRunnerFailed;
    row.outcome = "failed";
    books_.Ended(row);
    return tl::unexpected(error);
  }

  void FinishRow(const Result<JobEnd>& end, int code, const ClockKeeper& clocks, JobRow* row) {
    row->exit_code = code;
    row->ended_ms = end ? end->ended_ms : SystemClock().UnixMs();
    if (end && end->status.signal != 0) row->signal = end->status.signal;
    row->outcome = OutcomeOf(code, end ? end->status.signal : 0, end && end->hit_limit,
                             end && end->stopped_by != 0);
    row->clocks = ToJson(clocks.report());
    row->drift = DriftVerdict(clocks.report());
    if (row->drift == "gone")
      Say("gpu_run: the GPU stopped answering while the job ran; look at dmesg and nvidia-smi");
    if (options_.say_clocks) Say("gpu_run: " + DescribeAfter(clocks.report()));
    books_.Ended(*row);
  }

  // A call made inside the job that holds the device: no wait, no lock, no pin; only its own limit.
  Result<int> RunInside(std::size_t device, const Token& token) {
    device_ = device;
    JobRequest request = MakeRequest(token.nonce, Variable(kJobVariable));
    const UniqueFd holder = OpenPidfd(token.holder);
    request.holder_pidfd = holder.get();
    // Once more: between the first look and the descriptor the pid may have become another's.
    if (const std::string why = WhyInvalid(token, folders_[device]); !why.empty())
      return Fail(ErrorKind::kConflict, "gpu_run", token.device,
                  "the job this call was made in ended meanwhile: " + why, "start the job again");
    return ExitCodeOf(RunJobProcess(request, &signals_));
  }

  int ExitCodeOf(const Result<JobEnd>& end) const {
    if (!end) {
      Say("gpu_run: " + end.error().text);
      return end.error().kind == ErrorKind::kNotFound ? kExitNoCommand : kExitCannotRun;
    }
    for (const pid_t pid : end->left)
      Say(
          fmt::format("gpu_run: process {} of the job could not be ended; the next job will try "
                      "again before it starts",
                      pid));
    if (end->hit_limit) {
      Say(fmt::format("gpu_run: the job ran past its limit of {} and was ended",
                      FormatDuration(*options_.limit_ms)));
      return kExitRunLimit;
    }
    return end->status.ShellCode();
  }

  const RunOptions& options_;
  RunnerSignals signals_;
  std::unique_ptr<Nvml> nvml_;  // null: not needed so far, or why_no_nvml_ says why
  std::string why_no_nvml_;
  std::optional<Toolchain> toolchain_;
  std::vector<Device> devices_;
  fs::path lock_directory_;
  std::vector<DeviceFolder> folders_;
  std::vector<Token> tokens_;  // the valid ones
  std::string job_, nonce_;
  std::int64_t queued_ms_ = 0, started_waiting_ms_ = 0;
  std::size_t device_ = 0;  // index of the one taken
  std::uint64_t sequence_ = 0;
  UniqueFd lock_;
  Bookkeeper books_;
};

}  // namespace

int RunGpuJob(const RunOptions& options) {
  const Result<int> code = Runner(options).Run();
  if (code) return *code;
  Say("gpu_run: " + code.error().text);
  return code.error().kind == ErrorKind::kUsage ? 2 : kExitRunnerFailed;
}

}  // namespace crucible
