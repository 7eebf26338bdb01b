// store.h: the results log on disk.
//
// SQLite in WAL mode: many readers, one writer at a time, from any process (each write is one
// immediate transaction that waits for the other; 10 s busy timeout). An entry is identified by its
// key, and adding the same key twice is one entry, so a step that is repeated after a crash doubles
// nothing. A Store is used by one thread at a time. Every method returns the database's own words
// on failure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "results_log/entry.h"

namespace crucible {

struct ImportSummary;

struct EntryFilter {
  std::vector<std::string> cases;  // any of them; empty: all
  std::vector<EntryKind> kinds;
  std::string target, campaign, mission, mechanism, author;  // exact; empty: any
  std::string text;  // substring of mechanism, hypothesis, summary, reason
  std::optional<std::int64_t> since_ms;
  bool superseded = true;  // false: leave out entries that another supersedes
  int limit = 0;           // newest first when > 0, else oldest first, all
};

struct CampaignRow {
  std::string name, target, file, settings, state, owner;
  std::int64_t started_ms = 0;
  std::optional<std::int64_t> ended_ms, deadline_ms;
  std::string base_commit, phase, message;
};

struct MissionRow {
  std::string id, campaign, target, flavour, goal;
  std::vector<std::string> cases;
  std::string settings = "{}";
  std::string state = "planned", outcome, merge_outcome, owner, branch, worktree;
  std::string base_commit, best_commit, merge_commit, report, spend = "{}";
  std::int64_t planned_ms = 0;
  std::optional<std::int64_t> started_ms, ended_ms;
};

struct Point {
  std::string target, case_name, kind, name;
  std::int64_t time_ms = 0;
  double median_us = 0;
  std::optional<double> low_us, high_us;
  bool record = false;
  std::string entry_key;
  std::string conditions = "{}";
};

struct Event {
  std::int64_t id = 0, time_ms = 0;
  std::string campaign, mission, kind, text;
};

// A job of the device's queue (gpu_runner writes the table).
struct LoggedJob {
  std::string id, device, argv, mission, outcome;
  std::int64_t queued_ms = 0;
  std::optional<std::int64_t> started_ms, ended_ms;
  std::string runner;  // the process in charge, as ProcessIdentityFromText reads it
};

class Store {
 public:
  // Creates the file and its folder where missing. kUsage on a file that is not a results log or
  // comes from a newer version; kIo on a full disk or missing permission.
  static Result<Store> Open(const std::filesystem::path& file);
  static Result<Store> OpenReadOnly(const std::filesystem::path& file);  // kNotFound where missing
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Adds the entry, or finds the one with the same key. Returns its id. An empty key gets a new
  // one. `fresh` (if given) is whether it was new.
  Result<std::int64_t> AddEntry(const Entry& entry, bool* fresh = nullptr);
  // The same for many in one transaction: all or none.
  Result<int> AddEntries(const std::vector<Entry>& entries);  // how many were new
  // "e12" and "12" are ids; a key, or at least six characters that one key alone begins with.
  // kUsage, with the candidates, where several do.
  Result<Entry> FindEntry(const std::string& key_or_id);
  Result<std::vector<Entry>> QueryEntries(const EntryFilter& filter);
  Result<> MarkLanded(const std::string& key);
  Result<> MarkConflated(const std::string& key, bool conflated);

  Result<> PutCampaign(const CampaignRow& row);  // insert or replace
  Result<std::optional<CampaignRow>> FindCampaign(const std::string& name);
  Result<std::vector<CampaignRow>> Campaigns();  // newest first
  // The row and its events, of a campaign that never began; entries and missions are never removed.
  Result<> RemoveCampaign(const std::string& name);
  // Changes the state only where it is `from`; false when it was not.
  Result<bool> MoveCampaign(const std::string& name, const std::string& from,
                            const std::string& to);
  Result<> SetCampaignPhase(const std::string& name, const std::string& phase,
                            const std::string& message);

  Result<std::string> AddMission(MissionRow row);  // gives it the next id m1, m2, …
  Result<> PutMission(const MissionRow& row);      // replaces the row of that id
  Result<std::optional<MissionRow>> FindMission(const std::string& id);
  Result<std::vector<MissionRow>> Missions(const std::string& campaign);  // "" : all; oldest first

  Result<> AddPoints(const std::vector<Point>& points);          // duplicates are ignored
  Result<std::vector<Point>> Points(const std::string& target);  // oldest first

  Result<> AddEvent(const std::string& campaign, const std::string& mission,
                    const std::string& kind, const std::string& text);
  Result<std::vector<Event>> Events(const std::string& campaign, std::int64_t after_id);

  Result<std::vector<LoggedJob>> Jobs();  // newest first; none without the table

  Result<std::string> Meta(const std::string& name);  // "" when unset
  Result<> SetMeta(const std::string& name, const std::string& value);

  // Runs `work` in one immediate transaction: all of its writes, or none.
  template <class Work>
  auto InTransaction(Work work) -> decltype(work());
  Result<> Begin();
  Result<> Commit();
  void Rollback();

  struct Impl;  // store_impl.h, private to results_log

 private:
  // The importer writes rows that no other caller may (an event with its own time).
  friend Result<ImportSummary> ImportLines(Store* store, std::string_view text,
                                           const std::string& name);
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

template <class Work>
auto Store::InTransaction(Work work) -> decltype(work()) {
  CRUCIBLE_TRY(Begin());
  auto result = work();
  if (!result.has_value()) {
    Rollback();
    return result;
  }
  CRUCIBLE_TRY(Commit());
  return result;
}

}  // namespace crucible
