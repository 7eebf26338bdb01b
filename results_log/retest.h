// retest.h: which rejections today's conditions no longer support, and how entries replace others.
//
// A rejection holds only under the conditions it was measured under. Pure over its rows, except
// SplitEntry, which writes. A rejection that was measured again since, under today's conditions, is
// answered by that newer entry and not listed.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "results_log/conditions.h"
#include "results_log/store.h"

namespace crucible {

// Loss, null, refused or crashed: "do not retry" while its conditions hold.
bool IsRejection(EntryKind kind);
// The same of an entry, unless its change is on main all the same (kept for another reason than
// speed).
bool IsRejection(const Entry& entry);

// Keys of the entries that another supersedes or that were split into parts.
std::set<std::string> ReplacedKeys(const std::vector<Entry>& entries);

// True when one of `cases` is among the entry's, or either names none.
bool Concerns(const Entry& entry, const std::vector<std::string>& cases);

// True when the same experiment was a win later on: no rejection any more, whatever holds today.
bool OverturnedLater(const std::vector<Entry>& entries, const Entry& rejection);

struct Retest {
  Entry entry;
  std::vector<ChangedCondition> changed;
};

// Every rejection and inconclusive result of `cases`, by what became of it.
struct RetestSurvey {
  int replaced = 0;             // another entry took its place
  int settled = 0;              // won or measured again since
  int without_conditions = 0;   // it names none, so none can change
  int holding = 0;              // none of its conditions is known to be different today
  std::vector<Retest> retests;  // up for a retest, oldest first as given
};
RetestSurvey SurveyRetests(const std::vector<Entry>& entries, const std::vector<std::string>& cases,
                           const Conditions& now);

// Those of them that are up for a retest.
std::vector<Retest> FindRetests(const std::vector<Entry>& entries,
                                const std::vector<std::string>& cases, const Conditions& now);

// "compiler: gcc 12.2 -> gcc 13.1; driver: …"
std::string Describe(const std::vector<ChangedCondition>& changed);

// Today's conditions as far as the log knows them: `known` (what the harness last said, may be
// empty), else each field as the newest entry that names it (of a person's, only where it holds
// times: a remark about another machine is not today); the kernel's generation from the
// newest entry of those cases, or "after KEY" when that entry landed and so changed the kernel.
Conditions ConditionsFromLog(const std::vector<Entry>& entries,
                             const std::vector<std::string>& cases, Conditions known);

// A floor must name the limit it was computed from: a file or job as evidence, or a reason with the
// machine's rate in it: a number of bytes or operations a second or a cycle, a clock, a latency. One
// that does neither, whatever other numbers it has, is asserted, to be challenged.
bool IsAssertedFloor(const Entry& floor);

// Splits an entry that changed several things at once: each part (at least two) is added with
// `split_from` and the original's target, campaign, mission, cases (without their times, which are
// of all parts together), conditions and evidence, where the part has none of its own; the original
// is marked conflated. Keys are KEY.s1, KEY.s2, …, so a
// repeated split adds nothing. Returns the parts as stored.
Result<std::vector<Entry>> SplitEntry(Store* store, const std::string& key_or_id,
                                      std::vector<Entry> parts);

}  // namespace crucible
