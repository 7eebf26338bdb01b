// baseline.h: main as an arm: checked out, built once per source hash, measured at the start.
//
// Baselines are what candidates are compared with, so they are rebuilt and re-measured, never taken
// from stored times. Checkouts and builds are made on demand and removed with the campaign.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "checks/target.h"
#include "orchestrator/repository.h"
#include "orchestrator/workspace.h"
#include "results_log/store.h"

namespace crucible {

struct BaselineContext {
  const Workspace* workspace = nullptr;
  const Target* target = nullptr;
  Repository* repository = nullptr;
  std::string run_nonce;
  std::function<bool()> stop = nullptr;  // see JudgeRequest
};

// The arm of a commit: checkouts/COMMIT, built in builds/SOURCE_HASH. One process makes one at a
// time; another that wants it waits. What a killed process left half made is made again.
Result<Arm> BaselineArm(const BaselineContext& context, const std::string& commit);

// Hash of the sources that decide how fast the named cases are: the files at the target's editable
// paths, less the knob files that can only move other cases.
Result<std::string> KernelGeneration(const BaselineContext& context, const std::string& commit,
                                     const std::vector<std::string>& cases);

// Which knob files move each case of the target; nothing where it has no knobs.
Result<std::map<std::string, std::set<std::string>>> KnobFilesOfCases(
    const BaselineContext& context, const std::string& commit);

// What a measurement of main is for.
enum class MeasureFor {
  // A campaign's first times: of a bar that has no record yet they are it, until a confirmed run
  // beats it. A bar that has one gets a point only where the kernel is another than the record's.
  kFirstPoints,
  kBesidePeers,  // main and the peers in one run; bars move by confirmed comparisons only
};

// Measures a commit of main and the peers and logs it: an entry, points, floors, today's
// conditions. `key` identifies the entry, so that a repeated call after a crash adds nothing.
Result<> MeasureMain(const BaselineContext& context, Store* store, const std::string& commit,
                     const std::string& key, const std::string& campaign, MeasureFor purpose);

// The conditions of the newest measurement of the target, kept by MeasureMain.
Result<std::map<std::string, std::string>> KnownConditions(Store* store, const std::string& target);

}  // namespace crucible
