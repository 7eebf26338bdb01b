// campaign.h: the campaign loop: what `crucible campaign launch` and `resume` run.
//
// One process, one thread; agents and the integration are children of it. Every step writes its row
// before the next begins, so a killed campaign is continued from the log: what was running is swept
// (processes by the run's nonce, worktrees, branches), finished experiments stay, a merge that had
// reached main is completed and one that had not is repeated.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "checks/target.h"
#include "missions/campaign_file.h"
#include "orchestrator/workspace.h"
#include "results_log/store.h"

namespace crucible {

struct CampaignSummary {
  std::string name, state;  // finished | stopped | paused | interrupted
  int missions = 0, landed = 0, crashed = 0, experiments = 0;
  std::string why;  // it ended
};

// "ACTION campaign NAME: the log has no such campaign; …"
Error NoSuchCampaign(const std::string& action, const std::string& name);

// A line of progress for a person; called often, never from two threads.
using Progress = std::function<void(const std::string& line)>;

class Campaign {
 public:
  // A new campaign. kConflict when one of that name is there already (resume it; one that broke off
  // or was killed before it had done anything is launched anew), kUsage on a bad file or a dirty
  // checkout of main; nothing is written before everything was checked.
  static Result<Campaign> Launch(const CampaignFile& file, const std::filesystem::path& repository,
                                 const Workspace& workspace, Progress progress);
  // Takes up one that was paused, stopped, interrupted or killed. kConflict while its owner lives.
  static Result<Campaign> Resume(const std::string& name, const std::filesystem::path& repository,
                                 const Workspace& workspace, Progress progress);
  Campaign(Campaign&&) noexcept;
  Campaign& operator=(Campaign&&) noexcept;
  ~Campaign();

  // Runs until its budget, a stop or pause (from the log, by any process), or SIGINT / SIGTERM. A
  // failure (a full disk, no compiler) ends it as a signal would: its processes, worktrees and
  // branches go, and a launch that had measured nothing yet is taken back whole.
  Result<CampaignSummary> Run();

 private:
  struct Impl;
  explicit Campaign(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace crucible
