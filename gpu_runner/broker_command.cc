// `gpu_run broker`: a broker for people who run a sandbox of their own. See gpu_command.h.
#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/paths.h"
#include "gpu_runner/broker.h"
#include "gpu_runner/broker_message.h"
#include "gpu_runner/gpu_command.h"
#include "gpu_runner/job_process.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr char kBrokerHelp[] =
    R"(usage: gpu_run broker --socket PATH --root FOLDER [--root FOLDER...] [-- COMMAND...]

Serves the socket so that a sandbox into which it is bound can use the device without having one:
inside, set CRUCIBLE_BROKER to the socket's path there, and call gpu_run as anywhere. A job may only
run in a FOLDER (same path inside and outside), and runs outside the sandbox, as you.

  --socket PATH   made in a folder of mode 0700 that nobody else may enter
  --root FOLDER   where jobs may run
  --device D      the device of every job, whatever it asks for
  -- COMMAND      run it with CRUCIBLE_BROKER set, serve until it ends, return its exit code;
                  without it, serve until a signal
)";

struct Words {
  BrokerSpec spec;
  std::vector<std::string> command;
  bool help = false;
};

tl::unexpected<Error> Wrong(std::string_view word, std::string_view cause) {
  return Fail(ErrorKind::kUsage, "gpu_run broker", word, cause, "see `gpu_run broker --help`");
}

Result<Words> Parse(const std::vector<std::string>& words) {
  Words parsed;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      parsed.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      if (parsed.command.empty()) return Wrong("", "no command was given after --");
      break;
    }
    if (word == "--help" || word == "-h") {
      parsed.help = true;
      return parsed;
    }
    if (word != "--socket" && word != "--root" && word != "--device")
      return Wrong(word, "there is no such option");
    if (i + 1 == words.size()) return Wrong(word, "it needs a value");
    const std::string& value = words[++i];
    if (word == "--socket") parsed.spec.socket = fs::absolute(value);
    if (word == "--root") parsed.spec.roots.emplace_back(value);
    if (word == "--device") parsed.spec.forced_options = {"--device", value};
  }
  if (parsed.spec.socket.empty()) return Wrong("", "it needs --socket");
  if (parsed.spec.roots.empty()) return Wrong("", "it needs a --root");
  parsed.spec.gpu_run = ProgramDirectory() / "gpu_run";
  parsed.spec.may_hurry = parsed.spec.may_pin = true;  // its owner's own jobs
  return parsed;
}

Result<int> Serve(Words words) {
  // Blocked before any thread starts, so that a signal comes here alone.
  CRUCIBLE_ASSIGN(RunnerSignals signals, RunnerSignals::Block());
  CRUCIBLE_ASSIGN(const auto broker, Broker::Start(std::move(words.spec)));
  std::optional<Subprocess> child;
  if (words.command.empty()) {
    std::fprintf(stderr, "gpu_run: serving %s\n", broker->socket().c_str());
  } else {
    SubprocessSpec command;
    command.argv = words.command;
    command.environment[kBrokerVariable] = broker->socket().string();
    command.unset = {"CRUCIBLE_GPU_TOKEN", "CRUCIBLE_JOB_NONCE", "CRUCIBLE_JOB_ID"};
    command.in = Stdio::kInherit;
    command.new_process_group = false;  // the terminal's Ctrl-C reaches it by itself
    CRUCIBLE_ASSIGN(child, Subprocess::Start(command));
  }
  for (;;) {
    pollfd items[2] = {{signals.fd(), POLLIN, 0}, {child ? child->pidfd() : -1, POLLIN, 0}};
    ::poll(items, 2, -1);
    const auto stop = signals.NextStop();
    if (stop && !child) return 0;
    if (stop && *stop != SIGINT) child->Signal(*stop);
    if (!child || items[1].revents == 0) continue;
    CRUCIBLE_ASSIGN(const ExitStatus status, child->Wait());
    return status.ShellCode();
  }
}

}  // namespace

int BrokerCommand(const std::vector<std::string>& words) {
  auto parsed = Parse(words);
  if (parsed && parsed->help) {
    std::fputs(kBrokerHelp, stdout);
    return 0;
  }
  const Result<int> code =
      parsed ? Serve(std::move(*parsed)) : tl::unexpected(std::move(parsed.error()));
  if (code) return *code;
  std::fprintf(stderr, "%s\n", code.error().text.c_str());
  return ExitCode(code.error());
}

}  // namespace crucible
