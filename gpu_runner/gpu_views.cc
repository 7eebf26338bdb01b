// What people see of the queue and the history, and how they end a job: see gpu_command.h.
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/clock.h"
#include "base/json.h"
#include "base/paths.h"
#include "gpu_runner/clocks.h"
#include "gpu_runner/dead_holder.h"
#include "gpu_runner/device.h"
#include "gpu_runner/gpu_command.h"
#include "gpu_runner/history.h"
#include "gpu_runner/nvml.h"
#include "gpu_runner/queue.h"
#include "gpu_runner/waiter_line.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

// Devices that this machine has, and those that have a lock folder only (a GPU that vanished).
std::vector<std::string> DeviceIds(const fs::path& locks, Nvml* nvml) {
  std::vector<std::string> ids;
  for (const Device& device : ListDevices(nvml)) ids.push_back(device.id);
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(locks, ignored)) {
    const std::string id = item.path().filename().string();
    if (fs::is_directory(item.path() / "tickets", ignored) &&
        std::find(ids.begin(), ids.end(), id) == ids.end())
      ids.push_back(id);
  }
  return ids;
}

Json HolderJson(const HolderRecord& holder) {
  return {{"job", holder.job},           {"pid", holder.runner.pid},
          {"argv", holder.argv},         {"directory", holder.directory},
          {"mission", holder.mission},   {"started_ms", holder.started_ms},
          {"limit_ms", holder.limit_ms}, {"priority", holder.priority}};
}

Json RowJson(const JobRow& row) {
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"id", row.id},
          {"device", row.device},
          {"argv", row.argv},
          {"directory", row.directory},
          {"mission", row.mission},
          {"priority", row.priority},
          {"queued_ms", row.queued_ms},
          {"started_ms", number(row.started_ms)},
          {"ended_ms", number(row.ended_ms)},
          {"exit_code", number(row.exit_code)},
          {"signal", number(row.signal)},
          {"outcome", row.outcome.empty() ? Json(nullptr) : Json(row.outcome)},
          {"log_path", row.log_path},
          {"toolchain", Json::parse(row.toolchain, nullptr, false)},
          {"clocks", Json::parse(row.clocks, nullptr, false)},
          {"drift", row.drift}};
}

// A signal to exactly that process: a pid may have been given to another by now.
bool SignalExactly(const ProcessIdentity& identity, int number) {
  const UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, identity.pid, 0)));
  if (!fd.valid() || !IsAlive(identity)) return false;
  return ::syscall(SYS_pidfd_send_signal, fd.get(), number, nullptr, 0) == 0;
}

}  // namespace

Result<> PrintGpuStatus(bool json, std::ostream& out) {
  CRUCIBLE_ASSIGN(const fs::path locks, LockDirectory());
  SweepDeadHolders(locks);
  const auto nvml = Nvml::Load();
  const std::int64_t now = SystemClock().UnixMs();
  Json all = Json::array();
  for (const std::string& id : DeviceIds(locks, nvml ? nvml->get() : nullptr)) {
    CRUCIBLE_ASSIGN(const DeviceFolder folder, DeviceFolder::Open(locks, id));
    const bool locked = folder.IsLocked();
    auto holder = folder.ReadHolder();
    if (!locked || (holder && holder->released)) holder.reset();
    const std::vector<Ticket> waiting = WaitingTickets(folder);
    Json item = {{"device", id}, {"busy", locked}, {"waiting", Json::array()}};
    if (holder) item["holder"] = HolderJson(*holder);
    if (!json) {
      out << id << ": "
          << (locked
                  ? "busy, job " + (holder ? holder->job : "?") + ", " + DescribeHolder(holder, now)
                  : "free")
          << '\n';
    }
    for (const Ticket& ticket : waiting) {
      item["waiting"].push_back({{"job", ticket.job},
                                 {"pid", ticket.pid},
                                 {"priority", PriorityName(ticket.priority)},
                                 {"waited_ms", QueueNowMs() - ticket.queued_ms}});
      if (!json)
        out << fmt::format("  waiting: job {}, pid {}, {}, for {}\n", ticket.job, ticket.pid,
                           PriorityName(ticket.priority),
                           FormatDuration(QueueNowMs() - ticket.queued_ms));
    }
    all.push_back(std::move(item));
  }
  if (json) out << Dump({{"devices", all}}) << '\n';
  return {};
}

