#include "gpu_runner/device_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Opens for every user of the machine: an ordinary umask would lock the second user out.
Result<UniqueFd> OpenShared(const fs::path& path) {
  // Anybody may write in the folder: a link there could name any file of this user's.
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() && errno == ENOENT) {
    fd = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (fd.valid()) ::fchmod(fd.get(), 0666);
  }
  if (!fd.valid())
    return Fail(ErrorKind::kIo, "open lock file", path.string(), std::strerror(errno),
                "check the folder's permissions or set CRUCIBLE_LOCK_DIR");
  return fd;
}

bool IsOnNetwork(const fs::path& path) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 &&
         IsNetworkFileSystem(static_cast<std::uint32_t>(info.f_type));
}

int FlockRetrying(int fd, int operation) {
  int result = 0;
  do {
    result = ::flock(fd, operation);
  } while (result != 0 && errno == EINTR);
  return result;
}

void MakeShared(const fs::path& path) {
  std::error_code ignored;
  if (fs::create_directory(path, ignored)) ::chmod(path.c_str(), 0777);
}

}  // namespace

bool IsNetworkFileSystem(std::uint32_t type) {
  constexpr std::uint32_t kTypes[] = {0x6969,  // NFS
                                      0x517B,  // SMB, CIFS, SMB2
                                      0xFF534D42, 0xFE534D42,
                                      0x5346414F,   // AFS
                                      0x00C36400,   // Ceph
                                      0x0BD00BD0,   // Lustre
                                      0x47504653,   // GPFS
                                      0x19830326};  // BeeGFS
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

Result<DeviceFolder> DeviceFolder::Open(const fs::path& lock_directory, const std::string& device) {
  DeviceFolder folder;
  folder.path_ = lock_directory / device;
  folder.device_ = device;
  if (IsOnNetwork(lock_directory))
    return Fail(ErrorKind::kUnavailable, "use lock directory", lock_directory.string(),
                "it is on a network file system, where a lock proves nothing",
                "set CRUCIBLE_LOCK_DIR to a local folder");
  MakeShared(folder.path_);
  MakeShared(folder.tickets());
  std::error_code ignored;
  if (!fs::is_directory(folder.tickets(), ignored))
    return Fail(ErrorKind::kIo, "create", folder.tickets().string(), "it is still not there",
                "check the permissions of the folder above it");
  return folder;
}

Result<UniqueFd> DeviceFolder::TryLock() const {
  CRUCIBLE_ASSIGN(UniqueFd fd, OpenShared(path_ / "lock"));
  if (FlockRetrying(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return UniqueFd();
  return Fail(ErrorKind::kIo, "lock device", device_, std::strerror(errno));
}

bool DeviceFolder::IsLocked() const {
  UniqueFd fd(::open((path_ / "lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return false;
  return FlockRetrying(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

std::optional<HolderRecord> DeviceFolder::ReadHolder() const {
  struct stat file {};
  if (::lstat((path_ / "holder").c_str(), &file) != 0 || !S_ISREG(file.st_mode))
    return std::nullopt;
  const auto text = ReadFile(path_ / "holder");
  if (!text) return std::nullopt;
  const Json json = Json::parse(*text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  try {
    HolderRecord record;
    record.released = json.at("released");
    record.nonce = json.at("nonce");
    record.job = json.at("job");
    record.device = device_;
    record.owner = file.st_uid;
    record.runner = ProcessIdentityFromText(json.at("runner").get<std::string>());
    record.argv = json.at("argv").get<std::vector<std::string>>();
    record.priority = json.value("priority", "normal");
    record.mission = json.value("mission", "");
    record.directory = json.value("directory", "");
    record.queued_ms = json.value("queued_ms", std::int64_t{0});
    record.started_ms = json.value("started_ms", std::int64_t{0});
    record.limit_ms = json.value("limit_ms", std::int64_t{0});
    record.sequence = json.value("sequence", std::uint64_t{0});
    record.database = json.value("database", "");
    record.cgroup = json.value("cgroup", "");
    record.log_path = json.value("log_path", "");
    return record;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Result<> DeviceFolder::WriteHolder(const HolderRecord& record) const {
  const Json json = {{"released", record.released},
                     {"nonce", record.nonce},
                     {"job", record.job},
                     {"runner", ToText(record.runner)},
                     {"argv", record.argv},
                     {"priority", record.priority},
                     {"mission", record.mission},
                     {"directory", record.directory},
                     {"queued_ms", record.queued_ms},
                     {"started_ms", record.started_ms},
                     {"limit_ms", record.limit_ms},
                     {"sequence", record.sequence},
                     {"database", record.database},
                     {"cgroup", record.cgroup},
                     {"log_path", record.log_path}};
  // A rename, so that a reader sees one record or the other; no sync, because a record is worth
  // nothing after a reboot (its boot id is another).
  const fs::path temporary = path_ / "holder.new";
  std::error_code ignored;
  fs::remove(temporary, ignored);
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (!fd.valid() || ::write(fd.get(), text.data(), text.size()) != ssize_t(text.size()) ||
      ::rename(temporary.c_str(), (path_ / "holder").c_str()) != 0)
    return Fail(ErrorKind::kIo, "write holder record", (path_ / "holder").string(),
                std::strerror(errno), "check free space and permissions of the lock directory");
  return {};
}

Result<UniqueFd> LockQueueMutex(const fs::path& lock_directory) {
  CRUCIBLE_ASSIGN(UniqueFd fd, OpenShared(lock_directory / "mutex"));
  if (FlockRetrying(fd.get(), LOCK_EX) != 0)
    return Fail(ErrorKind::kIo, "lock", (lock_directory / "mutex").string(), std::strerror(errno));
  return fd;
}

}  // namespace crucible
