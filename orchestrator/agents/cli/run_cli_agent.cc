#include "orchestrator/agents/cli/run_cli_agent.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/counted.h"
#include "orchestrator/agents/cli/cli_transcript.h"
#include "orchestrator/agents/llm/api_key.h"
#include "orchestrator/agents/llm/wire_json.h"
#include "orchestrator/agents/memory_file.h"

namespace crucible {
namespace {

using Kind = CliAgentOutcome::Kind;

constexpr std::int64_t kTickMs = 100;       // how soon a limit or a stop request is noticed
constexpr std::int64_t kAskEveryMs = 1000;  // spec.used_up
constexpr std::int64_t kDrainMs = 500;      // for output that is still in the pipe after the end
constexpr std::size_t kErrorTailBytes = 2000;

std::vector<std::string> SecretsHere() {
  std::vector<std::string> secrets;
  for (const std::string& name : KeyVariables()) {
    if (name == "CRUCIBLE_KEY_FILE") continue;  // a path
    if (const char* value = std::getenv(name.c_str())) secrets.emplace_back(value);
  }
  return secrets;
}

std::vector<std::string> Argv(const CliAgentSpec& spec) {
  const CliProfile& profile = spec.profile;
  std::vector<std::string> argv = profile.argv;
  const auto add = [&](const std::vector<std::string>& more) {
    argv.insert(argv.end(), more.begin(), more.end());
  };
  if (!spec.model.empty() && !profile.model_flag.empty()) {
    add(profile.model_flag);
    argv.push_back(spec.model);
  }
  add(spec.arguments);
  add(spec.sandboxed ? profile.when_sandboxed : profile.when_unsandboxed);
  return argv;
}

// One run. Its methods are called from Run's loop alone.
class Run {
 public:
  Run(const CliAgentSpec& spec, Clock& clock)
      : spec_(spec),
        clock_(clock),
        stream_(spec.profile.format),
        out_{{}, LineSplitter(spec.line_bytes)},
        err_{{}, LineSplitter(spec.line_bytes)} {}

  Result<CliAgentOutcome> ToTheEnd();

 private:
  struct Pipe {
    UniqueFd fd;
    LineSplitter lines;
  };

  Result<> Start();
  Result<> Loop();
  Result<> ReadFrom(Pipe* pipe, bool is_out);
  Result<> OnLine(bool is_out, const std::string& line, bool cut);
  void CheckLimits();
  void EndBecause(Kind kind, const std::string& detail);
  std::int64_t SinceMs(std::int64_t start_ns) const {
    return (clock_.MonotonicNs() - start_ns) / 1'000'000;
  }
  double Usd() const;
  CliAgentOutcome SoFar() const;
  void TellSpend();
  CliAgentOutcome Judge(const ExitStatus& status) const;

