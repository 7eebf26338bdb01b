#include "orchestrator/agents/planner/choose_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "base/json.h"
#include "missions/templates.h"
#include "orchestrator/agents/llm/make_provider.h"
#include "orchestrator/agents/loop/spend.h"
#include "orchestrator/agents/loop/transcript.h"
#include "orchestrator/agents/model_settings.h"
#include "orchestrator/agents/tools/arguments.h"
#include "orchestrator/agents/tools/bounded.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr char kTool[] = "choose";
constexpr std::size_t kLongestWhy = 400;  // of the model's sentence
constexpr int kMostReplyTokens = 2048;    // a number, a sentence, and what it thinks before

std::vector<Argument> Arguments(std::size_t candidates) {
  return {{.name = "candidate",
           .kind = Argument::Kind::kInteger,
           .help = "the number of one of the candidates",
           .required = true,
           .least = 1,
           .most = static_cast<std::int64_t>(candidates)},
          {.name = "why", .help = "one sentence, with the numbers it rests on", .required = true}};
}

// Which budget leaves nothing for another question.
std::string UsedUp(const PlanQuestion& question) {
  const PlannerSettings& planner = question.planner;
  if (planner.usd > 0 && question.usd_spent >= planner.usd)
    return fmt::format("the planner's {:.4g} USD are spent ({:.4g})", planner.usd,
                       question.usd_spent);
  if (planner.tokens > 0 && question.tokens_spent >= planner.tokens)
    return fmt::format("the planner's {} tokens are used up ({})", planner.tokens,
                       question.tokens_spent);
  return "";
}

class Asking {
 public:
  Asking(const PlanQuestion& question, const ChoosePlanSpec& spec)
      : question_(question),
        spec_(spec),
        clock_(spec.clock != nullptr ? spec.clock : &SystemClock()),
        transcript_(spec.transcript, spec.secrets, clock_),
        start_ms_(clock_->UnixMs()) {
    choice_.model = spend_.model = spec.provider->model();
  }

  PlanChoice Run() {
    if (const std::string used_up = UsedUp(question_); !used_up.empty()) return Fallback(used_up);
    const CompletionRequest request = Request();
    Write("start", {{"model", choice_.model}, {"system", request.system}});
    Write("user", {{"text", request.messages.front().blocks.front().text}});
    const auto completion = spec_.provider->Complete(request, Events());
    spend_.wall_ms = clock_->UnixMs() - start_ms_;
    if (!completion) return Fallback(completion.error().text);
    ++spend_.turns;
    if (!completion->model.empty()) spend_.model = completion->model;
    spend_.usage_known = completion->usage_known;
    if (!billed_) Bill(completion->usage, completion->usd);
    return Take(*completion);
  }

 private:
  void Write(const std::string& kind, json fields) {
    // A transcript that cannot be written is no reason not to plan.
    (void)transcript_.Write(kind, std::move(fields));
  }

  CompletionRequest Request() const {
    CompletionRequest request;
    request.system = std::string(PlannerTemplate());
    request.tools = {{kTool, "Say which candidate comes next. The only thing you can do.",
                      SchemaText(Arguments(question_.candidates.size()))}};
    request.messages = {{Role::kUser, {{.text = transcript_.Clean(QuestionText(question_))}}}};
    request.max_tokens = std::min(question_.planner.model.max_tokens, kMostReplyTokens);
    request.deadline_ms = start_ms_ + question_.planner.wall_ms;
    request.stop = spec_.stop;
    return request;
  }

  CompletionEvents Events() {
    CompletionEvents events;
    events.on_retry = [this](const std::string& what) {
      ++spend_.retries;
      Write("retry", {{"what", what}});
    };
    events.on_billed = [this](const Usage& usage, double usd) { Bill(usage, usd); };
    return events;
  }

  void Bill(const Usage& usage, double usd) {
    billed_ = true;
    spend_.usage += usage;
    spend_.usd += usd;
    // On disk at once: this process may be ended before it has an answer.
    if (!spec_.spend.empty()) (void)WriteFileAtomically(spec_.spend, SpendText(spend_) + "\n");
  }

