// entry.h: one line of the results log: what was tried, what came of it, under which conditions.
//
// Plain data with a JSON form (docs/log_format.md) that round-trips without loss. A rejection holds
// only under its conditions, so they are part of the entry, never looked up later.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

enum class EntryKind {
  kWin,           // measured faster and (see `landed`) merged or merge-ready
  kLoss,          // measured slower
  kNull,          // measured: no difference beyond the minimum effect
  kInconclusive,  // noise too large to say: to be measured again, never "rejected"
  kRefused,       // not measured: statically invalid, wrong result, protected path, conflict
  kCrashed,       // the build, the check or the process broke
  kNote,          // a person's or agent's remark, an idea, a lead
  kFloor,         // a limit that a case cannot beat, with what it was computed from
};

std::string_view ToText(EntryKind kind);  // "win", "loss", …
std::optional<EntryKind> EntryKindFromText(std::string_view text);

// What was measured on one case. Times in microseconds; ratio = after / before.
struct CaseResult {
  std::string name;            // "n176"
  std::string role = "claim";  // claim | ratchet | measure
  std::string verdict;         // accepted, rejected, no_difference, inconclusive, …
  std::optional<double> before_us, after_us;
  std::optional<double> ratio, ratio_low, ratio_high;
  std::optional<std::int64_t> rounds;
};

// Where the proof is: a file or object that can be opened, with its hash.
struct Evidence {
  std::string kind;    // commit | base_commit | job | report | profile | file | url
  std::string ref;     // commit id, job id, path relative to .crucible/
  std::string sha256;  // of the file, where it is one
};

// The worst scaled residual of a gate over all checks of a measurement, and whose it was.
struct Margin {
  Margin(double worst = 0) : value(worst) {}  // NOLINT: a number is a margin of an unknown matrix
  operator double() const { return value; }

  double value;
  std::string check;         // "dense n=32 batch=3 cond=2"; empty where it is not known
  std::int64_t matrix = -1;  // of that check's batch
  std::int64_t seed = 0;     // of that check's inputs
  bool known() const { return !check.empty(); }
};

struct Entry {
  std::int64_t id = 0;  // row number in this log, set by the store; not exported identity
  std::string key;      // globally unique and stable: what export, import and citations use
  EntryKind kind = EntryKind::kNote;
  std::int64_t time_ms = 0;  // Unix milliseconds, UTC
  std::string target, campaign, mission;
  std::string author;      // "proposer", "orchestrator", "user:NAME", "agent:MODEL"
  std::string flavour;     // kernel, explorer, precision, simplifier, scout, proposer; or empty
  std::string mechanism;   // what it changes physically, short and reusable: "panel width"
  std::string hypothesis;  // what was expected and why
  std::string summary;     // what happened, with the numbers, in a sentence
  std::string reason;      // why it was decided so
  std::string change;      // JSON object text: {"small.panel_width": [1, 8]} or {"diff": "…"}
  std::vector<CaseResult> cases;
  std::map<std::string, std::string> conditions;  // see conditions.h
  std::vector<Evidence> evidence;
  std::map<std::string, Margin> margins;  // by gate
  bool landed = false;                    // its commit is on main
  std::string supersedes;                 // key of the entry this one replaces
  std::string split_from;                 // key of the conflated entry this one is a part of
  bool conflated = false;                 // marked: it changed two things at once
};

nlohmann::json ToJson(const Entry& entry);
Result<Entry> EntryFromJson(const nlohmann::json& json);

}  // namespace crucible
