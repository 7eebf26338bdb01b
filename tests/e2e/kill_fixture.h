// kill_fixture.h: a campaign of the proposer that lands a merge every few seconds, to be killed, and
// what its log and main must say of each other whenever it was.
#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"
#include "results_log/store.h"
#include "tests/e2e/wasteful_fixture.h"

namespace crucible {

class KillFixture : public WastefulFixture {
 protected:
  void SetUp() override {
    WastefulFixture::SetUp();
    Write("campaign.toml",
          "name = \"passes\"\ntarget = \"examples/transpose/target.toml\"\nagents = 2\n"
          "[budget]\nwall = \"20m\"\n[mission]\nwall = \"40s\"\nexperiments = 1\n"
          "[agent]\nkind = \"proposer\"\nseed = 7\n");
    Commit("Add a campaign without end");
    start_ = Git({"rev-parse", "main"});
  }

  // Launches the campaign or, where it was launched, resumes it.
  Subprocess Go() {
    const bool launched = Crucible({"campaign", "status", "passes"}).status.ok();
    SubprocessSpec spec =
        Spec({std::string(CRUCIBLE_BIN_DIR) + "/crucible", "campaign",
              launched ? "resume" : "launch", launched ? "passes" : "campaign.toml"});
    spec.out = spec.err = Stdio::kFile;
    spec.log_path = root_ / "campaign.log";
    auto run = Subprocess::Start(spec);
    CRUCIBLE_CHECK(run.has_value(), "crucible starts");
    return std::move(*run);
  }

  // The last words of a run, which say why it ended.
  std::string Said() {
    const std::string text = ReadFile(root_ / "campaign.log").value_or("");
    return text.size() <= 4000 ? text : "…" + text.substr(text.size() - 4000);
  }

  Result<Store> Log() { return Store::OpenReadOnly(repository_ / ".crucible" / "log.sqlite"); }

  // No log yet, or one whose making was cut off, has none.
  std::vector<Entry> Entries() {
    auto log = Log();
    if (!log) return {};
    const auto entries = log->QueryEntries({});
    EXPECT_TRUE(entries) << (entries ? "" : entries.error().text);
    return entries.value_or(std::vector<Entry>());
  }
  std::vector<MissionRow> Missions() {
    auto log = Log();
    if (!log) return {};
    return log->Missions("").value_or(std::vector<MissionRow>());
  }
  bool AMergeIsUnderWay() {
    const auto missions = Missions();
    return std::any_of(missions.begin(), missions.end(),
                       [](const MissionRow& row) { return row.state == "merging"; });
  }
  std::vector<Entry> Landings() {
    std::vector<Entry> landings;
    for (const Entry& entry : Entries())
      if (entry.author == "orchestrator" && entry.kind == EntryKind::kWin && entry.landed)
        landings.push_back(entry);
    return landings;
  }
  static std::vector<std::string> EvidenceOf(const Entry& entry, const std::string& kind) {
    std::vector<std::string> values;
    for (const Evidence& item : entry.evidence)
      if (item.kind == kind) values.push_back(item.ref);
    return values;
  }

  // Looks every 5 ms, for as long as the process runs and `most_ms` last.
  template <class Seen>
  static bool Await(Subprocess* run, std::int64_t most_ms, Seen seen) {
    const std::int64_t until = SystemClock().UnixMs() + most_ms;
    while (run->running() && SystemClock().UnixMs() < until) {
      if (seen()) return true;
      SystemClock().SleepFor(std::chrono::milliseconds(5));
    }
    return false;
  }

  // main and the log tell the same story: each commit that main got is the merge of exactly one
  // landed entry, of the commit that its mission had kept, and its claim was measured and accepted
  // by a gate whose report is there.
  void ExpectMainMovedByVerifiedMergesAlone() {
    std::map<std::string, Entry> landed;  // by merge commit
    for (const Entry& entry : Landings()) {
      const auto commits = EvidenceOf(entry, "merge_commit");
      ASSERT_EQ(commits.size(), 1u) << entry.key;
      EXPECT_TRUE(landed.emplace(commits[0], entry).second) << commits[0] << " landed twice";
    }
    std::istringstream moves(Git({"rev-list", "--first-parent", "--parents", start_ + "..main"}));
    std::size_t count = 0;
    for (std::string line; std::getline(moves, line); ++count) {
      std::istringstream words(line);
      std::string commit, tip, kept, more;
      words >> commit >> tip >> kept >> more;
      EXPECT_TRUE(!kept.empty() && more.empty()) << line << " is not a merge of two";
      const auto found = landed.find(commit);
      ASSERT_NE(found, landed.end()) << "main has " << commit << ", of which the log has nothing";
      EXPECT_EQ(EvidenceOf(found->second, "commit"), std::vector<std::string>{kept});
      for (const CaseResult& result : found->second.cases)
        EXPECT_TRUE(result.role != "claim" || result.verdict == "accepted") << found->second.key;
      for (const std::string& report : EvidenceOf(found->second, "report"))
        EXPECT_TRUE(ReadFile(repository_ / ".crucible" / report)) << report;
      EXPECT_FALSE(EvidenceOf(found->second, "report").empty()) << found->second.key;
    }
    EXPECT_EQ(count, landed.size()) << "a landed entry whose merge main does not have";
  }

  // What a proposer that ended by itself measured is in the log, once: its reports are on disk, so
  // they tell of an entry that was lost.
  void ExpectEachFinishedExperimentOnce() {
    std::map<std::string, int> cited;  // by report, in the proposers' entries
    for (const Entry& entry : Entries())
      if (entry.author != "orchestrator")
        for (const std::string& report : EvidenceOf(entry, "report")) ++cited[report];
    int finished = 0;
    for (const MissionRow& mission : Missions()) {
      if (mission.outcome != "candidate" && mission.outcome != "no_change") continue;
      const std::string reports = "missions/" + mission.id + "/reports/";
      for (const char* rule : {"001-confirm.json", "001-screen.json"}) {
        if (!std::filesystem::exists(repository_ / ".crucible" / reports / rule)) continue;
        EXPECT_EQ(cited[reports + rule], 1) << reports << rule;
        ++finished;
        break;  // the last of them is what the entry cites
      }
    }
    for (const auto& [report, times] : cited) EXPECT_EQ(times, 1) << report;
    EXPECT_GE(finished, 1) << "no experiment was finished";
  }

  void ExpectDeviceFree() {
    const auto run = RunCaptured(Spec({std::string(CRUCIBLE_BIN_DIR) + "/gpu_run", "--device",
                                       "cpu", "--queue-limit", "5s", "--", "true"}),
                                 std::chrono::seconds(20));
    ASSERT_TRUE(run);
    EXPECT_TRUE(run->status.ok()) << run->err;
  }

  std::string start_;  // main before the campaign
};

}  // namespace crucible
