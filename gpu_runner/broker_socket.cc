// Where a broker listens: a socket that nobody else can reach. See broker_message.h.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "gpu_runner/broker_message.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr int kBacklog = 16;

tl::unexpected<Error> SocketFailure(const char* action, const fs::path& socket, int error,
                                    std::string_view next = "") {
  return Fail(ErrorKind::kIo, action, socket.string(), std::strerror(error), next);
}

// A socket's address has room for 107 bytes; the folder's descriptor stands for any longer path.
Result<sockaddr_un> AddressIn(const UniqueFd& folder, const fs::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name =
      fmt::format("/proc/self/fd/{}/{}", folder.get(), socket.filename().string());
  if (!folder.valid() || name.size() >= sizeof address.sun_path)
    return SocketFailure("name socket", socket, folder.valid() ? ENAMETOOLONG : errno,
                         "check its folder");
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  return address;
}

UniqueFd OpenFolder(const fs::path& folder) {
  return UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

Result<> MakePrivate(const fs::path& folder) {
  if (folder.empty() || !folder.is_absolute())
    return Fail(ErrorKind::kUsage, "listen in", folder.string(), "it is not a full path");
  CRUCIBLE_TRY(MakeDirectories(folder.parent_path()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return SocketFailure("create folder", folder, errno);
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return SocketFailure("look at", folder, errno);
  if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
    return Fail(ErrorKind::kConflict, "listen in", folder.string(),
                "it is not a folder of this user's alone",
                "give the socket a folder of its own with mode 0700");
  return {};
}

Result<UniqueFd> NewSocket(const fs::path& socket) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return SocketFailure("create", socket, errno);
  return fd;
}

int Connect(const UniqueFd& fd, const sockaddr_un& address) {
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

}  // namespace

Result<UniqueFd> ListenForJobs(const fs::path& socket) {
  CRUCIBLE_TRY(MakePrivate(socket.parent_path()));
  const UniqueFd folder = OpenFolder(socket.parent_path());
  CRUCIBLE_ASSIGN(const sockaddr_un address, AddressIn(folder, socket));
  CRUCIBLE_ASSIGN(const UniqueFd probe, NewSocket(socket));
  if (Connect(probe, address) == 0)
    return Fail(ErrorKind::kConflict, "listen on", socket.string(), "a broker serves it already",
                "end that one, or choose another path");
  if (errno == ECONNREFUSED) ::unlink(address.sun_path);
  CRUCIBLE_ASSIGN(UniqueFd listening, NewSocket(socket));
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return SocketFailure("bind", socket, errno, "remove what is there, or choose another path");
  if (::chmod(address.sun_path, 0600) != 0 || ::listen(listening.get(), kBacklog) != 0)
    return SocketFailure("listen on", socket, errno);
  return listening;
}

Result<UniqueFd> ConnectToBroker(const fs::path& socket) {
  const UniqueFd folder = OpenFolder(socket.parent_path());
  CRUCIBLE_ASSIGN(const sockaddr_un address, AddressIn(folder, socket));
  CRUCIBLE_ASSIGN(UniqueFd fd, NewSocket(socket));
  if (Connect(fd, address) != 0)
    return Fail(ErrorKind::kUnavailable, "reach broker at", socket.string(), std::strerror(errno),
                "the campaign that served it may have ended");
  return fd;
}

}  // namespace crucible
