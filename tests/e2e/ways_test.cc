// Every way an agent can end, and a harness that cannot be trusted: each in its state, nothing left.
#include <map>

#include "tests/e2e/campaign_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;

class WaysTest : public CampaignFixture {};

TEST_F(WaysTest, AnAgentThatCommitsNothingEndsAsNoChange) {
  MakeTargetQuick();
  UseScriptAgent("exit 0\n");
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(OnlyMission()["outcome"], "no_change");
  EXPECT_EQ(OnlyMission()["merge_outcome"], "nothing_to_merge");
  ExpectTidy();
}

TEST_F(WaysTest, AnAgentThatCrashesEndsAsCrashed) {
  MakeTargetQuick();
  UseScriptAgent("kill -SEGV $$\n");
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  EXPECT_EQ(run.status.code, 1) << run.err;
  EXPECT_NE(run.err.find("its only mission crashed"), std::string::npos) << run.err;
  EXPECT_EQ(OnlyMission()["outcome"], "crashed");
  EXPECT_NE(OnlyMission()["report"].get<std::string>().find("signal 11"), std::string::npos);
  ExpectTidy();
}

TEST_F(WaysTest, ProtectedPathsStopAMerge) {
  MakeTargetQuick();
  UseScriptAgent(
      "echo '# faster' >> examples/transpose/harness.py\n"
      "sed -i 's/kBlock = 2;/kBlock = 1;/' examples/transpose/tuning.h\n"
      "git -c user.name=a -c user.email=a@b commit -qam cheat\n");
  const std::string start = Git({"rev-parse", "main"});
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(OnlyMission()["merge_outcome"], "protected_path");
  EXPECT_EQ(Git({"rev-parse", "main"}), start);
  const json refused = Query({"--kind", "refused"});
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0]["reason"].get<std::string>().find("harness.py"), std::string::npos);
  ExpectTidy();
}

TEST_F(WaysTest, AKernelThatIsFastAndWrongNeverLands) {
  MakeTargetQuick();
  // Leaves out the last row: right on every case whose size is even in a careless check.
  UseScriptAgent(
      "sed -i 's/kBlock = 2;/kBlock = 1;/' examples/transpose/tuning.h\n"
      "sed -i 's/row < n;/row < n - 1;/' examples/transpose/transpose.cc\n"
      "git -c user.name=a -c user.email=a@b commit -qam wrong\n");
  const std::string start = Git({"rev-parse", "main"});
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(OnlyMission()["merge_outcome"], "check_failed");
  EXPECT_EQ(Git({"rev-parse", "main"}), start);
  ExpectTidy();
}

TEST_F(WaysTest, ABrokenBuildEndsItsOwnMissionOnly) {
  MakeTargetQuick();
  UseScriptAgent(
      "echo 'this is no C++' >> examples/transpose/transpose.cc\n"
      "git -c user.name=a -c user.email=a@b commit -qam broken\n");
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  EXPECT_EQ(OnlyMission()["merge_outcome"], "build_failed");
  const json crashed = Query({"--kind", "crashed"});
  ASSERT_EQ(crashed.size(), 1u);
  EXPECT_NE(crashed[0]["reason"].get<std::string>().find("transpose.cc"), std::string::npos)
      << "the compiler's own words: " << crashed[0];
  ExpectTidy();
}

