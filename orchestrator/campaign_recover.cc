// campaign_recover.cc: what a killed run left behind, put in order.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "base/clock.h"
#include "base/counted.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process_identity.h"
#include "missions/states.h"
#include "orchestrator/campaign_impl.h"
#include "orchestrator/integrate.h"

namespace crucible {

using nlohmann::json;

// Runs before anything new starts: ends the old run's processes, then brings every mission to a
// state from which the loop can go on.
Result<> Campaign::Impl::Recover() {
  CRUCIBLE_ASSIGN(const std::string old_nonce, store.Meta("run:" + row.name));
  if (!old_nonce.empty()) {
    const int killed = KillByEnvironment("CRUCIBLE_RUN", old_nonce, 10'000);
    if (killed > 0)
      Event(
          "", "campaign",
          fmt::format("ended {} of the interrupted run", Counted(killed, "process", "processes")));
  }
  // A move of main that was cut off: its locks, and the checkouts that show main.
  std::string note;
  CRUCIBLE_TRY(repository.FinishMove(&note));
  if (!note.empty()) Event("", "note", note);
  CRUCIBLE_ASSIGN(const std::vector<MissionRow> missions, store.Missions(row.name));
  for (const MissionRow& mission : missions)
    if (mission.state != "done" && mission.state != "planned")
      CRUCIBLE_TRY(RecoverMission(mission));
  return {};
}

Result<> Campaign::Impl::RecoverMission(MissionRow mission) {
  if (mission.state == "preparing" || mission.state == "running") {
    // Finished experiments are in the log, and kept ones are commits of its branch.
    const auto head = repository.Resolve("refs/heads/" + mission.branch);
    if (!mission.branch.empty() && head && *head != mission.base_commit)
      mission.best_commit = *head;
    // The kill may also have come between the agent's start and the word of it.
    if (mission.state == "preparing" && mission.best_commit.empty() &&
        ExperimentsOf(mission.id) == 0)
      return RecoverUnstarted(std::move(mission));
    mission.outcome = "interrupted";
    mission.report = "the campaign was interrupted while its agent worked";
    mission.ended_ms = SystemClock().UnixMs();
    mission.owner.clear();
    MoveState(mission.id, &mission.state, mission.best_commit.empty() ? "done" : "ended");
    mission.spend = JsonText(SpendForRow(workspace, mission));  // what was paid stays paid
    if (mission.state == "done") mission.merge_outcome = "nothing_to_merge";
    CRUCIBLE_TRY(store.PutMission(mission));
    Event(mission.id, "mission",
          fmt::format("{} was interrupted{}", mission.id,
                      mission.best_commit.empty() ? "" : "; what it had kept goes to the merge"));
  } else if (mission.state == "merging") {
    CRUCIBLE_ASSIGN(const MissionOrder order,
                    ReadMissionOrder(workspace.Mission(mission.id) / "mission.json"));
    CRUCIBLE_ASSIGN(const bool landed, FinishInterruptedLanding(order));
    if (landed) {
      CRUCIBLE_ASSIGN(const auto finished, store.FindMission(mission.id));
      return CleanUp(finished.value_or(mission));
    }
    MoveState(mission.id, &mission.state, "ended");
    CRUCIBLE_TRY(store.PutMission(mission));
  }
  if (mission.state == "done") return CleanUp(mission);
  const bool waits_for_person =
      mission.merge_outcome == "flagged" || mission.merge_outcome == "awaiting_approval";
  const bool queued =
      std::find(merge_queue.begin(), merge_queue.end(), mission.id) != merge_queue.end();
  if (!waits_for_person && !queued) merge_queue.push_back(mission.id);
  return {};
}

// Its agent had not begun, so nothing of it happened: what a person asked for waits again, and what
// the planner chose is let go (it chooses anew from the log of today).
Result<> Campaign::Impl::RecoverUnstarted(MissionRow mission) {
  CRUCIBLE_TRY(CleanUp(mission));  // first: after another kill here it is done again
  const json settings = json::parse(mission.settings, nullptr, false);
  const bool added = settings.is_object() && settings.contains("added_by");
  mission.owner.clear();
  if (added) {
    MoveState(mission.id, &mission.state, "planned");
    mission.settings = JsonText({{"added_by", settings["added_by"]}});
    mission.base_commit.clear();
    mission.branch.clear();
    mission.worktree.clear();
  } else {
    MoveState(mission.id, &mission.state, "done");
    mission.outcome = "interrupted";
    mission.merge_outcome = "nothing_to_merge";
    mission.report = "the campaign was interrupted before its agent began";
    mission.ended_ms = SystemClock().UnixMs();
  }
  CRUCIBLE_TRY(store.PutMission(mission));
  Event(mission.id, "mission",
        fmt::format("{} was interrupted before its agent began{}", mission.id,
                    added ? "; it waits again" : ""));
  return {};
}

// Worktrees, checkouts, builds and branches that no mission needs any more.
Result<> Campaign::Impl::SweepLeftovers() {
  CRUCIBLE_ASSIGN(const FileLock turn, FileLock::Take(workspace.OwnersLock()));
  // Another campaign that runs in this repository works with them; it sweeps at its own end.
  CRUCIBLE_ASSIGN(const std::vector<CampaignRow> campaigns, store.Campaigns());
  for (const CampaignRow& other : campaigns)
    if (other.name != row.name && IsAlive(ProcessIdentityFromText(other.owner))) return {};
  CRUCIBLE_ASSIGN(const std::vector<MissionRow> missions, store.Missions(""));
  std::set<std::string> kept;
  for (const MissionRow& mission : missions)
    if (mission.state != "done") kept.insert(mission.branch);
  CRUCIBLE_ASSIGN(const auto worktrees, repository.Worktrees());
  for (const Repository::WorktreeInfo& worktree : worktrees) {
    const auto inside = worktree.directory.lexically_relative(workspace.home);
    if (inside.empty() || inside.native().starts_with("..")) continue;  // a person's own
    CRUCIBLE_TRY(repository.RemoveWorktree(worktree.name, worktree.directory, ""));
  }
  CRUCIBLE_ASSIGN(const std::vector<std::string> branches, repository.Branches("crucible/"));
  for (const std::string& branch : branches)
    if (!kept.contains(branch)) CRUCIBLE_TRY(repository.DeleteBranch(branch));
  CRUCIBLE_TRY(RemoveTree(workspace.home / "checkouts"));
  CRUCIBLE_TRY(RemoveTree(workspace.home / "worktrees"));
  return RemoveTree(workspace.Builds());
}

// A failure ends the campaign as a signal would: nothing runs on, nothing half made stays. What
// cannot be written now (a full disk) is done by the next run, as after a kill.
void Campaign::Impl::Abandon(const Error& error) {
  for (auto& [mission, agent] : agents) {
    agent.process.Signal(SIGKILL);
    (void)agent.process.Wait();
  }
  agents.clear();
  if (merge) {
    merge->process.Signal(SIGKILL);
    (void)merge->process.Wait();
    merge.reset();
  }
  asking.reset();  // the question's process ends with it
  KillByEnvironment("CRUCIBLE_RUN", run_nonce, 5000);
  (void)Recover();
  const bool begun = Begun(&store, row.name, id);
  (void)SweepLeftovers();
  if (fresh && !begun && store.RemoveCampaign(row.name) &&
      RemoveTree(workspace.Campaign(row.name))) {
    // As if it had not been launched, so that the same command works.
    FileLock::Remove(std::move(owned), workspace.CampaignLock(row.name));
    return;
  }
  row.state = "interrupted";
  row.owner.clear();
  row.ended_ms = SystemClock().UnixMs();
  row.phase = row.state;
  row.message = error.text;
  (void)store.PutCampaign(row);
  Event("", "campaign", fmt::format("campaign {} broke off: {}", row.name, error.text));
}

bool Campaign::Impl::Begun(Store* store, const std::string& name, const std::string& id) {
  const auto missions = store->Missions(name);
  return !missions || !missions->empty() || store->FindEntry(id + ".start").has_value();
}

}  // namespace crucible
