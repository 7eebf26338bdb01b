// mission_state.h: what the tools of a mission remember, kept in the mission's folder.
//
// tools.json is rewritten whole before a tool answers, so a set of tools that is made again
// (another client, a killed agent) knows which tree was measured, what is held and what is still to
// be logged. The folder is not reachable from the sandbox, so an agent cannot write its own verdict
// here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "checks/target.h"
#include "results_log/entry.h"

namespace crucible {

// What the judge said of one state of the editable files.
struct TreeVerdict {
  std::string tree;     // source hash
  std::string against;  // compare: source hash of the other side
  std::string rule;     // compare: screen, claim; check: quick, full
  std::string verdict;  // accepted, rejected, …; passed or failed
  bool pass = false;
};

struct MissionState {
  int number = 0;            // entries made, for their keys
  int judged = 0;            // reports made, for their names
  Arm held;                  // what comparisons are made against: the last commit
  int held_slot = 0;         // its build folder: build-0 or build-1; the other is free
  std::optional<Arm> built;  // the candidate in the other slot, as far as it built
  std::optional<TreeVerdict> checked, compared;  // the last of each
  std::set<std::string> measured;                // trees that were compared: each is one experiment
  // The last measurement as an entry without words, until log_experiment takes it.
  std::optional<Entry> pending;
  std::string pending_known;  // the entry that it repeats, when the log refused it
  std::string last_logged;    // key
};

// A fresh state holds `baseline`. kUsage when the file is not what was written.
Result<MissionState> LoadMissionState(const std::filesystem::path& file, const Arm& baseline);
Result<> SaveMissionState(const std::filesystem::path& file, const MissionState& state);

}  // namespace crucible
