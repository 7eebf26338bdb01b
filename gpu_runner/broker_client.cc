#include "gpu_runner/broker_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "gpu_runner/broker_message.h"
#include "gpu_runner/job_process.h"
#include "gpu_runner/run_job.h"

namespace crucible {
namespace {

BrokerRequest MakeRequest(const std::vector<std::string>& words, const RunOptions& options) {
  BrokerRequest request;
  std::error_code ignored;
  request.directory = std::filesystem::current_path(ignored).string();
  request.options.assign(words.begin(), words.end() - std::ssize(options.command));
  request.command = options.command;
  for (char** item = environ; *item != nullptr; ++item) {
    const std::string_view text(*item);
    if (MayCrossToJob(text.substr(0, text.find('=')))) request.environment.emplace_back(text);
  }
  return request;
}

// This process is inside a job that the broker runs, which has the device.
Result<int> RunHere(const RunOptions& options, RunnerSignals* signals) {
  JobRequest request;
  request.argv = options.command;
  request.limit_ms = options.limit_ms;
  const Result<JobEnd> end = RunJobProcess(request, signals);
  if (end) return end->hit_limit ? kExitRunLimit : end->status.ShellCode();
  std::fprintf(stderr, "gpu_run: %s\n", end.error().text.c_str());
  return end.error().kind == ErrorKind::kNotFound ? kExitNoCommand : kExitCannotRun;
}

Result<int> Talk(const std::string& socket_path, const std::vector<std::string>& words,
                 const RunOptions& options) {
  CRUCIBLE_ASSIGN(RunnerSignals signals, RunnerSignals::Block());
  const std::string message = Encode(MakeRequest(words, options));
  if (message.size() > kMaxBrokerMessage)
    return Fail(
        ErrorKind::kUsage, "ask broker for", options.command.front(),
        fmt::format("the command has {} bytes, {} is the most", message.size(), kMaxBrokerMessage),
        "put its arguments into a file or a script");
  CRUCIBLE_ASSIGN(const UniqueFd socket, ConnectToBroker(socket_path));
  std::array<int, 3> streams{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int& stream : streams)
    if (::fcntl(stream, F_GETFD) < 0) stream = null.get();
  // A broker that is busy may have answered and hung up already: its answer says more than the
  // error.
  const Result<> sent = SendMessage(socket.get(), message, &streams);
  for (;;) {
    pollfd items[2] = {{socket.get(), POLLIN, 0}, {signals.fd(), POLLIN, 0}};
    if (::poll(items, 2, -1) < 0 && errno != EINTR) break;
    while (const auto stop = signals.NextStop())
      (void)SendMessage(socket.get(), Encode({BrokerNote::kSignal, *stop, ""}), nullptr);
    if (items[0].revents == 0) continue;
    CRUCIBLE_ASSIGN(const std::optional<std::string> answer, ReceiveMessage(socket.get(), nullptr));
    if (!answer) break;
    const auto reply = DecodeReply(*answer);
    if (!reply) break;
    switch (reply->note) {
      case BrokerNote::kExit:
        return reply->number;
      case BrokerNote::kRunHere:
        return RunHere(options, &signals);
      case BrokerNote::kRefused:
        return tl::unexpected(
            Error{reply->number == 2 ? ErrorKind::kUsage : ErrorKind::kConflict, reply->text});
      case BrokerNote::kSignal:
        break;
    }
  }
  CRUCIBLE_TRY(sent);
  return Fail(ErrorKind::kUnavailable, "wait for broker at", socket_path,
              "it has gone, and the job with it", "see whether the campaign still runs");
}

}  // namespace

int RunThroughBroker(const std::string& socket, const std::vector<std::string>& words,
                     const RunOptions& options) {
  const Result<int> code = Talk(socket, words, options);
  if (code) return *code;
  std::fprintf(stderr, "gpu_run: %s\n", code.error().text.c_str());
  switch (code.error().kind) {
    case ErrorKind::kUsage:
      return 2;
    case ErrorKind::kNotFound:
      return kExitNoCommand;
    default:
      return kExitRunnerFailed;
  }
}

}  // namespace crucible
