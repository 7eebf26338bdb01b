// workspace.h: where a campaign keeps its things, and what its children are told.
//
//   .crucible/log.sqlite            the results log
//   .crucible/campaigns/NAME/       campaign.toml, target.toml (frozen at the launch), campaign.log
//   .crucible/campaign-NAME.lock    held by the process that runs the campaign
//   .crucible/missions/ID/          mission.md, mission.json, result.json, agent.log, reports, builds
//   .crucible/worktrees/ID          the mission's worktree; `integration` is the merge's
//   .crucible/checkouts/COMMIT      detached checkouts of commits of main (baselines, harnesses)
//   .crucible/builds/KEY            built baselines by source hash
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "base/files.h"
#include "base/result.h"

namespace crucible {

struct Workspace {
  std::filesystem::path home;      // .crucible
  std::filesystem::path programs;  // build/bin: the judge, gpu_run and crucible itself

  std::filesystem::path LogFile() const { return home / "log.sqlite"; }
  std::filesystem::path Campaign(const std::string& name) const {
    return home / "campaigns" / name;
  }
  std::filesystem::path Mission(const std::string& id) const { return home / "missions" / id; }
  std::filesystem::path Worktree(const std::string& id) const { return home / "worktrees" / id; }
  std::filesystem::path Checkout(const std::string& commit) const {
    return home / "checkouts" / commit.substr(0, 12);
  }
  std::filesystem::path Builds() const { return home / "builds"; }
  // Locked while a checkout or a build of a commit of main is made.
  std::filesystem::path BaselineLock() const { return home / "baseline.lock"; }

  // Held by the process that runs a campaign.
  std::filesystem::path CampaignLock(const std::string& name) const {
    return home / ("campaign-" + name + ".lock");
  }
  // Held while a campaign becomes a process's own, and while one at its end sweeps what no campaign
  // that runs needs: who begins then waits for the sweep, who began before is seen by it.
  std::filesystem::path OwnersLock() const { return home / "owners.lock"; }
  // One merge at a time: a person's approval waits for the campaign's merge and that for it.
  std::filesystem::path MergeLock() const { return home / "merge.lock"; }

  // The environment of every child of a mission: where the state is, whose work this is, and the
  // nonce of the orchestrator's run, by which a later run finds and ends what a killed one left.
  std::map<std::string, std::string> Environment(const std::string& mission,
                                                 const std::string& run_nonce) const {
    std::map<std::string, std::string> environment{{"CRUCIBLE_HOME", home.string()},
                                                   {"CRUCIBLE_RUN", run_nonce}};
    if (!mission.empty()) {
      environment["CRUCIBLE_MISSION"] = mission;
      environment["CRUCIBLE_MISSION_DIR"] = Mission(mission).string();
      environment["CRUCIBLE_MISSION_RUN"] = mission + ":" + run_nonce;
    }
    return environment;
  }
};

// Makes the state folder. It ignores itself, so that it never makes a repository dirty.
inline Result<> PrepareHome(const Workspace& workspace) {
  CRUCIBLE_TRY(MakeDirectories(workspace.home));
  std::error_code ignored;
  if (std::filesystem::exists(workspace.home / ".gitignore", ignored)) return {};
  return WriteFileAtomically(workspace.home / ".gitignore", "*\n");
}

}  // namespace crucible
