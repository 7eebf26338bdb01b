#include "orchestrator/agents/loop/agent_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/loop/conversation.h"
#include "orchestrator/agents/loop/transcript.h"
#include "orchestrator/agents/tools/function_tool.h"

namespace crucible {
namespace {

using nlohmann::json;
using Ends = std::optional<LoopEnd>;

// Calls that move a mission on, when they succeed.
const std::set<std::string> kProgress = {"edit_file", "write_file", "compare", "log_experiment",
                                         "commit"};
constexpr char kNoCall[] =
    "Nothing was done: every reply must call a tool. Go on with the mission, or end it with "
    "report.";
constexpr char kWriteNotes[] =
    "This conversation is nearly as long as it may be and will soon be restarted from the mission, "
    "the brief and your notes. Write now with note what you need to go on.";

std::size_t FixedBytes(const LoopSpec& spec) {
  std::size_t bytes = spec.system.size();
  for (const auto& tool : *spec.tools) {
    const ToolDescription& description = tool->description();
    bytes += description.name.size() + description.description.size() + description.schema.size();
  }
  return bytes;
}

const char* StopText(StopReason stop) {
  switch (stop) {
    case StopReason::kEnd:
      return "end";
    case StopReason::kToolUse:
      return "tool_use";
    case StopReason::kMaxTokens:
      return "max_tokens";
    case StopReason::kContextFull:
      return "context_full";
    case StopReason::kRefused:
      return "refused";
    case StopReason::kPaused:
      return "paused";
  }
  return "";
}

class Loop {
 public:
  explicit Loop(const LoopSpec& spec)
      : spec_(spec),
        clock_(spec.clock != nullptr ? spec.clock : &SystemClock()),
        transcript_(spec.transcript, spec.secrets, clock_),
        conversation_(spec.context_tokens, spec.reply_tokens, FixedBytes(spec)),
        start_ms_(clock_->UnixMs()) {
    spend_.model = spec.provider->model();
    for (const auto& tool : *spec.tools) descriptions_.push_back(tool->description());
  }

  Result<LoopOutcome> Run() {
    CRUCIBLE_TRY(transcript_.Write("start", {{"model", spend_.model}, {"system", spec_.system}}));
    CRUCIBLE_TRY(Begin());
    for (;;) {
      CRUCIBLE_TRY(Account());
      if (Interrupted()) return End(LoopEnd::kInterrupted);
      if (const Ends end = UsedUp(spec_.budgets, spend_, clock_->UnixMs())) return End(*end);
      if (conversation_.Full() && !conversation_.fresh()) CRUCIBLE_TRY(Restart("it is full"));
      CRUCIBLE_ASSIGN(const Ends end, Turn());
      if (end) return End(*end);
    }
  }

 private:
  bool Interrupted() const { return spec_.interrupted && spec_.interrupted(); }

  std::string FirstMessage(const std::string& last_calls) const {
    std::string text = spec_.mission;
    if (spec_.brief) text += "\n" + spec_.brief();
    const auto notes = spec_.notes.empty() ? Result<std::string>("") : ReadFile(spec_.notes);
    if (notes && !notes->empty()) text += "\n# Your notes\n\n" + *notes;
    if (!last_calls.empty())
      text +=
          "\n# Where you are\n\nYou have worked on this mission; the conversation grew too long "
          "and begins anew. The worktree, the log and what you committed are as you left them. "
          "Your last calls:\n" +
          last_calls;
    return transcript_.Clean(text);
  }

  Result<> Begin() {
    warned_full_ = false;
    const std::string text = FirstMessage(conversation_.LastCalls());
    conversation_.Restart(text);
    return transcript_.Write("user", {{"text", text}});
  }

  Result<> Restart(const std::string& why) {
    ++spend_.restarts;
    CRUCIBLE_TRY(
        transcript_.Write("restart", {{"why", why}, {"tokens", conversation_.Estimate()}}));
    return Begin();
  }

  // The spend as of now, told and on disk.
  Result<> Account() {
    spend_.wall_ms = clock_->UnixMs() - start_ms_;
    if (spec_.gpu_seconds) spend_.gpu_seconds = spec_.gpu_seconds();
    if (spec_.on_spend) spec_.on_spend(spend_);
    return WriteSpend();
  }

