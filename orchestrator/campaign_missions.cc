// campaign_missions.cc: how one mission begins and ends.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/process_identity.h"
#include "briefs/brief.h"
#include "missions/mission_text.h"
#include "missions/states.h"
#include "orchestrator/agents/agent_place.h"
#include "orchestrator/campaign_impl.h"

namespace crucible {
namespace {

using nlohmann::json;

// What counts as a failure at once, and how many of them in a row end a campaign at least.
constexpr std::int64_t kAtOnceMs = 30'000;
constexpr int kMostFailures = 3;
constexpr std::size_t kReasonBytes = 300;

// What a program said last.
std::string LastLine(const std::filesystem::path& file) {
  const auto text = ReadFile(file);
  if (!text) return "";
  const std::size_t end = text->find_last_not_of("\n ");
  if (end == std::string::npos) return "";
  const std::size_t start = text->rfind('\n', end);
  const std::size_t first = start == std::string::npos ? 0 : start + 1;
  return ValidUtf8(std::string_view(*text).substr(first, end - first + 1), kReasonBytes);
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string Branch(const std::string& mission) { return "crucible/" + mission; }

}  // namespace

Result<Conditions> Campaign::Impl::ConditionsNow(const std::string& commit,
                                                 const std::vector<std::string>& cases) {
  CRUCIBLE_ASSIGN(Conditions now, KnownConditions(&store, target.name));
  CRUCIBLE_ASSIGN(now["kernel_generation"], KernelGeneration(Baseline(), commit, cases));
  return now;
}

int Campaign::Impl::ExperimentsOf(const std::string& mission) {
  EntryFilter filter;
  filter.campaign = row.name;
  filter.mission = mission;
  const auto entries = store.QueryEntries(filter);
  return entries ? static_cast<int>(entries->size()) : 0;
}

Result<bool> Campaign::Impl::StartOne() {
  if (asking) {
    CRUCIBLE_ASSIGN(const auto planned, TakeChoice());
    return planned ? StartPlanned(*planned) : Result<bool>(false);
  }
  PlannerInput input;
  input.target = &target;
  input.campaign = row.name;
  CRUCIBLE_ASSIGN(input.missions, store.Missions(""));
  EntryFilter filter;
  filter.target = target.name;
  CRUCIBLE_ASSIGN(input.entries, store.QueryEntries(filter));
  CRUCIBLE_ASSIGN(input.points, store.Points(target.name));
  CRUCIBLE_ASSIGN(input.now, KnownConditions(&store, target.name));
  CRUCIBLE_ASSIGN(const std::string tip, repository.MainTip());
  CRUCIBLE_ASSIGN(input.files_of_case, KnobFilesOfCases(Baseline(), tip));
  const auto begun = std::count_if(
      input.missions.begin(), input.missions.end(), [this](const MissionRow& mission) {
        return mission.campaign == row.name && mission.state != "planned";
      });
  if (file.missions > 0 && begun >= file.missions) return StartAdded(input);
  std::string why_not;
  CRUCIBLE_ASSIGN(const auto planned, ChoosePlan(input, &why_not));
  if (asking) return false;
  if (!planned) {
    if (agents.empty() && !merge && merge_queue.empty())
      Drain(why_not.empty() ? "the planner has nothing left to do" : why_not);
    return false;
  }
  return StartPlanned(*planned);
}

Result<bool> Campaign::Impl::StartAdded(const PlannerInput& input) {
  std::string why_not;
  const auto plan = PlanNext(input, "kernel", &why_not);
  if (plan && !plan->added_mission.empty()) return StartPlanned({*plan, {}, {}});
  // It waits for its cases, or cannot be begun at all.
  if (agents.empty() && !merge && merge_queue.empty())
    Drain(why_not.empty() ? std::string(kAllStarted) : why_not);
  return false;
}

Result<bool> Campaign::Impl::StartPlanned(const PlannedMission& planned) {
  const MissionPlan* plan = &planned.plan;
  MissionRow mission;
  if (!plan->added_mission.empty()) {
    CRUCIBLE_ASSIGN(const auto added, store.FindMission(plan->added_mission));
    if (!added) return false;
    mission = *added;
  }
  mission.campaign = row.name;
  mission.target = target.name;
  mission.flavour = plan->flavour;
  mission.goal = plan->goal;
  mission.cases = plan->cases;
  MoveState(mission.id, &mission.state, "preparing");
  mission.planned_ms = SystemClock().UnixMs();
  json settings = {{"why", plan->why}, {"approve", file.approve}, {"retry", plan->retry}};
  // Who added it stays known: a kill before its agent begins makes it wait again.
  const json before = json::parse(mission.settings, nullptr, false);
  if (before.is_object() && before.contains("added_by")) settings["added_by"] = before["added_by"];
  if (!planned.record.empty()) settings["planner"] = json::parse(planned.record);
  mission.settings = JsonText(settings);
  if (mission.id.empty()) {
    CRUCIBLE_ASSIGN(mission.id, store.AddMission(mission));
  } else {
    CRUCIBLE_TRY(store.PutMission(mission));
  }
  if (!planned.chosen.empty()) Event(mission.id, "plan", mission.id + ": " + planned.chosen);
  CRUCIBLE_TRY(Launch(mission, plan->why, plan->retry));
  return true;
}

Result<> Campaign::Impl::Launch(MissionRow mission, const std::string& why,
                                const std::vector<std::string>& retry) {
  CRUCIBLE_ASSIGN(const std::string tip, repository.MainTip());
  CRUCIBLE_ASSIGN(const Arm baseline, BaselineArm(Baseline(), tip));
  mission.base_commit = tip;
  mission.branch = Branch(mission.id);
  mission.worktree = workspace.Worktree(mission.id).string();
  CRUCIBLE_TRY(store.PutMission(mission));
  CRUCIBLE_TRY(MakeDirectories(workspace.Mission(mission.id)));
  CRUCIBLE_TRY(repository.AddWorktree(mission.id, mission.worktree, mission.branch, tip));

  const json settings = json::parse(row.settings, nullptr, false);
  MissionOrder order;
  order.id = mission.id;
  order.campaign = row.name;
  order.flavour = mission.flavour;
  order.key_prefix = fmt::format("{}.{}", id, mission.id);
  order.cases = mission.cases;
  order.workspace = workspace;
  order.target_file = file.target;
  order.worktree = mission.worktree;
  order.branch = mission.branch;
  order.base_commit = tip;
  order.main_branch = file.branch;
  order.baseline = baseline;
  order.run_nonce = run_nonce;
  order.experiments = file.mission_experiments;
  order.deadline_ms = SystemClock().UnixMs() + file.mission_wall_ms;
  if (row.deadline_ms) order.deadline_ms = std::min(order.deadline_ms, *row.deadline_ms);
  order.seed = settings.value("seed", std::uint64_t{1}) + std::stoull(mission.id.substr(1));
  order.retry = retry;
  CRUCIBLE_ASSIGN(order.now, ConditionsNow(tip, mission.cases));
  order.agent = file.agent;
  for (std::string& word : order.agent.command) {
    const std::pair<std::string_view, std::string> placeholders[] = {
        {"{mission}", (workspace.Mission(mission.id) / "mission.md").string()},
        {"{worktree}", mission.worktree},
        {"{bin}", workspace.programs.string()}};
    for (const auto& [name, value] : placeholders)
      for (std::size_t at = word.find(name); at != std::string::npos; at = word.find(name))
        word.replace(at, name.size(), value);
  }

  MissionPlan plan;
  plan.flavour = mission.flavour;
  plan.cases = mission.cases;
  plan.goal = mission.goal;
  plan.why = why;
  plan.retry = retry;
  std::string text =
      MissionText(mission.id, plan, target, {file.mission_wall_ms, file.mission_experiments},
                  file.branch, tip, mission.worktree);
  BriefInput brief;
  brief.target = target.name;
  brief.cases = mission.cases;
  EntryFilter filter;
  filter.target = target.name;
  CRUCIBLE_ASSIGN(brief.entries, store.QueryEntries(filter));
  CRUCIBLE_ASSIGN(brief.points, store.Points(target.name));
  brief.now = order.now;
  const std::string of_target = " --target " + file.target.string();
  brief.commands = {"crucible check " + mission.worktree + of_target,
                    fmt::format("crucible compare {} {} --case {}{}", tip.substr(0, 12),
                                mission.worktree, fmt::join(mission.cases, " --case "), of_target)};
  text += "\n" + CompileBrief(brief);
  CRUCIBLE_TRY(WriteFileAtomically(workspace.Mission(mission.id) / "mission.md", text));
  CRUCIBLE_TRY(WriteMissionOrder(order));

  SubprocessSpec spec;
  const std::string order_file = (workspace.Mission(mission.id) / "mission.json").string();
  const std::string crucible = (workspace.programs / "crucible").string();
  if (file.agent.kind == "command") {
    spec.argv = order.agent.command;
    spec.directory = mission.worktree;
  } else {
    spec.argv = {crucible, file.agent.kind == "proposer" ? "propose" : "agent", order_file};
  }
  spec.environment = workspace.Environment(mission.id, run_nonce);
  // A model's agent reads its key and drops it; nobody else gets one.
  if (file.agent.kind == "llm" || file.agent.kind == "cli")
    spec.environment.insert(keys.begin(), keys.end());
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = workspace.Mission(mission.id) / "agent.log";
  CRUCIBLE_ASSIGN(Subprocess process, Subprocess::Start(spec));
  MoveState(mission.id, &mission.state, "running");
  mission.started_ms = SystemClock().UnixMs();
  mission.owner = ToText(IdentityOf(process.pid()));
  CRUCIBLE_TRY(store.PutMission(mission));
  Event(mission.id, "mission", fmt::format("{} started: {} ({})", mission.id, mission.goal, why));
  agents.emplace(mission.id,
                 RunningAgent{mission.id, std::move(process), order.deadline_ms + kAgentGraceMs});
  return {};
}

Result<> Campaign::Impl::EndAgent(RunningAgent* agent) {
  CRUCIBLE_ASSIGN(const ExitStatus status, agent->process.Wait());
  KillByEnvironment("CRUCIBLE_MISSION_RUN", agent->mission + ":" + run_nonce, 5000);
  CRUCIBLE_ASSIGN(auto found, store.FindMission(agent->mission));
  CRUCIBLE_CHECK(found.has_value(), "a running agent has a mission");
  MissionRow mission = *found;
  // The branch says what was committed; the result file only says what the agent makes of it.
  const auto head = repository.Resolve("refs/heads/" + mission.branch);
  if (head && *head != mission.base_commit) mission.best_commit = *head;
  const auto result = ReadMissionResult(workspace.Mission(mission.id));
  if (!agent->stopped_for.empty()) {
    mission.outcome = "budget";
    mission.report = "ended at " + agent->stopped_for;
    if (result && !result->report.empty()) mission.report += "\n\n" + result->report;
  } else if (result) {
    mission.outcome = result->outcome;
    mission.report = result->report;
  } else if (agent->stopped_with_campaign) {
    mission.outcome = "stopped";
    mission.report = "its campaign was stopped while it worked";
  } else if (status.ok() && result.error().kind == ErrorKind::kNotFound) {
    mission.outcome = mission.best_commit.empty() ? "no_change" : "candidate";
  } else {
    mission.outcome = "crashed";
    mission.report = status.ok()
                         ? result.error().text
                         : fmt::format("the agent ended with {}: {}", status.Describe(),
                                       LastLine(workspace.Mission(mission.id) / "agent.log"));
  }
  if (mission.outcome == "candidate" && mission.best_commit.empty()) mission.outcome = "no_change";
  MoveState(mission.id, &mission.state, "ended");
  mission.ended_ms = SystemClock().UnixMs();
  mission.owner.clear();
  json spend = SpendForRow(workspace, mission);
  spend["experiments"] = ExperimentsOf(mission.id);
  mission.spend = JsonText(spend);
  CountFailureAtOnce(mission);
  const bool to_merge =
      !mission.best_commit.empty() && mission.outcome != "pivot" && mission.outcome != "blocked";
  if (!to_merge) {
    MoveState(mission.id, &mission.state, "done");
    mission.merge_outcome = "nothing_to_merge";
    ++idle_missions;
  }
  CRUCIBLE_TRY(store.PutMission(mission));
  Event(mission.id, "mission",
        fmt::format(
            "{} ended: {}{}", mission.id, mission.outcome,
            mission.report.empty() ? "" : " (" + ValidUtf8(FirstLine(mission.report), 200) + ")"));
  if (to_merge)
    merge_queue.push_back(mission.id);
  else
    CRUCIBLE_TRY(CleanUp(mission));
  return {};
}

// A wrong key or a program that will not start fails the next mission as well: a campaign without
// other limits would go through missions all night.
void Campaign::Impl::CountFailureAtOnce(const MissionRow& ended) {
  const bool failed = ended.outcome == "crashed" || ended.outcome == "blocked";
  const std::int64_t ran_ms =
      ended.ended_ms.value_or(0) - ended.started_ms.value_or(ended.ended_ms.value_or(0));
  if (!failed || !ended.best_commit.empty() || ran_ms > kAtOnceMs ||
      RecordedSpend(ended).turns > 0 || ExperimentsOf(ended.id) > 0) {
    failed_at_once = 0;
    return;
  }
  if (++failed_at_once < std::max(kMostFailures, file.agents + 1)) return;
  Drain(fmt::format("{} missions in a row failed at once; the last: {}", failed_at_once,
                    ValidUtf8(ended.report, kReasonBytes)));
}

Result<> Campaign::Impl::CleanUp(const MissionRow& mission) {
  SweepBroker(workspace, mission.id);
  // A mission that waits for a person keeps its branch (its commit must not be collected).
  const bool waits = mission.state == "ended";
  CRUCIBLE_TRY(repository.RemoveWorktree(mission.id, workspace.Worktree(mission.id),
                                         waits ? "" : mission.branch));
  for (const char* build : {"build-0", "build-1", "build-merged"})
    CRUCIBLE_TRY(RemoveTree(workspace.Mission(mission.id) / build));
  return {};
}

}  // namespace crucible
