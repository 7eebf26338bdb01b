// campaign_recover.cc: what a killed run left behind, put in order.
#include <fmt/format.h>

#include <filesystem>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process_identity.h"
#include "orchestrator/campaign_impl.h"
#include "orchestrator/integrate.h"

namespace crucible {

// Runs before anything new starts: ends the old run's processes, then brings every mission to a
// state from which the loop can go on.
Result<> Campaign::Impl::Recover() {
  CRUCIBLE_ASSIGN(const std::string old_nonce, store.Meta("run:" + row.name));
  if (!old_nonce.empty()) {
    const int killed = KillByEnvironment("CRUCIBLE_RUN", old_nonce, 10'000);
    if (killed > 0)
      Event("", "campaign", fmt::format("ended {} processes of the interrupted run", killed));
  }
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
    mission.outcome = "crashed";
    mission.report = "the campaign was interrupted while it ran";
    mission.ended_ms = SystemClock().UnixMs();
    mission.owner.clear();
    mission.spend = SpendForRow(workspace, mission).dump();  // what was paid stays paid
    mission.state = mission.best_commit.empty() ? "done" : "ended";
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
    mission.state = "ended";
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

// Worktrees, checkouts, builds and branches that no mission needs any more.
Result<> Campaign::Impl::SweepLeftovers() {
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

}  // namespace crucible