Result<> PrintGpuHistory(int count, bool json, std::ostream& out) {
  CRUCIBLE_ASSIGN(History history, History::Open(HistoryFileHere()));
  CRUCIBLE_ASSIGN(const std::vector<JobRow> rows, history.Recent(count));
  Json all = Json::array();
  for (const JobRow& row : rows) {
    if (json) {
      all.push_back(RowJson(row));
      continue;
    }
    const std::string outcome = !row.outcome.empty() ? row.outcome
                                : row.started_ms     ? "running"
                                                     : "waiting";
    const std::string ran = row.started_ms && row.ended_ms && row.outcome != "lost"
                                ? FormatDuration(*row.ended_ms - *row.started_ms)
                                : "-";
    out << fmt::format("{}  {}  {:<11}  {:>4}  {:>12}  {:<8}  {}  {}\n", FormatUtc(row.queued_ms),
                       row.id, outcome, row.exit_code ? std::to_string(*row.exit_code) : "-", ran,
                       row.drift.empty() ? "-" : row.drift, row.device, ShellWords(row.argv));
  }
  if (json) out << Dump({{"jobs", all}}) << '\n';
  return {};
}

Result<> CancelGpuJob(const std::string& job, bool json, std::ostream& out) {
  CRUCIBLE_ASSIGN(const fs::path locks, LockDirectory());
  const auto done = [&](const char* state) {
    if (json)
      out << Dump({{"job", job}, {"cancelled", true}, {"was", state}}) << '\n';
    else
      out << "cancelled the " << state << " job " << job << '\n';
  };
  for (const std::string& id : DeviceIds(locks, nullptr)) {
    CRUCIBLE_ASSIGN(const DeviceFolder folder, DeviceFolder::Open(locks, id));
    for (const Ticket& ticket : WaitingTickets(folder)) {
      if (ticket.job != job) continue;
      if (SignalExactly(IdentityOf(ticket.pid), SIGTERM)) return done("waiting"), Result<>();
    }
    const auto holder = folder.ReadHolder();
    if (!holder || holder->job != job || holder->released) continue;
    if (SignalExactly(holder->runner, SIGTERM)) return done("running"), Result<>();
    if (IsAlive(holder->runner))
      return Fail(ErrorKind::kIo, "cancel job", job, "its runner is another user's",
                  "ask its owner");
  }
  // A job of Slurm's is in no queue here; the gpu_run that answers for it is in its row.
  if (auto history = History::Open(HistoryFileHere())) {
    const auto row = history->Find(job);
    if (row && *row && (*row)->outcome.empty() &&
        SignalExactly(ProcessIdentityFromText((*row)->runner), SIGTERM))
      return done((*row)->started_ms ? "running" : "waiting"), Result<>();
  }
  return Fail(ErrorKind::kNotFound, "cancel job", job, "no such job waits or runs",
              "see `gpu_run status`");
}

Result<> PrintGpuLog(const std::string& job, bool follow, std::ostream& out) {
  CRUCIBLE_ASSIGN(History history, History::Open(HistoryFileHere()));
  CRUCIBLE_ASSIGN(std::optional<JobRow> row, history.Find(job));
  if (!row)
    return Fail(ErrorKind::kNotFound, "show log of job", job, "the history has no such job",
                "see `gpu_run history`");
  if (row->log_path.empty())
    return Fail(ErrorKind::kNotFound, "show log of job", job, "its output was not kept",
                "run it with --log");
  std::ifstream file(row->log_path, std::ios::binary);
  if (!file && !follow)
    return Fail(ErrorKind::kNotFound, "open job log", row->log_path, "it is not there",
                "it may have been removed, or the job still waits");
  char buffer[1 << 14];
  for (;;) {
    // The state first: what is written before the end is read after it was seen.
    const bool ended = !row->outcome.empty() || !IsAlive(ProcessIdentityFromText(row->runner));
    if (!file.is_open()) file.open(row->log_path, std::ios::binary);
    while (file.read(buffer, sizeof buffer), file.gcount() > 0) out.write(buffer, file.gcount());
    file.clear();
    out.flush();
    if (!follow || ended || !out) return {};
    SystemClock().SleepFor(std::chrono::milliseconds(100));
    CRUCIBLE_ASSIGN(row, history.Find(job));
    if (!row) return {};
  }
}

Result<> UnpinGpuClocks(bool json, std::ostream& out) {
  CRUCIBLE_ASSIGN(const fs::path locks, LockDirectory());
  CRUCIBLE_ASSIGN(const auto nvml, Nvml::Load());
  Json freed = Json::array();
  for (const Nvml::Gpu& gpu : nvml->gpus()) {
    const fs::path mark = PinMark(locks, gpu.uuid);
    std::error_code ignored;
    if (!fs::exists(mark, ignored)) continue;
    CRUCIBLE_TRY(nvml->ResetSmClock(gpu));
    fs::remove(mark, ignored);
    freed.push_back(gpu.uuid);
    if (!json) out << "gave back the SM clock of " << gpu.uuid << '\n';
  }
  if (json) out << Dump({{"unpinned", freed}}) << '\n';
  if (!json && freed.empty()) out << "no clock is pinned by gpu_run\n";
  return {};
}

}  // namespace crucible
