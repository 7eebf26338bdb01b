#include "gpu_runner/slurm_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/fd.h"
#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> Optional(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<T>();
}

}  // namespace

Result<> CreateReport(const fs::path& file) {
  CRUCIBLE_TRY(MakeDirectories(file.parent_path()));
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid())
    return Fail(ErrorKind::kIo, "create report", file.string(), std::strerror(errno),
                "check the folder's permissions and free space");
  return {};
}

Result<> CheckReport(const fs::path& file) {
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.valid()) return {};
  return Fail(ErrorKind::kUnavailable, "open report", file.string(), std::strerror(errno),
              "node " + Variable("SLURMD_NODENAME") +
                  " does not see the history's folder: set "
                  "CRUCIBLE_HOME to one on a file system that the nodes share");
}

Result<> WriteReport(const fs::path& file, const JobRow& row) {
  const Json json = {{"id", row.id},
                     {"device", row.device},
                     {"argv", row.argv},
                     {"directory", row.directory},
                     {"mission", row.mission},
                     {"priority", row.priority},
                     {"queued_ms", row.queued_ms},
                     {"started_ms", OrNull(row.started_ms)},
                     {"ended_ms", OrNull(row.ended_ms)},
                     {"exit_code", OrNull(row.exit_code)},
                     {"signal", OrNull(row.signal)},
                     {"outcome", row.outcome},
                     {"nonce", row.nonce},
                     {"log_path", row.log_path},
                     {"toolchain", row.toolchain},
                     {"clocks", row.clocks},
                     {"drift", row.drift},
                     {"node", Variable("SLURMD_NODENAME")},
                     {"step", Variable("SLURM_JOB_ID") + "." + Variable("SLURM_STEP_ID")}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const UniqueFd fd(::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd.valid() || ::write(fd.get(), text.data(), text.size()) != ssize_t(text.size()))
    return Fail(ErrorKind::kIo, "write report", file.string(), std::strerror(errno),
                "the job itself is not affected, its history is");
  return {};
}

SlurmReport ReadReport(const fs::path& file) {
  const Json json = Json::parse(ReadFile(file).value_or(""), nullptr, false);
  SlurmReport report;
  if (!json.is_object()) return report;
  try {
    JobRow& row = report.row;
    row.id = json.at("id");
    row.device = json.at("device");
    row.argv = json.at("argv").get<std::vector<std::string>>();
    row.directory = json.at("directory");
    row.mission = json.at("mission");
    row.priority = json.at("priority");
    row.queued_ms = json.at("queued_ms");
    row.started_ms = Optional<std::int64_t>(json, "started_ms");
    row.ended_ms = Optional<std::int64_t>(json, "ended_ms");
    row.exit_code = Optional<int>(json, "exit_code");
    row.signal = Optional<int>(json, "signal");
    row.outcome = json.at("outcome");
    row.nonce = json.at("nonce");
    row.log_path = json.at("log_path");
    row.clocks = json.at("clocks");
    row.drift = json.at("drift");
    report.node = json.at("node");
    report.step = json.at("step");
    Json toolchain = Json::parse(json.at("toolchain").get<std::string>(), nullptr, false);
    if (!toolchain.is_object()) toolchain = Json::object();
    toolchain["node"] = report.node;
    toolchain["slurm_step"] = report.step;
    row.toolchain = toolchain.dump(-1, ' ', false, Json::error_handler_t::replace);
    report.arrived = true;
  } catch (const Json::exception&) {
    return {};
  }
  return report;
}

}  // namespace crucible
