// campaign_planner.cc: which of the policy's candidates comes next: the first, or a model's choice
// where the campaign file names a planner. The model is asked by a child process, so the loop goes
// on meanwhile; whatever becomes of that child, the answer is one of the candidates.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "briefs/brief.h"
#include "missions/candidates.h"
#include "orchestrator/agents/llm/take_keys.h"
#include "orchestrator/campaign_impl.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr std::int64_t kGraceMs = 10'000;  // beyond the planner's own deadline
constexpr std::size_t kMissionsShown = 12;
constexpr std::size_t kReportBytes = 300;  // of each
constexpr int kBriefTokens = 700;          // of each candidate's

std::string FirstWords(const std::string& text) {
  std::string words = text.substr(0, std::min(text.size(), kReportBytes));
  std::replace(words.begin(), words.end(), '\n', ' ');
  return words.size() < text.size() ? words + " …" : words;
}

// What the choice is to rest on: the campaign's missions so far, and the head of each case's brief.
std::string ContextOf(const PlannerInput& input, const std::vector<MissionPlan>& candidates) {
  std::string text = "# Missions of this campaign, newest last\n\n";
  std::vector<const MissionRow*> ended;
  for (const MissionRow& mission : input.missions)
    if (mission.campaign == input.campaign && mission.state != "planned") ended.push_back(&mission);
  const std::size_t skipped = ended.size() > kMissionsShown ? ended.size() - kMissionsShown : 0;
  if (ended.empty()) text += "none yet\n";
  if (skipped > 0) text += fmt::format("({} earlier ones left out)\n", skipped);
  for (std::size_t i = skipped; i < ended.size(); ++i)
    text += fmt::format("- {} {} ({}): {} {} {}. {}\n", ended[i]->id,
                        fmt::join(ended[i]->cases, " "), ended[i]->flavour, ended[i]->state,
                        ended[i]->outcome, ended[i]->merge_outcome, FirstWords(ended[i]->report));
  for (const MissionPlan& plan : candidates) {
    BriefInput brief;
    brief.target = input.target->name;
    brief.cases = plan.cases;
    brief.entries = input.entries;
    brief.points = input.points;
    brief.now = input.now;
    brief.token_budget = kBriefTokens;
    text += "\n" + CompileBrief(brief);
  }
  return text;
}

// What earlier choices of the campaign cost, by its missions' rows and the folders of the others.
void AddEarlierChoices(const Workspace& workspace, const std::vector<MissionRow>& missions,
                       const std::string& campaign, PlanQuestion* question) {
  for (const MissionRow& mission : missions) {
    if (mission.campaign != campaign) continue;
    const json settings = json::parse(mission.settings, nullptr, false);
    if (!settings.is_object() || !settings.contains("planner")) continue;
    const Spend spend = SpendIn(settings["planner"].value("spend", json::object()));
    question->usd_spent += spend.usd;
    question->tokens_spent += spend.tokens;
  }
  const Spend untaken = UntakenChoices(workspace, campaign, missions);
  question->usd_spent += untaken.usd;
  question->tokens_spent += untaken.tokens;
}

}  // namespace

void Campaign::Impl::TakeKeys() {
  std::vector<std::string> named = {file.planner.model.key_variable};
  for (const CampaignModel& model : file.agent.models) named.push_back(model.key_variable);
  keys = TakeKeysFromEnvironment(named);
}

Result<std::optional<PlannedMission>> Campaign::Impl::ChoosePlan(const PlannerInput& input,
                                                                 std::string* why_not) {
  const std::string usual = file.agent.kind == "proposer" ? "proposer" : "kernel";
  const std::size_t most =
      file.planner.on() ? static_cast<std::size_t>(file.planner.candidates) : 1;
  std::vector<MissionPlan> candidates = PlanCandidates(input, usual, most, why_not);
  if (candidates.empty()) return std::optional<PlannedMission>();
  if (candidates.size() == 1) return std::optional(PlannedMission{candidates.front(), {}, {}});
  PlanQuestion question;
  question.planner = file.planner;
  question.candidates = candidates;
  question.context = ContextOf(input, candidates);
  AddEarlierChoices(workspace, input.missions, row.name, &question);
  // Named by its time: a resumed campaign's first question is not an earlier one's folder.
  const auto folder =
      workspace.Campaign(row.name) / "planner" / std::to_string(SystemClock().UnixMs());
  CRUCIBLE_TRY(WritePlanQuestion(folder, question));
  SubprocessSpec spec;
  spec.argv = {(workspace.programs / "crucible").string(), "plan", folder.string()};
  spec.environment = workspace.Environment("", run_nonce);
  spec.environment.insert(keys.begin(), keys.end());
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = folder / "plan.log";
  CRUCIBLE_ASSIGN(Subprocess process, Subprocess::Start(spec));
  asking.emplace(RunningPlan{folder, std::move(candidates), std::move(process),
                             SystemClock().UnixMs() + file.planner.wall_ms + kGraceMs});
  return std::optional<PlannedMission>();
}

Result<std::optional<PlannedMission>> Campaign::Impl::TakeChoice() {
  if (asking->process.running()) {
    if (SystemClock().UnixMs() < asking->deadline_ms) return std::optional<PlannedMission>();
    asking->process.Signal(SIGKILL);
  }
  const auto status = asking->process.Wait();
  auto choice = ReadPlanChoice(asking->folder, asking->candidates.size());
  if (!choice) {
    choice = PlanChoice{};
    choice->model = file.planner.model.name;
    choice->spend = JsonText(AgentSpend(asking->folder));  // what it had paid before it died
    choice->fallback = fmt::format("the planner's process left no choice ({})",
                                   status ? status->Describe() : status.error().text);
  }
  PlannedMission planned{
      asking->candidates[choice->index], ToText(*choice, asking->candidates), {}};
  planned.record = JsonText({{"model", choice->model},
                             {"chosen", choice->index + 1},
                             {"candidates", asking->candidates.size()},
                             {"why", choice->why},
                             {"fallback", choice->fallback},
                             {"folder", asking->folder.lexically_relative(workspace.home).string()},
                             {"spend", json::parse(choice->spend)}});
  if (choice->by_model()) planned.plan.why += fmt::format("; {}", planned.chosen);
  asking.reset();
  return std::optional(std::move(planned));
}

}  // namespace crucible
