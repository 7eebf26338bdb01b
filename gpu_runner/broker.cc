#include "gpu_runner/broker.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/process_identity.h"
#include "gpu_runner/broker_job.h"
#include "gpu_runner/broker_message.h"
#include "gpu_runner/run_job.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kEndWait{20'000};  // longer than gpu_run's own grace
constexpr int kMaxDepth = 256;

Result<BrokerSpec::Peer> KernelsPeer(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return Fail(ErrorKind::kIo, "identify", "caller", std::strerror(errno));
  return BrokerSpec::Peer{credentials.uid, credentials.pid};
}

bool IsReadable(short revents) { return (revents & (POLLIN | POLLHUP | POLLERR)) != 0; }

}  // namespace

struct Broker::Impl {
  BrokerSpec spec;
  std::vector<fs::path> roots;
  UniqueFd listening, stop;
  std::thread accepting;

  struct Connection {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  std::list<Connection> connections;  // of the accepting thread alone

  struct Running {
    pid_t gpu_run = 0;
    std::string device;
  };
  std::mutex mutex;
  std::list<Running> running;  // under mutex

  void Accept();
  void Serve(const UniqueFd& socket);
  Result<> Handle(const UniqueFd& socket);
  Result<BrokerRequest> Receive(const UniqueFd& socket, Streams* streams);
  const Running* HolderOf(pid_t caller);
  int RunJob(const UniqueFd& socket, BrokerJob job, Subprocess child);
};

void Broker::Impl::Accept() {
  for (;;) {
    pollfd items[2] = {{listening.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
    if (::poll(items, 2, -1) < 0 && errno != EINTR) break;
    if (items[1].revents != 0) break;
    if (items[0].revents == 0) continue;
    UniqueFd socket(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {  // out of descriptors, perhaps: one that ends gives some back
      SystemClock().SleepFor(std::chrono::milliseconds(20));
      continue;
    }
    connections.remove_if([](Connection& connection) {
      if (!connection.done) return false;
      connection.thread.join();
      return true;
    });
    if (connections.size() >= static_cast<std::size_t>(spec.max_connections)) {
      (void)SendMessage(socket.get(),
                        Encode({BrokerNote::kRefused, kExitRunnerFailed,
                                fmt::format("broker refuses the call: {} others are being served; "
                                            "call again when one has ended",
                                            connections.size())}),
                        nullptr);
      continue;
    }
    Connection& connection = connections.emplace_back();
    connection.thread = std::thread([this, &connection, own = std::move(socket)] {
      Serve(own);
      connection.done = true;
    });
  }
  for (Connection& connection : connections) connection.thread.join();
}

void Broker::Impl::Serve(const UniqueFd& socket) {
  const Result<> handled = Handle(socket);
  if (handled) return;
  const int code = handled.error().kind == ErrorKind::kUsage ? 2 : kExitRunnerFailed;
  (void)SendMessage(socket.get(), Encode({BrokerNote::kRefused, code, handled.error().text}),
                    nullptr);
}

Result<BrokerRequest> Broker::Impl::Receive(const UniqueFd& socket, Streams* streams) {
  pollfd items[2] = {{socket.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
  const int ready = ::poll(items, 2, spec.hello_ms);
  if (ready == 0)
    return Fail(ErrorKind::kTimeout, "read request", "",
                fmt::format("none came within {} ms", spec.hello_ms));
  if (items[1].revents != 0 || !IsReadable(items[0].revents))
    return Fail(ErrorKind::kInterrupted, "read request", "", "the broker ends");
  CRUCIBLE_ASSIGN(const std::optional<std::string> message, ReceiveMessage(socket.get(), streams));
  if (!message) return Fail(ErrorKind::kIo, "read request", "", "the caller has gone");
  return DecodeRequest(*message);
}

// The job that the caller is part of, if any: it descends from a gpu_run that was started here.
const Broker::Impl::Running* Broker::Impl::HolderOf(pid_t caller) {
  for (int depth = 0; caller > 1 && depth < kMaxDepth; caller = ParentOf(caller), ++depth)
    for (const Running& job : running)
      if (job.gpu_run == caller) return &job;
  return nullptr;
}

Result<> Broker::Impl::Handle(const UniqueFd& socket) {
  CRUCIBLE_ASSIGN(const BrokerSpec::Peer peer, spec.peer_of(socket.get()));
  if (peer.uid != ::geteuid())
    return Fail(ErrorKind::kConflict, "broker refuses", "the call",
                fmt::format("it comes from user {}, this socket serves user {} alone", peer.uid,
                            ::geteuid()));
  Streams streams;
  CRUCIBLE_ASSIGN(const BrokerRequest request, Receive(socket, &streams));
  CRUCIBLE_ASSIGN(BrokerJob job, PrepareBrokerJob(spec, roots, request, streams));
  {
    const std::lock_guard lock(mutex);
    if (const Running* holder = HolderOf(peer.pid)) {
      if (!job.device.empty() && job.device != holder->device)
        return Fail(ErrorKind::kConflict, "take device", job.device,
                    "this call is made inside a job on another",
                    "a job in a sandbox has one device; leave --device out");
      return SendMessage(socket.get(), Encode({BrokerNote::kRunHere, 0, ""}), nullptr);
    }
  }
  CRUCIBLE_ASSIGN(Subprocess child, Subprocess::Start(job.spec));
  for (UniqueFd& stream : streams) stream.Reset();  // the job's end must be its readers' end
  const int code = RunJob(socket, std::move(job), std::move(child));
  return SendMessage(socket.get(), Encode({BrokerNote::kExit, code, ""}), nullptr);
}

// Until gpu_run ends. A signal is handed on; a caller that has gone, or the broker's end, is one.
int Broker::Impl::RunJob(const UniqueFd& socket, BrokerJob job, Subprocess child) {
  std::list<Running>::iterator entry;
  {
    const std::lock_guard lock(mutex);
    entry = running.insert(running.end(), {child.pid(), job.device});
  }
  bool asked_to_end = false;
  while (!asked_to_end) {
    pollfd items[3] = {
        {child.pidfd(), POLLIN, 0}, {socket.get(), POLLIN, 0}, {stop.get(), POLLIN, 0}};
    if (::poll(items, 3, -1) < 0) continue;
    if (items[0].revents != 0) break;
    asked_to_end = items[2].revents != 0;
    if (!asked_to_end && IsReadable(items[1].revents)) {
      const auto message = ReceiveMessage(socket.get(), nullptr);
      const auto reply = message && *message ? DecodeReply(**message) : std::nullopt;
      const bool known = reply && reply->note == BrokerNote::kSignal &&
                         (reply->number == SIGINT || reply->number == SIGTERM ||
                          reply->number == SIGHUP || reply->number == SIGQUIT);
      if (known) child.Signal(reply->number);
      asked_to_end = !known;
    }
    if (asked_to_end) child.Signal(SIGTERM);
  }
  if (!child.Wait(kEndWait)) child.Signal(SIGKILL);
  const auto ended = child.Wait();
  const std::lock_guard lock(mutex);
  running.erase(entry);
  return ended ? ended->ShellCode() : kExitRunnerFailed;
}

Broker::Broker(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

const fs::path& Broker::socket() const { return impl_->spec.socket; }

Result<std::unique_ptr<Broker>> Broker::Start(BrokerSpec spec) {
  auto impl = std::make_unique<Impl>();
  for (const fs::path& root : spec.roots) {
    std::error_code error;
    impl->roots.push_back(fs::canonical(root, error));
    if (error)
      return Fail(ErrorKind::kNotFound, "serve jobs in", root.string(), error.message(),
                  "check the path");
  }
  if (!spec.peer_of) spec.peer_of = KernelsPeer;
  CRUCIBLE_ASSIGN(impl->listening, ListenForJobs(spec.socket));
  impl->stop = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  if (!impl->stop.valid())
    return Fail(ErrorKind::kIo, "create", "event descriptor", std::strerror(errno));
  impl->spec = std::move(spec);
  impl->accepting = std::thread(&Impl::Accept, impl.get());
  return std::unique_ptr<Broker>(new Broker(std::move(impl)));
}

Broker::~Broker() {
  const std::uint64_t one = 1;
  (void)!::write(impl_->stop.get(), &one, sizeof one);
  impl_->accepting.join();
  std::error_code ignored;
  fs::remove(impl_->spec.socket, ignored);
}

}  // namespace crucible