TEST_F(WaysTest, EveryWayToFailEndsInItsStateBesideAMissionThatWorks) {
  // Six missions at once, each on a case of its own, which tells its agent what to do.
  MakeTargetQuick("2s");
  const std::string target = "examples/transpose/target.toml";
  std::string text = ReadFile(repository_ / target).value();
  std::string cases;
  const char* const ways[] = {"crash", "hang", "nothing", "protected", "broken", "works"};
  int n = 200;
  for (const char* way : ways)
    cases += fmt::format("[[case]]\nname = \"{}\"\nparams = {{ n = {} }}\n\n", way, ++n);
  const std::size_t first = text.find("[[case]]"), after = text.find("[[check]]");
  ASSERT_LT(first, after);
  text.replace(first, after - first, cases);
  ASSERT_TRUE(WriteFileAtomically(repository_ / target, text));
  UseScriptAgent(
      "has() { grep -A1 '\"cases\"' \"$(dirname \"$1\")/mission.json\" | grep -q \"\\\"$2\\\"\"; "
      "}\n"
      "end() { git -c user.name=a -c user.email=a@b commit -qam \"$1\"; exit 0; }\n"
      "has \"$1\" crash && kill -SEGV $$\n"
      "has \"$1\" hang && { setsid sleep 1000 & sleep 1000; }\n"
      "has \"$1\" nothing && exit 0\n"
      "has \"$1\" protected && { echo '#' >> examples/transpose/harness.py; end protected; }\n"
      "has \"$1\" broken && { echo 'no C++' >> examples/transpose/transpose.cc; end broken; }\n"
      "echo '// as fast as before' >> examples/transpose/transpose.cc; end works\n",
      6);
  Replace("scripted.toml", "agents = 1", "agents = 6");
  Replace("scripted.toml", "wall = \"8s\"", "wall = \"4s\"");
  Commit("All at once");
  const std::string start = Git({"rev-parse", "main"});
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  // The one that hung was ended with its child, which had left its process group.
  EXPECT_TRUE(ProcessesWithEnvironment("CRUCIBLE_E2E", mark_).empty());
  std::map<std::string, std::string> outcome, merged;
  for (const json& mission :
       json::parse(Crucible({"mission", "list", "--json"}).out, nullptr, false)) {
    EXPECT_EQ(mission["state"], "done") << mission;
    outcome[mission["cases"][0]] = mission["outcome"];
    merged[mission["cases"][0]] = mission["merge_outcome"];
  }
  EXPECT_EQ(outcome, (std::map<std::string, std::string>{{"crash", "crashed"},
                                                         {"hang", "budget"},
                                                         {"nothing", "no_change"},
                                                         {"protected", "candidate"},
                                                         {"broken", "candidate"},
                                                         {"works", "candidate"}}));
  for (const char* way : {"crash", "hang", "nothing"})
    EXPECT_EQ(merged[way], "nothing_to_merge") << way;
  EXPECT_EQ(merged["protected"], "protected_path");
  EXPECT_EQ(merged["broken"], "build_failed");
  // Nobody was in its way: it was built, checked and compared to a verdict of its own.
  EXPECT_TRUE(merged["works"] == "not_faster" || merged["works"] == "inconclusive" ||
              merged["works"] == "ratchet_failed")
      << merged["works"] << run.err;
  EXPECT_EQ(Git({"rev-parse", "main"}), start);
  ExpectTidy();
}

// A kernel that does honest work is let through, so a target that calls it a cheat shows a harness
// that lets a cheat through.
constexpr char kHonestAsCheat[] =
    "[[exploit]]\nname = \"honest\"\ncommand = [\"python3\", "
    "\"{main}/examples/transpose/harness.py\", \"{build}/libtranspose.so\"]\n"
    "expects = \"anything\"\n\n[limits]\n";

TEST_F(WaysTest, StartsNothingWhereAHarnessLetsACheatThrough) {
  Replace("examples/transpose/target.toml", "[limits]\n", kHonestAsCheat);
  UseScriptAgent("exit 0\n");
  const std::string before = Git({"rev-parse", "main"});
  const Captured run = Crucible({"campaign", "launch", "scripted.toml"});
  EXPECT_FALSE(run.status.ok());
  EXPECT_NE(run.err.find("trust the harness of transpose: honest: let through"), std::string::npos)
      << run.err;
  EXPECT_EQ(Git({"rev-parse", "main"}), before);
  EXPECT_TRUE(Query({}).empty()) << "something was judged by that harness";
}

TEST_F(WaysTest, AProvenHarnessIsNotProvenAgain) {
  UseScriptAgent("exit 0\n");
  const Captured first = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(first.status.ok()) << first.err;
  EXPECT_NE(first.err.find("caught 3 of 3 cheating kernels"), std::string::npos) << first.err;
  Replace("scripted.toml", "name = \"scripted\"", "name = \"again\"");
  Commit("Name it anew");
  const Captured second = Crucible({"campaign", "launch", "scripted.toml"});
  ASSERT_TRUE(second.status.ok()) << second.err;
  EXPECT_NE(second.err.find("is proven"), std::string::npos) << second.err;
  EXPECT_EQ(second.err.find(" of 3 cheating"), std::string::npos) << second.err;
}

TEST_F(WaysTest, DoctorShowsEachCheatWithTheReasonItWasCaughtFor) {
  const std::vector<std::string> words = {"doctor", "--exploits", "--target",
                                          "examples/transpose/target.toml"};
  const Captured whole = Crucible(words);
  EXPECT_TRUE(whole.status.ok()) << whole.err;
  EXPECT_NE(whole.out.find("works_in_place         caught   changed its input"), std::string::npos)
      << whole.out;
  Replace("examples/transpose/target.toml", "[limits]\n", kHonestAsCheat);
  const Captured weak = Crucible(words);
  EXPECT_EQ(weak.status.code, 1) << weak.out;
  EXPECT_NE(weak.out.find("honest                 MISSED   anything"), std::string::npos)
      << weak.out;
}

}  // namespace
}  // namespace crucible