  const CliAgentSpec& spec_;
  Clock& clock_;
  CliStream stream_;
  Pipe out_, err_;
  std::optional<CliTranscript> transcript_;
  std::optional<Subprocess> child_;
  std::int64_t start_ns_ = 0, last_output_ns_ = 0, asked_ns_ = 0;
  std::array<std::int64_t, 5> told_{};  // turns and tokens, as last told
  double told_usd_ = 0;
  std::int64_t output_bytes_ = 0;
  std::string error_tail_;
  std::optional<std::pair<Kind, std::string>> ending_;  // why it is being ended
  std::int64_t term_ns_ = 0;                            // when SIGTERM was sent
  std::int64_t result_ns_ = 0;                          // when it said that it is done
  bool killed_ = false;
};

Result<> Run::Start() {
  CRUCIBLE_ASSIGN(transcript_, CliTranscript::Open(spec_.transcript, spec_.transcript_bytes,
                                                   SecretsHere(), clock_));
  CRUCIBLE_ASSIGN(const UniqueFd mission, MemoryFile(spec_.mission));
  SubprocessSpec command;
  command.argv = Argv(spec_);
  if (command.argv.empty())
    return Fail(ErrorKind::kUsage, "start", "an agent", "it has no command",
                "name a program or a profile");
  command.directory = spec_.directory;
  command.environment = spec_.environment;
  const auto& kept = spec_.profile.key_variables;
  for (const std::string& name : KeyVariables())
    if (std::find(kept.begin(), kept.end(), name) == kept.end()) command.unset.push_back(name);
  command.out = command.err = Stdio::kPipe;
  command.descriptors = {{0, mission.get()}};
  if (spec_.wrap) {
    CRUCIBLE_ASSIGN(command, spec_.wrap(std::move(command)));
  }
  CRUCIBLE_TRY(transcript_->Row("start", Dump({{"program", spec_.profile.name},
                                               {"argv", command.argv},
                                               {"directory", spec_.directory.string()}})));
  CRUCIBLE_ASSIGN(child_, Subprocess::Start(command));
  out_.fd = child_->TakeStdout();
  err_.fd = child_->TakeStderr();
  start_ns_ = last_output_ns_ = clock_.MonotonicNs();
  return {};
}

double Run::Usd() const {
  return stream_.totals().usd.value_or(PriceUsd(spec_.prices, stream_.totals().usage));
}

void Run::EndBecause(Kind kind, const std::string& detail) {
  if (ending_) return;
  ending_.emplace(kind, detail);
  child_->Signal(SIGTERM);
  term_ns_ = clock_.MonotonicNs();
}

void Run::CheckLimits() {
  const CliLimits& limits = spec_.limits;
  const CliTotals& totals = stream_.totals();
  const Usage& usage = totals.usage;
  const std::int64_t tokens = usage.input + usage.output + usage.cache_write;
  if (spec_.stop.stop_requested()) return EndBecause(Kind::kStopped, "asked to stop");
  if (totals.has_result) {  // what it did is done, whatever it used
    if (result_ns_ == 0) result_ns_ = clock_.MonotonicNs();
    if (SinceMs(result_ns_) > limits.goodbye_ms)
      EndBecause(Kind::kEnded, "it did not go by itself");
    return;
  }
  result_ns_ = 0;
  if (limits.turns > 0 && totals.turns > limits.turns)
    return EndBecause(Kind::kBudget, Counted(limits.turns, "turn") + " spent");
  if (limits.tokens > 0 && tokens > limits.tokens)
    return EndBecause(Kind::kBudget,
                      fmt::format("{} of {} tokens are spent", tokens, limits.tokens));
  if (limits.usd > 0 && Usd() > limits.usd)
    return EndBecause(Kind::kBudget,
                      fmt::format("${:.2f} of ${:.2f} are spent", Usd(), limits.usd));
  if (limits.wall_ms > 0 && SinceMs(start_ns_) > limits.wall_ms)
    return EndBecause(Kind::kBudget, FormatDuration(limits.wall_ms) + " have passed");
  if (output_bytes_ > limits.output_bytes)
    return EndBecause(Kind::kBudget, fmt::format("it printed {} bytes", output_bytes_));
  if (limits.silence_ms > 0 && SinceMs(last_output_ns_) > limits.silence_ms)
    return EndBecause(Kind::kHung, "silent for " + FormatDuration(limits.silence_ms));
  if (!spec_.used_up || SinceMs(asked_ns_) < kAskEveryMs) return;
  asked_ns_ = clock_.MonotonicNs();
  if (const std::string what = spec_.used_up(); !what.empty()) EndBecause(Kind::kBudget, what);
}

Result<> Run::OnLine(bool is_out, const std::string& line, bool cut) {
  CRUCIBLE_TRY(transcript_->Line(is_out ? "out" : "err", line, cut));
  if (!is_out) {
    error_tail_ += line + "\n";
    if (error_tail_.size() > kErrorTailBytes)
      error_tail_.erase(0, error_tail_.size() - kErrorTailBytes);
    return {};
  }
  for (CliEvent& event : stream_.Read(line)) {
    if (!spec_.on_event) continue;
    event.text = transcript_->Scrub(std::move(event.text));
    spec_.on_event(event);
  }
  TellSpend();
  return {};
}

CliAgentOutcome Run::SoFar() const {
  const CliTotals& totals = stream_.totals();
  CliAgentOutcome outcome;
  outcome.turns = totals.turns;
  outcome.usage = totals.usage;
  outcome.usage_known = totals.usage_known;
  outcome.usd = Usd();
  return outcome;
}

void Run::TellSpend() {
  if (!spec_.on_spend) return;
  const CliAgentOutcome now = SoFar();
  const std::array<std::int64_t, 5> used = {now.turns, now.usage.input, now.usage.output,
                                            now.usage.cache_read, now.usage.cache_write};
  if (used == told_ && now.usd == told_usd_) return;
  told_ = used;
  told_usd_ = now.usd;
  spec_.on_spend(now);
}

Result<> Run::ReadFrom(Pipe* pipe, bool is_out) {
  char buffer[1 << 16];
  const ssize_t count = ::read(pipe->fd.get(), buffer, sizeof buffer);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  Result<> result;
  const auto on_line = [&](const std::string& line, bool cut) {
    if (result) result = OnLine(is_out, line, cut);
    CheckLimits();  // line by line: a whole budget may come in one read
  };
  if (count <= 0) {
    pipe->fd.Reset();
    pipe->lines.Finish(on_line);
    return result;
  }
  output_bytes_ += count;
  last_output_ns_ = clock_.MonotonicNs();
  pipe->lines.Feed(std::string_view(buffer, static_cast<std::size_t>(count)), on_line);
  return result;
}

Result<> Run::Loop() {
  std::int64_t exited_ns = 0;
  while (out_.fd.valid() || err_.fd.valid() || exited_ns == 0) {
    pollfd items[3] = {{out_.fd.valid() ? out_.fd.get() : -1, POLLIN, 0},
                       {err_.fd.valid() ? err_.fd.get() : -1, POLLIN, 0},
                       {exited_ns == 0 ? child_->pidfd() : -1, POLLIN, 0}};
    if (::poll(items, 3, static_cast<int>(kTickMs)) < 0 && errno != EINTR)
      return Fail(ErrorKind::kIo, "wait for", "the agent", std::strerror(errno));
    if (items[0].revents != 0) CRUCIBLE_TRY(ReadFrom(&out_, true));
    if (items[1].revents != 0) CRUCIBLE_TRY(ReadFrom(&err_, false));
    if (items[2].revents != 0) {
      exited_ns = clock_.MonotonicNs();
      // Before it is reaped: its group is still its own. What it left behind ends with it.
      child_->Signal(SIGKILL);
    }
    if (exited_ns != 0) {
      if (SinceMs(exited_ns) > kDrainMs) break;
      continue;
    }
    CheckLimits();
    if (ending_ && !killed_ && SinceMs(term_ns_) > spec_.limits.goodbye_ms) {
      child_->Signal(SIGKILL);
      killed_ = true;
    }
  }
  return {};
}

CliAgentOutcome Run::Judge(const ExitStatus& status) const {
  const CliTotals& totals = stream_.totals();
  CliAgentOutcome outcome = SoFar();
  outcome.last_text = transcript_->Scrub(totals.last_text);
  outcome.status = status;
  const auto crashed = [&](std::string why) {
    outcome.kind = Kind::kCrashed;
    if (!error_tail_.empty()) why += "; it printed: " + error_tail_;
    outcome.detail = transcript_->Scrub(std::move(why));
  };
  if (ending_ && ending_->first != Kind::kEnded) {
    outcome.kind = ending_->first;
    outcome.detail = ending_->second;
  } else if (totals.out_of_turns) {
    outcome.kind = Kind::kBudget;
    outcome.detail = "its own limit of turns is spent";
  } else if (totals.is_error) {
    crashed("it says: " + totals.error);
  } else if (!ending_ && !status.ok()) {
    crashed(status.Describe());
  } else if (spec_.profile.says_when_done && !totals.has_result) {
    crashed("its output ended before its result");
  } else if (ending_) {
    outcome.detail = ending_->second;
  }
  return outcome;
}

Result<CliAgentOutcome> Run::ToTheEnd() {
  CRUCIBLE_TRY(Start());
  CRUCIBLE_TRY(Loop());
  CRUCIBLE_ASSIGN(const ExitStatus status, child_->Wait());
  const CliAgentOutcome outcome = Judge(status);
  const Usage& usage = outcome.usage;
  CRUCIBLE_TRY(transcript_->Row("end", Dump({{"outcome", ToString(outcome.kind)},
                                             {"detail", outcome.detail},
                                             {"turns", outcome.turns},
                                             {"input", usage.input},
                                             {"output", usage.output},
                                             {"cache_read", usage.cache_read},
                                             {"cache_write", usage.cache_write},
                                             {"usd", outcome.usd},
                                             {"exit", status.Describe()}})));
  return outcome;
}

}  // namespace

std::string ToString(CliAgentOutcome::Kind kind) {
  switch (kind) {
    case Kind::kEnded:
      return "ended";
    case Kind::kBudget:
      return "budget";
    case Kind::kHung:
      return "hung";
    case Kind::kCrashed:
      return "crashed";
    case Kind::kStopped:
      return "stopped";
  }
  return "unknown";
}

Result<CliAgentOutcome> RunCliAgent(const CliAgentSpec& spec, Clock& clock) {
  return Run(spec, clock).ToTheEnd();
}

}  // namespace crucible