  Result<> WriteSpend() const {
    if (spec_.spend.empty()) return {};
    return WriteFileAtomically(spec_.spend, SpendText(spend_) + "\n");
  }

  // Money is counted as it is billed, so that a request that fails in the end is counted, too; and
  // is on disk before the reply is used: a tool may run for minutes, and a kill in them loses none.
  void Bill(const Usage& usage, double usd) {
    spend_.usage += usage;
    spend_.usd += usd;
    if (spec_.on_spend) spec_.on_spend(spend_);
    (void)WriteSpend();  // the next one, before any tool is called, says so where it failed
  }

  Result<Completion> Ask() {
    CompletionRequest request;
    request.system = spec_.system;
    request.tools = descriptions_;
    request.messages = conversation_.messages();
    request.max_tokens = spec_.reply_tokens;
    request.stop = spec_.stop;
    request.deadline_ms = clock_->UnixMs() + spec_.request_ms;
    if (spec_.budgets.deadline_ms > 0)
      request.deadline_ms = std::min(request.deadline_ms, spec_.budgets.deadline_ms);
    bool billed = false;
    CompletionEvents events;
    events.on_text = spec_.on_text;
    events.on_retry = [this](const std::string& what) {
      ++spend_.retries;
      (void)transcript_.Write("retry", {{"what", what}});  // the next line says it if it failed
    };
    events.on_billed = [&](const Usage& usage, double usd) {
      billed = true;
      Bill(usage, usd);
    };
    auto completion = spec_.provider->Complete(request, events);
    if (completion && !billed) Bill(completion->usage, completion->usd);
    return completion;
  }

  Result<Ends> Turn() {
    const auto completion = Ask();
    if (!completion) return Failed(completion.error());
    ++spend_.turns;
    if (!completion->model.empty()) spend_.model = completion->model;
    spend_.usage_known = spend_.usage_known && completion->usage_known;
    CRUCIBLE_TRY(WriteSpend());
    CRUCIBLE_TRY(WriteReply(*completion));
    if (completion->stop == StopReason::kContextFull) return ContextFull();
    context_full_in_a_row_ = 0;
    conversation_.AddReply(*completion);
    if (completion->stop == StopReason::kPaused) return Ends();  // the model goes on by itself
    if (completion->stop == StopReason::kRefused) {
      detail_ = TextOf(completion->message);
      return Ends(LoopEnd::kRefused);
    }
    return Answer(*completion);
  }

  Result<Ends> Failed(const Error& error) {
    detail_ = transcript_.Clean(error.text);
    if (Interrupted()) return Ends(LoopEnd::kInterrupted);
    const std::int64_t now = clock_->UnixMs();
    if (const Ends end = UsedUp(spec_.budgets, spend_, now)) return Ends(*end);
    return Ends(error.kind == ErrorKind::kUsage ? LoopEnd::kConfiguration : LoopEnd::kProvider);
  }

  // The model's own word that the context is full; twice without a turn between, it never fits.
  Result<Ends> ContextFull() {
    if (++context_full_in_a_row_ > 1) {
      detail_ = "the mission and its notes do not fit the model's context";
      return Ends(LoopEnd::kConfiguration);
    }
    CRUCIBLE_TRY(Restart("the model says its context is full"));
    return Ends();
  }

  // Calls in their order, the answers in one message.
  Result<Ends> Answer(const Completion& completion) {
    int calls = 0;
    bool format_error = false, progress = false, well_formed = false;
    for (const Block& block : completion.message.blocks) {
      if (block.kind != Block::Kind::kToolCall) continue;
      ++calls;
      if (Interrupted()) return Ends(LoopEnd::kInterrupted);
      CRUCIBLE_TRY(transcript_.Write(
          "call", {{"id", block.id}, {"tool", block.name}, {"arguments", block.arguments}}));
      ToolAnswer answer = CallTool(block, completion.stop == StopReason::kMaxTokens);
      answer.text = transcript_.Clean(answer.text);
      CRUCIBLE_TRY(transcript_.Write("answer", {{"id", block.id},
                                                {"tool", block.name},
                                                {"error", answer.is_error},
                                                {"text", answer.text}}));
      conversation_.AddAnswer(block, answer.text, answer.is_error);
      if (answer.ends_mission) return Ends(LoopEnd::kReported);
      (answer.bad_arguments ? format_error : well_formed) = true;
      if (!answer.is_error && kProgress.contains(block.name)) progress = true;
    }
    Count(format_error || calls == 0, well_formed, progress);
    CRUCIBLE_TRY(Tell(calls == 0));
    return Ends();
  }

