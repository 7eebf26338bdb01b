// A whole campaign on a tiny target of a user's own: what it finds, what it merges, and what the
// ratchet keeps out.
#include "tests/e2e/wasteful_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;

class CampaignTest : public WastefulFixture {};

TEST_F(CampaignTest, FindsRealImprovementsAndMergesOnlyThem) {
  Replace("examples/transpose/campaign.toml", "experiments = 3", "experiments = 2");
  Commit("Look at less");
  const std::string before = Git({"rev-parse", "main"});
  const Captured run = Crucible({"campaign", "launch", "examples/transpose/campaign.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  const json landed = Query({"--kind", "win"});
  ASSERT_GE(landed.size(), 2u) << "a mission's own win and its merge: " << run.err;
  int merges = 0;
  for (const json& entry : landed) {
    for (const json& item : entry["cases"]) {
      if (item["role"] != "claim") continue;
      EXPECT_LT(item["ratio"].get<double>(), 1.0) << entry;
    }
    merges += entry["author"] == "orchestrator";
    EXPECT_FALSE(entry["conditions"].empty()) << entry;
    EXPECT_FALSE(entry["evidence"].empty()) << entry;
    EXPECT_NE(entry["hypothesis"], "") << entry;
  }
  EXPECT_GE(merges, 1);
  // main moved by exactly the landed merges, and holds the kept configuration.
  EXPECT_EQ(Git({"rev-list", "--first-parent", "--count", before + "..main"}),
            std::to_string(merges));
  EXPECT_NE(Git({"show", "main:examples/transpose/tuning.h"}),
            Git({"show", before + ":examples/transpose/tuning.h"}));
  // The checkout of main followed.
  EXPECT_EQ(Git({"rev-parse", "HEAD"}), Git({"rev-parse", "main"}));
  ExpectTidy();
  // Every measured job went through the runner.
  for (const json& entry : landed) {
    bool job = false;
    for (const json& item : entry["evidence"]) job |= item["kind"] == "job";
    EXPECT_TRUE(job) << entry;
  }
  // The same work is there for people: brief, records, dashboard, round trip.
  const Captured brief = Crucible({"brief", "n120", "--target", "transpose"});
  EXPECT_TRUE(brief.status.ok()) << brief.err;
  EXPECT_NE(brief.out.find("[e"), std::string::npos) << brief.out;
  EXPECT_EQ(Crucible({"brief", "n120", "--target", "transpose"}).out, brief.out);
  const Captured page = Crucible({"dashboard", "--out", (root_ / "page.html").string()});
  EXPECT_TRUE(page.status.ok()) << page.err;
  EXPECT_NE(ReadFile(root_ / "page.html").value().find("n190"), std::string::npos);
  const std::string first = (root_ / "first.jsonl").string();
  const std::string second = (root_ / "second.jsonl").string();
  const std::string other = (root_ / "other.sqlite").string();
  EXPECT_TRUE(Crucible({"log", "export", first}).status.ok());
  EXPECT_TRUE(Crucible({"log", "import", first, "--log", other}).status.ok());
  EXPECT_TRUE(Crucible({"log", "export", second, "--log", other}).status.ok());
  EXPECT_EQ(ReadFile(first).value(), ReadFile(second).value());
}

TEST_F(CampaignTest, ASlowdownOfAnotherCaseIsCaughtByTheRatchet) {
  // Four times as fast where the mission's claim is, four times as slow on the other case.
  UseScriptAgent(
      "up=kLargePasses down=kPasses\n"
      "grep -A1 '\"cases\"' \"$(dirname \"$1\")/mission.json\" | grep -q n190 && "
      "up=kPasses down=kLargePasses\n"
      "sed -i \"s/$up = 128;/$up = 512;/; s/$down = 128;/$down = 32;/\" "
      "examples/transpose/tuning.h\n"
      "git -c user.name=a -c user.email=a@b commit -qam uneven\n");
  const std::string start = Git({"rev-parse", "main"});
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(OnlyMission()["merge_outcome"], "ratchet_failed") << run.err;
  EXPECT_EQ(Git({"rev-parse", "main"}), start);
  ExpectTidy();
}

}  // namespace
}  // namespace crucible
