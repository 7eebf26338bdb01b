#include "orchestrator/agents/mcp/mcp_socket.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr int kTickMs = 200;  // how soon the end of a server or of the mission is noticed
constexpr auto kGoodbye = std::chrono::seconds(5);

Result<sockaddr_un> AddressOf(const fs::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path)
    return Fail(ErrorKind::kUsage, "use socket", socket.string(), "its path is too long", "");
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size() + 1);
  return address;
}

Result<UniqueFd> NewSocket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return Fail(ErrorKind::kIo, "make", "a socket", std::strerror(errno), "");
  return socket;
}

bool WriteAll(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(fd, bytes, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

// What there is to read; false at the end.
bool Carry(int from, int to) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::read(from, bytes.data(), bytes.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  return count > 0 && WriteAll(to, bytes.data(), static_cast<std::size_t>(count));
}

}  // namespace

struct McpSocket::Impl {
  UniqueFd listener;
  SubprocessSpec server;
  std::jthread thread;  // last: it uses the rest

  void Serve(const std::stop_token& stop) {
    std::optional<Subprocess> running;
    while (!stop.stop_requested()) {
      if (running) {
        if (running->Wait(std::chrono::milliseconds(kTickMs))) running.reset();
        continue;
      }
      pollfd waits{listener.get(), POLLIN, 0};
      if (::poll(&waits, 1, kTickMs) <= 0) continue;
      const UniqueFd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) continue;
      SubprocessSpec spec = server;
      spec.descriptors = {{0, client.get()}, {1, client.get()}};
      if (auto started = Subprocess::Start(spec)) running.emplace(std::move(*started));
    }
    if (!running) return;
    running->Signal(SIGTERM);
    if (!running->Wait(kGoodbye)) running->Signal(SIGKILL);
  }
};

McpSocket::McpSocket(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
McpSocket::~McpSocket() = default;

Result<std::unique_ptr<McpSocket>> McpSocket::Start(const fs::path& socket, SubprocessSpec server) {
  CRUCIBLE_ASSIGN(const sockaddr_un address, AddressOf(socket));
  auto impl = std::make_unique<Impl>();
  CRUCIBLE_ASSIGN(impl->listener, NewSocket());
  if (::bind(impl->listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
          0 ||
      ::listen(impl->listener.get(), 4) != 0)
    return Fail(ErrorKind::kIo, "listen on", socket.string(), std::strerror(errno), "");
  impl->server = std::move(server);
  Impl* self = impl.get();
  impl->thread = std::jthread([self](const std::stop_token& stop) { self->Serve(stop); });
  return std::unique_ptr<McpSocket>(new McpSocket(std::move(impl)));
}

Result<> RelayMcp(const fs::path& socket, int in, int out) {
  CRUCIBLE_ASSIGN(const sockaddr_un address, AddressOf(socket));
  CRUCIBLE_ASSIGN(const UniqueFd server, NewSocket());
  if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Fail(ErrorKind::kNotFound, "reach", "the mission's tools at " + socket.string(),
                std::strerror(errno),
                "run it in a mission's sandbox, or name a mission with --mission FILE");
  bool open = true;  // the input
  for (;;) {
    pollfd waits[2] = {{server.get(), POLLIN, 0}, {open ? in : -1, POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR)
      return Fail(ErrorKind::kIo, "wait for", "the mission's tools", std::strerror(errno), "");
    if (waits[1].revents != 0 && !Carry(in, server.get())) {
      open = false;
      ::shutdown(server.get(), SHUT_WR);  // the server ends, and with it the other direction
    }
    if (waits[0].revents != 0 && !Carry(server.get(), out)) return {};
  }
}

}  // namespace crucible