  void Count(bool format_error, bool well_formed, bool progress) {
    if (format_error) ++spend_.format_errors;
    if (format_error && !well_formed) ++spend_.format_errors_in_a_row;
    if (well_formed) spend_.format_errors_in_a_row = 0;
    if (!progress) ++spend_.idle_turns;
    spend_.idle_turns_in_a_row = progress ? 0 : spend_.idle_turns_in_a_row + 1;
  }

  // What the agent must know beside its answers.
  Result<> Tell(bool no_call) {
    std::string text;
    if (no_call) text = kNoCall;
    if (!warned_full_ && conversation_.NearlyFull()) {
      warned_full_ = true;
      text += (text.empty() ? "" : "\n") + std::string(kWriteNotes);
    }
    const std::string near = NearlyUsedUp(spec_.budgets, spend_, start_ms_, clock_->UnixMs());
    if (!near.empty())
      text += fmt::format("{}[budget: {}: log and commit what stands, then report]",
                          text.empty() ? "" : "\n", near);
    if (text.empty()) return {};
    conversation_.AddText(text);
    return transcript_.Write("user", {{"text", text}});
  }

  ToolAnswer CallTool(const Block& call, bool cut_off) {
    Tool* tool = FindTool(*spec_.tools, call.name);
    if (tool == nullptr) {
      std::vector<std::string> names;
      for (const ToolDescription& known : descriptions_) names.push_back(known.name);
      return {.text = fmt::format("there is no tool {}; the tools are {}", call.name,
                                  fmt::join(names, ", ")),
              .is_error = true,
              .bad_arguments = true};
    }
    ToolAnswer answer = tool->Call(call.arguments);
    if (answer.bad_arguments && cut_off)
      answer.text +=
          fmt::format("; the reply was cut off at {} tokens: make it shorter", spec_.reply_tokens);
    return answer;
  }

  static std::string TextOf(const Message& message) {
    std::string text;
    for (const Block& block : message.blocks)
      if (block.kind == Block::Kind::kText) text += block.text;
    return text;
  }

  Result<> WriteReply(const Completion& completion) {
    json calls = json::array();
    for (const Block& block : completion.message.blocks)
      if (block.kind == Block::Kind::kToolCall) calls.push_back(block.name);
    const Usage& usage = completion.usage;
    return transcript_.Write(
        "assistant", {{"turn", spend_.turns},
                      {"text", TextOf(completion.message)},
                      {"calls", calls},
                      {"stop", StopText(completion.stop)},
                      {"usage", {usage.input, usage.output, usage.cache_read, usage.cache_write}},
                      {"usd", completion.usd},
                      {"attempts", completion.attempts}});
  }

  Result<LoopOutcome> End(LoopEnd end) {
    CRUCIBLE_TRY(Account());
    if (detail_.empty()) detail_ = ToText(end);
    CRUCIBLE_TRY(transcript_.Write("end", {{"why", std::string(ToText(end))},
                                           {"detail", detail_},
                                           {"spend", json::parse(SpendText(spend_))}}));
    return LoopOutcome{end, transcript_.Clean(detail_), spend_};
  }

  const LoopSpec& spec_;
  Clock* clock_;
  Transcript transcript_;
  Conversation conversation_;
  std::int64_t start_ms_;
  LoopSpend spend_;
  std::vector<ToolDescription> descriptions_;
  std::string detail_;
  bool warned_full_ = false;
  int context_full_in_a_row_ = 0;
};

}  // namespace

Result<LoopOutcome> RunAgentLoop(const LoopSpec& spec) {
  CRUCIBLE_CHECK(spec.provider != nullptr && spec.tools != nullptr,
                 "a loop has a provider and tools");
  return Loop(spec).Run();
}

}  // namespace crucible
