// campaign_impl.h: the campaign's state, shared by its source files (private to them).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/file_lock.h"
#include "base/subprocess.h"
#include "missions/planner.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/agents/planner/plan_question.h"
#include "orchestrator/baseline.h"
#include "orchestrator/campaign.h"
#include "orchestrator/repository.h"
#include "orchestrator/spend.h"
#include "results_log/conditions.h"

namespace crucible {

// Between the end of an agent's time and its kill: it still has to write its result.
inline constexpr std::int64_t kAgentGraceMs = 20'000;

inline constexpr char kAllStarted[] = "all its missions were started";

struct RunningAgent {
  std::string mission;
  Subprocess process;
  std::int64_t deadline_ms = 0;  // Unix ms; a grace period after the mission's own
  std::string stopped_for;       // the limit that it was told or made to end for; "": none
  bool killed = false;
  bool stopped_with_campaign = false;
};

struct RunningMerge {
  std::string mission;
  Subprocess process;
};

// A planner model's choice under way.
struct RunningPlan {
  std::filesystem::path folder;  // of the question and the answer
  std::vector<MissionPlan> candidates;
  Subprocess process;
  std::int64_t deadline_ms = 0;  // Unix ms
};

struct PlannedMission {
  MissionPlan plan;
  std::string chosen;  // how, in a line; "" when there was no choice to make
  std::string record;  // the same as JSON, with what it cost; "" likewise
};

struct Campaign::Impl {
  CampaignFile file;
  Target target;
  Workspace workspace;
  Repository repository;
  Store store;
  CampaignRow row;
  Progress progress;
  std::string run_nonce;  // of this process; in every child's environment
  std::string id;         // random, for keys of entries
  FileLock owned;         // while this process has the campaign
  bool fresh = false;     // this process launched it: what never began is taken back

  // Not in this process's environment any more: only agents and the planner's child get them.
  std::map<std::string, std::string> keys;
  std::map<std::string, RunningAgent> agents;
  std::optional<RunningMerge> merge;
  std::optional<RunningPlan> asking;
  std::vector<std::string> merge_queue;
  int idle_missions = 0;
  int failed_at_once = 0;  // missions in a row
  bool draining = false;   // no new missions
  std::string why_draining;
  bool stop_asked = false;
  std::int64_t last_stop_look_ms = 0;
  std::int64_t last_event = 0;
  std::int64_t last_status_ms = 0;
  std::int64_t last_spend_ms = 0;
  Spend spent;  // looked at now and then

  // campaign_launch.cc: beside Launch and Resume, what both end with.
  static Result<Campaign> Open(const std::string& name, const std::filesystem::path& repository,
                               const Workspace& workspace, Progress progress, FileLock owned);

  // campaign.cc: the loop.
  Result<CampaignSummary> Run();  // the loop; an error of it is cleaned up after
  Result<CampaignSummary> Loop();
  Result<> ProveFirst();
  Result<> MeasureFirst();
  Result<> MeasureLast();
  Result<> FollowControl(bool* stop_now);
  enum class Cause { kBudget, kPerson };
  // No new missions. A person's last word is the reason that is told, whatever budget came first.
  void Drain(const std::string& why, Cause cause = Cause::kBudget);
  bool StopAsked();  // a signal, or `campaign stop`; looks at the log once a second at most
  void TellAgentsToEnd(const std::string& why);
  Result<> StartMissions();
  Result<> ReapAgents();
  Result<> Merge();
  Result<> End(const std::string& state, const std::string& why);
  void ShowEvents();
  void ShowStatus();
  void Event(const std::string& mission, const std::string& kind, const std::string& text);
  BaselineContext Baseline() {
    return {&workspace, &target, &repository, run_nonce, [this] { return StopAsked(); }};
  }

  // campaign_missions.cc: one mission's beginning and end.
  Result<bool> StartOne();                             // false: nothing to start now
  Result<bool> StartAdded(const PlannerInput& input);  // when all it may choose were begun
  Result<bool> StartPlanned(const PlannedMission& planned);
  Result<> Launch(MissionRow row, const std::string& why, const std::vector<std::string>& retry);
  Result<> EndAgent(RunningAgent* agent);
  void CountFailureAtOnce(const MissionRow& ended);
  Result<> CleanUp(const MissionRow& row);
  Result<Conditions> ConditionsNow(const std::string& commit,
                                   const std::vector<std::string>& cases);
  int ExperimentsOf(const std::string& mission);

  void TakeKeys();  // out of the environment, before anything is built or judged
  // campaign_planner.cc: the next mission. Nothing while a planner model is being asked, or when
  // there is none (`why_not`).
  Result<std::optional<PlannedMission>> ChoosePlan(const PlannerInput& input, std::string* why_not);
  Result<std::optional<PlannedMission>> TakeChoice();

  // campaign_recover.cc: after a kill.
  Result<> Recover();
  Result<> RecoverMission(MissionRow row);
  Result<> RecoverUnstarted(MissionRow row);
  Result<> SweepLeftovers();
  void Abandon(const Error& error);
  // It has a mission, or main was measured for it: there is something to resume.
  static bool Begun(Store* store, const std::string& name, const std::string& id);
};

}  // namespace crucible
