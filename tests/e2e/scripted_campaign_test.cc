// A campaign of language-model agents with crucible's tools, against everything that goes wrong.
#include "tests/e2e/scripted_fixture.h"

namespace crucible {
namespace {

constexpr char kWarm[] = "more passes";
constexpr char kPassesLine[] = "  const int passes = n > 180 ? kLargePasses : kPasses;";

// Twice the passes: a clear loss, logged with its numbers.
json WarmsTheCache() {
  const json params = {{"passes", {3, 6}}};
  return Conversation(
      "Make n128 faster",
      {Call("read_file", {{"path", kTuningFile}}),
       Edit(kTuningFile, "kPasses = 3;", "kPasses = 6;"), Call("build"), Compare(kWarm, params),
       Commit("Go over it six times"),
       Log(kWarm, "the first passes warm the cache for the last one", params), Call("restore"),
       Report("no_change", "More passes lose; fewer are worth a look.")});
}

// The same again under another heading: the log already answers it.
json WarmsTheCacheAgain() {
  json refused = Report("pivot", "Rejected before as [e${entry}].");
  refused["captures"] = {{"entry", R"(rejected this experiment.*\[e([0-9]+)\])"}};
  return Conversation("Look at the cache of small sizes",
                      {Edit(kTuningFile, "kPasses = 3;", "kPasses = 6;"),
                       Compare("More  PASSES", {{"passes", 6}}), Call("restore"), refused});
}

// The first answer of each size, for ever; and where the commit tool refuses it, git by hand.
json RemembersAnswers() {
  const char* kCheat =
      R"(// transpose.cc: out[j][i] = in[i][j], with the answers of earlier calls kept.
#include <cstring>
#include <map>
#include <vector>

extern "C" int transpose(const float* in, float* out, int n) {
  static std::map<int, std::vector<float>> answers;
  std::vector<float>& answer = answers[n];
  if (answer.empty()) {
    answer.resize(static_cast<long>(n) * n);
    for (long i = 0; i < n; ++i)
      for (long j = 0; j < n; ++j) answer[j * n + i] = in[i * n + j];
  }
  std::memcpy(out, answer.data(), answer.size() * sizeof(float));
  return 0;
}
)";
  return Conversation(
      "Make n160 faster",
      {Call("write_file", {{"path", kKernelFile}, {"content", kCheat}}),
       Call("compare", {{"rule", "claim"}}), Commit("Keep what was computed"),
       Log("kept answers", "most calls ask for a size that was asked for before", json::object()),
       Call("run_command",
            {{"command", "env; git -c user.name=a -c user.email=a@b commit -qam 'Keep answers'"}}),
       Report("no_change", "The tool would not commit it.")});
}

// Faster on its own case, ruinous for another one that its claim does not name.
json SlowsAnotherCase() {
  const json params = {{"large_passes", {3, 1}}};
  return Conversation(
      "Make n192 faster",
      {Edit(kTuningFile, "kLargePasses = 3;", "kLargePasses = 1;"),
       Edit(kKernelFile, "  return 0;",
            "  if (n == 128)\n    for (int k = 0; k < 8 * n * n; ++k) {\n"
            "      volatile float x = in[k % (n * n)];\n      (void)x;\n    }\n  return 0;"),
       Compare("large passes", params),
       Log("large passes", "a third of the time, since every pass costs the same", params),
       Commit("Go over large ones once"), Report("candidate", "One pass is enough above 180."),
       Report("no_change", "It could not be shown to be faster.")});
}

// A real gain by an edited line of the kernel, through every fault that a provider makes; `line` is
// what the line becomes, each time another one.
json FewerPasses(const std::string& goal, const std::string& line, const std::string& mechanism) {
  const json params = {{"passes", {3, 1}}};
  return Conversation(
      goal, {Fault(529, {{"retry_after_ms", "50"}, {"times", 2}}), Call("brief"),
             Fault(429, {{"retry_after", "1"}}), Malformed(Edit(kKernelFile, kPassesLine, line)),
             Fault("drop"), Edit(kKernelFile, kPassesLine, line), Compare(mechanism, params),
             Fault("cut_json"),
             Log(mechanism, "a third of the time: the passes all write the same", params),
             Commit("Go over the matrix once"),
             Report("candidate", "The later passes wrote what was there."),
             Report("no_change", "It could not be shown to be faster.")});
}

constexpr char kPlanner[] =
    "[planner]\nname = \"scripted-planner\"\nprovider = \"openai\"\nwall = \"60s\"\n"
    "usd = { input = 1.0, output = 2.0 }\n";

// A planner model: the last of three candidates, then one that is not on the list.
json Chooses(int candidate, const std::string& why) {
  return Conversation("# Candidates", {Call("choose", {{"candidate", candidate}, {"why", why}})});
}

class ScriptedCampaignTest : public ScriptedFixture {
 protected:
  void TearDown() override {
    if (HasFailure()) fmt::print("{}\n", CampaignLog());
    ScriptedFixture::TearDown();
  }

