#include "checks/judge/harness_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/json.h"

namespace crucible::judge {
namespace {

constexpr int kRequestFd = 3, kReplyFd = 4;  // in the child
constexpr std::size_t kLongestReply = 1u << 20;
constexpr std::size_t kLastWords = 300;
constexpr std::int64_t kByeLimitMs = 500;

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return text;
}

}  // namespace

Result<HarnessProcess> HarnessProcess::Start(const std::vector<std::string>& command,
                                             const std::filesystem::path& log, Clock& clock) {
  // A socket for the requests: writing to a pipe whose reader is dead would raise SIGPIPE.
  std::array<int, 2> request_ends, reply_ends;
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, request_ends.data()) != 0)
    return Fail(ErrorKind::kIo, "start harness", "", std::strerror(errno));
  UniqueFd request_here(request_ends[0]), request_there(request_ends[1]);
  if (::pipe2(reply_ends.data(), O_CLOEXEC) != 0)
    return Fail(ErrorKind::kIo, "start harness", "", std::strerror(errno));
  UniqueFd reply_here(reply_ends[0]), reply_there(reply_ends[1]);

  auto process = Subprocess::Start(
      {.argv = command,
       .environment = {{"CRUCIBLE_REQUEST_FD", std::to_string(kRequestFd)},
                       {"CRUCIBLE_REPLY_FD", std::to_string(kReplyFd)}},
       .out = Stdio::kFile,
       .err = Stdio::kFile,
       .log_path = log,
       .descriptors = {{kRequestFd, request_there.get()}, {kReplyFd, reply_there.get()}}});
  if (!process) return Within("start harness", process.error());
  return HarnessProcess(std::move(*process), std::move(request_here), std::move(reply_here), log,
                        clock);
}

std::string HarnessProcess::LastWords() const {
  auto text = ReadFile(log_);
  if (!text || text->empty()) return "";
  while (!text->empty() && text->back() == '\n') text->pop_back();
  if (text->size() > kLastWords) *text = "…" + text->substr(text->size() - kLastWords);
  return fmt::format(" (its last words: {})", OneLine(*text));
}

tl::unexpected<Error> HarnessProcess::Broken(ErrorKind kind, const std::string& op,
                                             const std::string& cause) {
  broken_ = true;
  process_.Signal(SIGKILL);
  (void)process_.Wait(std::chrono::milliseconds(5000));
  return Fail(kind, "harness request", op, cause + LastWords());
}

Result<> HarnessProcess::Send(const std::string& line, const std::string& op) {
  for (std::size_t sent = 0; sent < line.size();) {
    const auto n = ::send(requests_.get(), line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const auto status = process_.Wait(std::chrono::milliseconds(1000));
      return Broken(
          ErrorKind::kInternal, op,
          status ? "it had ended with " + status->Describe() : "it no longer reads requests");
    }
    sent += static_cast<std::size_t>(n);
  }
  return {};
}

Result<std::string> HarnessProcess::ReadLine(std::int64_t limit_ms, const std::string& op) {
  const std::int64_t end_ns = clock_->MonotonicNs() + limit_ms * 1'000'000;
  for (;;) {
    if (const auto newline = buffer_.find('\n'); newline != std::string::npos) {
      std::string line = buffer_.substr(0, newline);
      buffer_.erase(0, newline + 1);
      return line;
    }
    if (buffer_.size() > kLongestReply)
      return Broken(ErrorKind::kInternal, op, "a reply longer than 1 MiB");
    const std::int64_t left_ms = (end_ns - clock_->MonotonicNs()) / 1'000'000;
    if (left_ms <= 0)
      return Broken(ErrorKind::kTimeout, op, fmt::format("no reply in {} s", limit_ms / 1000.0));
    std::array<pollfd, 2> ready = {{{replies_.get(), POLLIN, 0}, {process_.pidfd(), POLLIN, 0}}};
    const int count = ::poll(ready.data(), ready.size(),
                             static_cast<int>(std::min<std::int64_t>(left_ms + 1, 60'000)));
    if (count < 0 && errno != EINTR) return Broken(ErrorKind::kInternal, op, std::strerror(errno));
    if (count <= 0) continue;
    if (ready[0].revents != 0) {
      std::array<char, 65536> chunk;
      const auto n = ::read(replies_.get(), chunk.data(), chunk.size());
      if (n > 0) {
        buffer_.append(chunk.data(), static_cast<std::size_t>(n));
        continue;
      }
      if (n < 0 && errno == EINTR) continue;
    }
    if (ready[1].revents == 0 && ready[0].revents == 0) continue;
    // Its end of the replies is closed, or it has ended with nothing left to read.
    const auto status = process_.Wait(std::chrono::milliseconds(1000));
    return Broken(ErrorKind::kInternal, op,
                  status ? "it ended with " + status->Describe() + " instead of a reply"
                         : "it closed its replies");
  }
}

Result<nlohmann::json> HarnessProcess::Ask(const nlohmann::json& request, std::int64_t limit_ms) {
  const std::string op = request.value("op", "?");
  if (broken_) return Fail(ErrorKind::kInternal, "harness request", op, "the harness is gone");
  CRUCIBLE_TRY(Send(request.dump() + "\n", op));
  CRUCIBLE_ASSIGN(const std::string line, ReadLine(limit_ms, op));
  nlohmann::json reply = nlohmann::json::parse(line, nullptr, false);
  if (!reply.is_object() || !reply.contains("ok") || !reply["ok"].is_boolean())
    return Broken(ErrorKind::kInternal, op,
                  fmt::format("a reply that is no JSON object with \"ok\": {}",
                              OneLine(line.substr(0, 120))));
  return reply;
}

void HarnessProcess::Stop() {
  if (!broken_) (void)Ask({{"op", "bye"}}, kByeLimitMs);
  requests_.Reset();
  if (!process_.Wait(std::chrono::milliseconds(kByeLimitMs))) process_.Signal(SIGKILL);
  (void)process_.Wait(std::chrono::milliseconds(5000));
  broken_ = true;
}

}  // namespace crucible::judge
