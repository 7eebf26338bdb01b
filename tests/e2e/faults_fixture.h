// faults_fixture.h: a campaign that is over in seconds, and a look at everything a failed command
// might have left half written.
#pragma once

#include <algorithm>

#include "tests/e2e/campaign_fixture.h"

namespace crucible {

class FaultsFixture : public CampaignFixture {
 protected:
  void SetUp() override {
    CampaignFixture::SetUp();
    // The smallest whole campaign: one mission, whose agent finds nothing; no cheating kernels.
    MakeTargetQuick();
    Write("campaign.toml", kCampaign);
    Commit("A short campaign");
  }

  static constexpr char kCampaign[] =
      "name = \"short\"\ntarget = \"examples/transpose/target.toml\"\nagents = 1\n"
      "[budget]\nwall = \"4m\"\nmissions = 1\n[mission]\nwall = \"8s\"\nexperiments = 1\n"
      "[agent]\nkind = \"command\"\ncommand = [\"true\"]\n";

  Captured Launch() { return Crucible({"campaign", "launch", "campaign.toml"}); }

  // Any program of the repository's place, for its output.
  std::string Output(std::vector<std::string> words) {
    const auto run = RunCaptured(Spec(std::move(words)), std::chrono::minutes(1));
    EXPECT_TRUE(run && run->status.ok()) << (run ? run->err : run.error().text);
    return run ? run->out : "";
  }

  // Every path below the repository, those inside .git too.
  std::string Files() { return Output({"sh", "-c", "find . -print | LC_ALL=C sort"}); }

  // What git and the log know: nothing of a campaign that failed may be in it.
  std::string State() {
    std::string state = Git({"for-each-ref"}) + "\n" + Git({"worktree", "list", "--porcelain"}) +
                        "\n" + Git({"status", "--porcelain"}) + "\n";
    state += Output({"sh", "-c",
                     "for d in worktrees checkouts builds missions campaigns; do "
                     "find .crucible/$d -mindepth 1 2>/dev/null; done; true"});
    if (Crucible({"campaign", "status", "--json"}).status.ok())
      state += Crucible({"campaign", "status", "--json"}).out;
    const Captured log = Crucible({"log", "export", "-", "--events"});
    if (log.status.ok()) state += log.out;
    return state;
  }

  // Exactly one error, with the words wanted: "crucible: ACTION OBJECT: CAUSE; NEXT STEP".
  static void ExpectOneError(const Captured& run, int code, const std::vector<std::string>& words) {
    EXPECT_EQ(run.status.code, code) << run.err;
    EXPECT_EQ(run.status.signal, 0) << run.err;
    EXPECT_EQ(run.out, "");
    const std::string start = "crucible: ";
    std::size_t errors = 0, at = std::string::npos;
    for (std::size_t i = run.err.find(start); i != std::string::npos;
         i = run.err.find(start, i + 1))
      if (i == 0 || run.err[i - 1] == '\n') {
        ++errors;
        at = i;
      }
    EXPECT_EQ(errors, 1u) << run.err;
    if (at == std::string::npos) return;
    const std::string error = run.err.substr(at + start.size());
    EXPECT_NE(error.find(": "), std::string::npos) << "no cause: " << error;
    EXPECT_NE(error.find("; "), std::string::npos) << "no next step: " << error;
    for (const std::string& word : words)
      EXPECT_NE(error.find(word), std::string::npos) << "'" << word << "' is not in: " << error;
  }

  // The fault is gone: the very same command works.
  void ExpectLaunchWorks() {
    const Captured run = Launch();
    EXPECT_TRUE(run.status.ok()) << run.err;
    EXPECT_NE(run.out.find("campaign short finished: 1 mission, "), std::string::npos) << run.out;
    ExpectTidy();
  }
};

}  // namespace crucible
