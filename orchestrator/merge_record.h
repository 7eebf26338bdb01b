// merge_record.h: what came of one mission's merge, in the log: its row, its entry, its points.
//
// Each verdict is one transaction, so that a kill leaves either the question or the whole answer.
// integrate.cc asks the questions. One thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "checks/target.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/integrate.h"
#include "orchestrator/judge.h"
#include "results_log/store.h"

namespace crucible {

class MergeRecord {
 public:
  MergeRecord(MissionOrder order, std::string target, Store store, MissionRow row)
      : order_(std::move(order)),
        target_(std::move(target)),
        store_(std::move(store)),
        row_(std::move(row)) {}

  const MissionRow& row() const { return row_; }

  Result<> Begin();                                // it is being merged; no merge commit yet
  Result<> BeforeMove(const std::string& commit);  // main is about to move there
  Result<std::vector<Point>> Points() { return store_.Points(target_); }
  std::string MergeMessage();                                    // of the merge commit
  void Event(const std::string& kind, const std::string& text);  // in the log and on stderr

  // The ends. A loss, a failed check or noise, with the report's numbers; `kind` says which.
  Result<Integration> Refuse(const std::string& outcome, EntryKind kind, const std::string& text,
                             const JudgeReport* report = nullptr);
  Result<Integration> Reject(const JudgeReport& report);  // what the report says against it
  Result<Integration> Hold(const std::string& outcome, const std::string& text);  // for a person
  // Main is at the row's merge commit; `short_of_record` as of PointsOfLanding.
  Result<Integration> Land(const JudgeReport& report, const std::set<std::string>& short_of_record);

 private:
  Entry MergeEntry(const JudgeReport* report);
  std::string Mechanisms();
  EntryFilter Kept() const;

  MissionOrder order_;
  std::string target_;
  Store store_;
  MissionRow row_;
};

}  // namespace crucible
