// harness_client.h: drives an eigh_harness process over the protocol, for tests.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/json.h"
#include "base/subprocess.h"

namespace crucible::eigh {

class HarnessClient {
 public:
  using Json = nlohmann::json;

  static constexpr const char* kCheats = CRUCIBLE_CHEATS_DIR;
  static std::string Fixture(const std::string& name) {
    return std::string(kCheats) + "/" + name + ".so";
  }

  // A null process with `error` set when it could not be started.
  explicit HarnessClient(const std::string& library, std::vector<std::string> more = {}) {
    int request[2], reply[2];
    if (::pipe2(request, O_CLOEXEC) != 0 || ::pipe2(reply, O_CLOEXEC) != 0) return;
    UniqueFd request_read(request[0]), reply_write(reply[1]);
    to_ = UniqueFd(request[1]);
    from_ = UniqueFd(reply[0]);
    SubprocessSpec spec;
    spec.argv = {CRUCIBLE_BIN_DIR "/eigh_harness", "--library", library, "--threads", "2"};
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    spec.environment = {{"CRUCIBLE_REQUEST_FD", "3"}, {"CRUCIBLE_REPLY_FD", "4"}};
    spec.descriptors = {{3, request_read.get()}, {4, reply_write.get()}};
    auto started = Subprocess::Start(spec);
    if (started.has_value()) process_.emplace(std::move(*started));
  }

  // {"ok":false,"error":"(no reply)"} when the harness has gone.
  Json AskText(const std::string& line) {
    const std::string text = line + "\n";
    if (::write(to_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return NoReply();
    for (;;) {
      if (const auto end = pending_.find('\n'); end != std::string::npos) {
        const Json reply = Json::parse(pending_.substr(0, end), nullptr, false);
        pending_.erase(0, end + 1);
        return reply;
      }
      char buffer[4096];
      const ssize_t count = ::read(from_.get(), buffer, sizeof buffer);
      if (count <= 0) return NoReply();
      pending_.append(buffer, static_cast<std::size_t>(count));
    }
  }
  Json Ask(const Json& request) { return AskText(request.dump()); }
  Json Hello() { return Ask({{"op", "hello"}, {"protocol", 1}}); }
  Json Check(const Json& parameters, std::uint64_t seed = 7) {
    return Ask({{"op", "check"}, {"case", parameters}, {"seed", seed}});
  }
  Json Prepare(const Json& parameters, std::uint64_t seed = 9) {
    return Ask({{"op", "prepare"}, {"case", parameters}, {"seed", seed}});
  }
  Json Slot(double budget_ms, int min_calls, int max_calls) {
    return Ask({{"op", "slot"},
                {"budget_ms", budget_ms},
                {"min_calls", min_calls},
                {"max_calls", max_calls}});
  }
  pid_t pid() const { return process_->pid(); }
  Result<ExitStatus> Wait() { return process_->Wait(std::chrono::seconds(20)); }
  void CloseRequests() { to_.Reset(); }

 private:
  static Json NoReply() { return {{"ok", false}, {"error", "(no reply)"}}; }

  std::optional<Subprocess> process_;
  UniqueFd to_, from_;
  std::string pending_;
};

}  // namespace crucible::eigh