  PlanChoice Take(const Completion& completion) {
    std::string text;
    std::vector<const Block*> calls;
    for (const Block& block : completion.message.blocks) {
      if (block.kind == Block::Kind::kText) text += block.text;
      if (block.kind == Block::Kind::kToolCall) calls.push_back(&block);
    }
    Write("assistant", {{"text", text}, {"usd", completion.usd}});
    for (const Block* call : calls)
      Write("call", {{"id", call->id}, {"tool", call->name}, {"arguments", call->arguments}});
    if (completion.stop == StopReason::kContextFull)
      return Fallback("the question does not fit the model's context");
    if (completion.stop == StopReason::kRefused) return Fallback("the model would not answer");
    if (calls.size() != 1)
      return Fallback(fmt::format("its answer has {} calls instead of one", calls.size()));
    if (calls.front()->name != kTool)
      return Fallback("it called " + calls.front()->name + ", which is no tool");
    const auto arguments =
        ReadArguments(kTool, Arguments(question_.candidates.size()), calls.front()->arguments);
    if (!arguments) return Fallback(arguments.error().text);
    choice_.index = (*arguments)["candidate"].get<std::size_t>() - 1;
    choice_.why = Shorten(transcript_.Clean((*arguments)["why"]), kLongestWhy);
    return Finished();
  }

  PlanChoice Fallback(const std::string& cause) {
    choice_.index = 0;
    choice_.fallback = Shorten(transcript_.Clean(cause), kLongestWhy);
    return Finished();
  }

  PlanChoice Finished() {
    choice_.spend = SpendText(spend_);
    Write("end", {{"chosen", ToText(choice_, question_.candidates)},
                  {"spend", json::parse(choice_.spend)}});
    return choice_;
  }

  const PlanQuestion& question_;
  const ChoosePlanSpec& spec_;
  Clock* clock_;
  Transcript transcript_;
  std::int64_t start_ms_;
  bool billed_ = false;
  LoopSpend spend_;
  PlanChoice choice_;
};

PlanChoice NotAsked(const PlanQuestion& question, const std::string& cause) {
  PlanChoice choice;
  choice.model = question.planner.model.name;
  choice.fallback = cause;
  return choice;
}

Result<std::unique_ptr<Provider>> ProviderOf(const ModelSettings& settings, std::string* key) {
  CRUCIBLE_ASSIGN(const ApiKey found, KeyFor(settings));
  if (!found.empty()) *key = found.Reveal();
  return MakeProvider(settings);
}

}  // namespace

std::string QuestionText(const PlanQuestion& question) {
  std::string text = "# Candidates\n\n";
  for (std::size_t i = 0; i < question.candidates.size(); ++i) {
    const MissionPlan& plan = question.candidates[i];
    text += fmt::format("{}. {} ({}): {}\n   The policy's reason: {}\n", i + 1,
                        fmt::join(plan.cases, ", "), plan.flavour, plan.goal, plan.why);
  }
  return text + "\n" + question.context;
}

PlanChoice ChoosePlan(const PlanQuestion& question, const ChoosePlanSpec& spec) {
  CRUCIBLE_CHECK(spec.provider != nullptr && !question.candidates.empty(),
                 "a choice has a model and candidates");
  return Asking(question, spec).Run();
}

Result<PlanChoice> RunPlanner(const std::filesystem::path& folder, std::stop_token stop) {
  CRUCIBLE_ASSIGN(const PlanQuestion question, ReadPlanQuestion(folder));
  PlanChoice choice;
  std::string key;
  const auto settings = SettingsOf(question.planner.model);
  const auto provider = settings
                            ? ProviderOf(*settings, &key)
                            : Result<std::unique_ptr<Provider>>(tl::unexpected(settings.error()));
  if (provider) {
    ChoosePlanSpec spec;
    spec.provider = provider->get();
    spec.transcript = folder / "transcript.jsonl";
    spec.spend = folder / "spend.json";
    if (!key.empty()) spec.secrets = {key};
    spec.stop = std::move(stop);
    choice = ChoosePlan(question, spec);
  } else {
    choice = NotAsked(question, provider.error().text);
  }
  CRUCIBLE_TRY(WritePlanChoice(folder, choice));
  return choice;
}

}  // namespace crucible