  // The planner model's first answer is taken; its second names no candidate, so the policy's first
  // is. Both with what they cost.
  void ExpectAModelChoseTheFirstMission() {
    const json missions = Missions();
    ASSERT_GE(missions.size(), 2u);
    const json first = missions[0]["settings"]["planner"];
    EXPECT_EQ(first["chosen"], 3) << first;
    EXPECT_EQ(first["candidates"], 3) << first;
    EXPECT_EQ(first["fallback"], "") << first;
    EXPECT_EQ(first["why"], "Its passes cost the most.");
    EXPECT_GT(missions[0]["spend"].value("planner_usd", 0.0), 0) << missions[0]["spend"];
    const json second = missions[1]["settings"]["planner"];
    EXPECT_EQ(second["chosen"], 1) << second;
    EXPECT_NE(second["fallback"].get<std::string>().find("from 1 to 2"), std::string::npos)
        << second;
    for (const char* told :
         {"m1: scripted-planner chose 3 of 3 candidates", "m2: the policy's first of 2 candidates"})
      EXPECT_NE(CampaignLog().find(told), std::string::npos) << told;
  }

  void ExpectFaultsSurvived(const json& mission) {
    const std::string transcript = Transcript(mission);
    for (const char* what : {"529", "429"})
      EXPECT_NE(transcript.find(what), std::string::npos) << what << "\n" << transcript;
    EXPECT_NE(transcript.find("its arguments are not JSON"), std::string::npos) << transcript;
    EXPECT_GE(mission["spend"].value("retries", 0), 5) << mission["spend"];
    EXPECT_GE(mission["spend"].value("format_errors", 0), 1) << mission["spend"];
    EXPECT_GT(mission["spend"].value("usd", 0.0), 0) << mission["spend"];
  }
};

TEST_F(ScriptedCampaignTest, SixMissionsEndAsEachDeserves) {
  AddCampaign(7, 3, true, "150s", kPlanner);
  StartServer({Chooses(3, "Its passes cost the most."), Chooses(9, "There must be more."),
               WarmsTheCache(), WarmsTheCacheAgain(), RemembersAnswers(), SlowsAnotherCase(),
               FewerPasses("Drop what is done twice",
                           "  const int passes = n > 180 ? kLargePasses : 1;", "one pass"),
               FewerPasses("Count what large sizes cost",
                           "  const int passes = n > 180 ? 1 : kPasses;", "one large pass"),
               NothingToDo()});
  const std::string start = Git({"rev-parse", "main"});
  {
    // The planner's own first choices, one a case; then the rest is added by hand.
    Subprocess run = StartCampaign({"launch", "models.toml"});
    ASSERT_TRUE(Until([&] { return Missions().size() >= 3; }, 180'000)) << CampaignLog();
    EXPECT_TRUE(Crucible({"campaign", "pause", "models"}).status.ok());
    const auto ended = run.Wait(std::chrono::minutes(3));
    ASSERT_TRUE(ended && ended->ok()) << CampaignLog();
  }
  EXPECT_EQ(Git({"rev-parse", "main"}), start) << "nothing of these was to land";
  const std::vector<std::vector<std::string>> added = {
      {"n128", "Look at the cache of small sizes", "explorer"},
      {"n160", "Drop what is done twice", "kernel"},
      {"n192", "Count what large sizes cost", "explorer"}};
  for (const auto& words : added)
    ASSERT_TRUE(Crucible({"mission", "add", "--campaign", "models", "--case", words[0], "--goal",
                          words[1], "--flavour", words[2]})
                    .status.ok());
  {
    Subprocess run = StartCampaign({"resume", "models"});
    const auto ended = run.Wait(std::chrono::minutes(4));
    ASSERT_TRUE(ended && ended->ok()) << CampaignLog();
  }

  ExpectAModelChoseTheFirstMission();

  // A loss, with its numbers, that the commit tool would not take.
  const json warm = MissionOf("Make n128 faster");
  EXPECT_EQ(warm["outcome"], "no_change");
  EXPECT_EQ(warm["merge_outcome"], "nothing_to_merge");
  // "null" where the machine was too busy for more than: no gain.
  const json losses = Query({"--kind", "loss", "--kind", "null"});
  std::int64_t warm_entry = 0;
  for (const json& entry : losses)
    if (entry["mechanism"] == kWarm) {
      warm_entry = entry["id"];
      EXPECT_GT(entry["cases"][0]["ratio"].get<double>(), 1.3) << entry;
    }
  EXPECT_GT(warm_entry, 0) << losses;

  // The same idea again: refused before anything was measured, by the entry's own name.
  const json again = MissionOf("Look at the cache of small sizes");
  EXPECT_EQ(again["outcome"], "pivot");
  EXPECT_EQ(again["spend"]["experiments"], 0) << again;
  EXPECT_NE(again["report"].get<std::string>().find(fmt::format("[e{}]", warm_entry)),
            std::string::npos)
      << again["report"];

  // The slowdown of a case that the claim does not name: the ratchet's rejection, with numbers.
  const json uneven = MissionOf("Make n192 faster");
  EXPECT_EQ(uneven["outcome"], "candidate");
  EXPECT_EQ(uneven["merge_outcome"], "ratchet_failed");
  bool ratchet_logged = false;
  for (const json& entry : losses)
    for (const json& item : entry["cases"])
      if (entry["mission"] == uneven["id"] && item["name"] == "n128" && item["role"] == "ratchet") {
        ratchet_logged = true;
        EXPECT_GT(item["ratio"].get<double>(), 1.1) << entry;
      }
  EXPECT_TRUE(ratchet_logged) << losses;

  // The cheat: caught when compared, not committed, and caught again where it got in by git alone.
  const json cheat = MissionOf("Make n160 faster");
  EXPECT_EQ(cheat["merge_outcome"], "check_failed");
  EXPECT_NE(Transcript(cheat).find("is not column"), std::string::npos) << Transcript(cheat);
  int refused = 0;
  for (const json& entry : Query({"--kind", "refused"}))
    refused += entry["mission"] == cheat["id"] &&
               entry["reason"].get<std::string>().find("is not column") != std::string::npos;
  EXPECT_EQ(refused, 2) << "the comparison's and the merge's: " << Query({"--kind", "refused"});

  // Two real gains in one line of the kernel: one lands, the other conflicts with it.
  const json first = MissionOf("Drop what is done twice");
  const json second = MissionOf("Count what large sizes cost");
  const std::set<std::string> outcomes = {first["merge_outcome"], second["merge_outcome"]};
  EXPECT_EQ(outcomes, (std::set<std::string>{"conflict", "landed"}));
  EXPECT_EQ(Git({"rev-list", "--first-parent", "--count", start + "..main"}), "1");
  EXPECT_NE(Git({"diff", start, "main", "--", kKernelFile}), "");
  for (const json& mission : {first, second}) ExpectFaultsSurvived(mission);
  EXPECT_EQ(first["spend"]["model"], "scripted-messages") << first["spend"];
  EXPECT_EQ(second["spend"]["model"], "scripted-chat") << second["spend"];
  bool conflict_logged = false;
  for (const json& entry : Query({"--kind", "refused"}))
    conflict_logged |=
        entry["reason"].get<std::string>().find("conflicts with main") != std::string::npos;
  EXPECT_TRUE(conflict_logged);
  int landed_entries = 0;
  for (const json& entry : Query({"--kind", "win"})) landed_entries += entry["landed"] == true;
  EXPECT_EQ(landed_entries, 2) << "the mission's own and its merge";

  // For people: the brief cites what was rejected, the page shows the bar that moved.
  const Captured brief = Crucible({"brief", "n128", "--target", "transpose"});
  EXPECT_NE(brief.out.find(fmt::format("[e{}]", warm_entry)), std::string::npos) << brief.out;
  EXPECT_NE(brief.out.find(kWarm), std::string::npos) << brief.out;
  const std::string page = (root_ / "page.html").string();
  EXPECT_TRUE(Crucible({"dashboard", "--out", page}).status.ok());
  const std::string html = ReadFile(page).value_or("");
  const std::string landed = first["merge_outcome"] == "landed" ? "one pass" : "one large pass";
  for (const std::string& shown : {landed, std::string(kWarm), std::string("kept answers")})
    EXPECT_NE(html.find(shown), std::string::npos) << shown;
  const std::string told = CampaignLog();
  EXPECT_EQ(told.find("m1 started"), told.rfind("m1 started")) << "told again after the resume";
  ExpectNoFileHasTheKey();
  ExpectTidy();
}

// Falls silent after its commit, so that the orchestrator can be killed in mid-mission.
json FallsSilentAfterItsCommit() {
  const json params = {{"passes", {3, 1}}};
  return Conversation(
      "Make n128 faster",
      {Edit(kKernelFile, kPassesLine, "  const int passes = n > 180 ? kLargePasses : 1;"),
       Compare("one pass", params),
       Log("one pass", "a third of the time: the passes all write the same", params),
       Commit("Go over the matrix once"), Fault("silent"),
       Report("candidate", "The later passes wrote what was there.")});
}

class ScriptedResumeTest : public ScriptedCampaignTest {
 protected:
  // Whether the mission's model has heard what came of its call.
  bool Answered(const std::string& mission, const std::string& tool) {
    const std::string text = Transcript({{"id", mission}});
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      const json line = json::parse(text.substr(at, end - at), nullptr, false);
      if (line.is_object() && line.value("kind", "") == "answer" && line.value("tool", "") == tool)
        return true;
    }
    return false;
  }

  std::map<std::string, json> EntriesByKey() {
    std::map<std::string, json> entries;
    for (const json& entry : Query({}))
      EXPECT_TRUE(entries.emplace(entry["key"], entry).second) << "twice: " << entry;
    return entries;
  }
};

TEST_F(ScriptedResumeTest, AKilledOrchestratorLosesAndDoublesNothing) {
  const auto probe = RunCaptured(Spec({"sh", "-c", "bwrap --ro-bind / / --unshare-all true"}),
                                 std::chrono::seconds(20));
  const bool sandbox = probe && probe->status.ok();
  AddCampaign(1, 1, !sandbox, "150s");
  StartServer({FallsSilentAfterItsCommit(), NothingToDo()});
  const std::string start = Git({"rev-parse", "main"});
  {
    Subprocess run = StartCampaign({"launch", "models.toml"});
    ASSERT_TRUE(Until([&] { return Answered("m1", "commit"); }, 180'000));
    ::kill(run.pid(), SIGKILL);  // it alone: its agent must end by itself or be ended by the next
    ASSERT_TRUE(run.Wait());
  }
  const std::map<std::string, json> before = EntriesByKey();
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(Missions().size(), 1u);
  const auto resumed = StartCampaign({"resume", "models"}).Wait(std::chrono::minutes(3));
  ASSERT_TRUE(resumed && resumed->ok());

  const std::map<std::string, json> after = EntriesByKey();
  for (const auto& [key, entry] : before) {
    ASSERT_TRUE(after.contains(key)) << key << " was lost";
    for (const char* field : {"kind", "mechanism", "cases", "mission"})
      EXPECT_EQ(after.at(key)[field], entry[field]) << key;
  }
  ASSERT_EQ(Missions().size(), 1u);
  const json mission = Missions()[0];
  EXPECT_EQ(mission["outcome"], "interrupted");
  EXPECT_EQ(mission["state"], "done");
  // What it had kept went to the merge, once.
  int landed = 0, merges = 0;
  for (const auto& [key, entry] : after) {
    landed += entry["author"] == "orchestrator" && entry["landed"];
    merges += entry["author"] == "orchestrator" && entry["mission"] == "m1";
  }
  EXPECT_EQ(merges, 1);
  EXPECT_EQ(landed, 1) << mission;
  EXPECT_EQ(Git({"rev-list", "--first-parent", "--count", start + "..main"}),
            std::to_string(landed));
  ExpectNoFileHasTheKey();
  ExpectTidy();
}

}  // namespace
}  // namespace crucible
