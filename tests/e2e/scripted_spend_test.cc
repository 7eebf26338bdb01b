// What a campaign of models costs is counted once, whoever is killed when; and what it may cost is
// kept to, by missions that run as well.
#include <signal.h>

#include <cmath>

#include "base/process_identity.h"
#include "tests/e2e/scripted_fixture.h"

namespace crucible {
namespace {

struct Paid {
  double usd = 0;
  std::int64_t tokens = 0, turns = 0;
};

// One reply that has its price, then silence for ever.
json ReadsAndFallsSilent(const std::string& match, std::int64_t input) {
  json reads = Call("read_file", {{"path", kTuningFile}});
  reads["usage"] = {{"input", input}, {"output", 1000}, {"cache_read", 500}, {"cache_write", 200}};
  return Conversation(match, {reads, Fault("silent"), Report("no_change", "Never said.")});
}

class ScriptedSpendTest : public ScriptedFixture {
 protected:
  void TearDown() override {
    if (HasFailure()) fmt::print("{}\n", CampaignLog());
    ScriptedFixture::TearDown();
  }

  json Status() {
    const json status = json::parse(Crucible({"campaign", "status", "--json"}).out, nullptr, false);
    return status.is_object() ? status : json::object();
  }
  Paid PaidBy(const json& spend) {
    return {spend.value("usd", 0.0), spend.value("tokens", std::int64_t{0}),
            spend.value("turns", std::int64_t{0})};
  }
  // By the replies that its transcript holds.
  Paid PaidByTranscript(const std::string& mission) {
    Paid paid;
    const std::string text = Transcript({{"id", mission}});
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
      end = std::min(text.find('\n', at), text.size());
      const json line = json::parse(text.substr(at, end - at), nullptr, false);
      if (!line.is_object() || line.value("kind", "") != "assistant") continue;
      paid.usd += line["usd"].get<double>();
      paid.tokens += line["usage"][0].get<std::int64_t>() + line["usage"][1].get<std::int64_t>() +
                     line["usage"][3].get<std::int64_t>();
      ++paid.turns;
    }
    return paid;
  }
  bool Answered(const std::string& mission) {
    return Transcript({{"id", mission}}).find("\"kind\":\"answer\"") != std::string::npos;
  }
  // The process `crucible agent` of a mission.
  pid_t AgentOf(const std::string& mission) {
    for (const pid_t pid : ProcessesWithEnvironment("CRUCIBLE_E2E", mark_)) {
      const std::string words = ReadFile("/proc/" + std::to_string(pid) + "/cmdline").value_or("");
      if (words.find(std::string("agent\0", 6)) != std::string::npos &&
          words.find("/" + mission + "/mission.json") != std::string::npos)
        return pid;
    }
    return 0;
  }
};

#define EXPECT_PAID(left, right)        \
  do {                                  \
    const Paid a = (left), b = (right); \
    EXPECT_NEAR(a.usd, b.usd, 1e-9);    \
    EXPECT_EQ(a.tokens, b.tokens);      \
    EXPECT_EQ(a.turns, b.turns);        \
  } while (false)

TEST_F(ScriptedSpendTest, AKillLosesAndDoublesNoSpend) {
  AddCampaign(2, 1, true, "150s");
  StartServer({ReadsAndFallsSilent("Make n128 faster", 20'000),
               ReadsAndFallsSilent("Make n160 faster", 30'000),
               ReadsAndFallsSilent("Make n192 faster", 40'000)});
  Subprocess run = StartCampaign({"launch", "models.toml"});
  ASSERT_TRUE(Until([&] { return Answered("m1"); }, 180'000));

  // While it runs: what the reply cost, by the campaign's prices, cache reads and writes with it.
  const Paid first = PaidByTranscript("m1");
  EXPECT_EQ(first.turns, 1);
  EXPECT_GT(first.usd, 0.06);
  EXPECT_PAID(PaidBy(Status()["spend"]), first);
  EXPECT_PAID(PaidBy(Status()["missions"][0]["spend"]), first);
  EXPECT_NE(Crucible({"campaign", "status"}).out.find(fmt::format("{:.4g} USD", first.usd)),
            std::string::npos);

  // The agent is killed: its mission has crashed, with what it had paid.
  const pid_t agent = AgentOf("m1");
  ASSERT_GT(agent, 0);
  ASSERT_EQ(::kill(agent, SIGKILL), 0);
  ASSERT_TRUE(Until([&] { return Answered("m2"); }, 60'000));
  EXPECT_EQ(Missions()[0]["outcome"], "crashed");
  EXPECT_NEAR(Missions()[0]["spend"].value("usd", 0.0), first.usd, 1e-9);

  // The orchestrator is killed, before and after its next run has put things in order.
  ::kill(run.pid(), SIGKILL);
  ASSERT_TRUE(run.Wait());
  const Paid second = PaidByTranscript("m2");
  const Paid both = {first.usd + second.usd, first.tokens + second.tokens, 2};
  EXPECT_PAID(PaidBy(Status()["spend"]), both);
  const auto resumed = StartCampaign({"resume", "models"}).Wait(std::chrono::minutes(3));
  ASSERT_TRUE(resumed && resumed->ok());
  EXPECT_PAID(PaidBy(Status()["spend"]), both);
  const json missions = Missions();
  ASSERT_EQ(missions.size(), 2u);
  EXPECT_EQ(missions[1]["outcome"], "interrupted");
  EXPECT_NEAR(missions[1]["spend"].value("usd", 0.0), second.usd, 1e-9);
  ExpectNoFileHasTheKey();
  ExpectTidy();
}

TEST_F(ScriptedSpendTest, TheCampaignsBudgetEndsMissionsThatRun) {
  AddCampaign(4, 2, true, "150s");
  Replace("models.toml", "usd = 5.0", "usd = 0.12");  // one reply's cost fits, two do not
  Commit("Spend less");
  StartServer({ReadsAndFallsSilent("Make n128 faster", 20'000),
               ReadsAndFallsSilent("Make n160 faster", 20'000),
               ReadsAndFallsSilent("Make n192 faster", 20'000)});
  const auto ended = StartCampaign({"launch", "models.toml"}).Wait(std::chrono::minutes(4));
  ASSERT_TRUE(ended && ended->ok());
  const json missions = Missions();
  ASSERT_EQ(missions.size(), 2u) << "none begins after it";
  for (const json& mission : missions) {
    EXPECT_EQ(mission["outcome"], "budget") << mission;
    EXPECT_NE(mission["report"].get<std::string>().find("the campaign's budget: its 0.12 USD"),
              std::string::npos)
        << mission["report"];
    EXPECT_NE(mission["report"].get<std::string>().find("ended without a report: interrupted"),
              std::string::npos)
        << "it ends by itself, in the middle of a request: " << mission["report"];
  }
  ExpectTidy();
}

TEST_F(ScriptedSpendTest, AWrongKeyEndsTheCampaignAfterThreeMissions) {
  AddCampaign(50, 1, true, "150s");
  StartServer({NothingToDo()});
  SubprocessSpec spec = CampaignSpec({"launch", "models.toml"});
  spec.environment["ANTHROPIC_API_KEY"] = "sk-another-" + RandomHex(8);
  auto run = Subprocess::Start(spec);
  ASSERT_TRUE(run);
  const auto ended = run->Wait(std::chrono::minutes(4));
  ASSERT_TRUE(ended);
  const json missions = Missions();
  EXPECT_EQ(missions.size(), 3u);
  for (const json& mission : missions) EXPECT_EQ(mission["outcome"], "blocked") << mission;
  for (const char* said : {"3 missions in a row failed at once", "401", "check ANTHROPIC_API_KEY"})
    EXPECT_NE(CampaignLog().find(said), std::string::npos) << said;
  EXPECT_EQ(CampaignLog().find("sk-another"), std::string::npos);
}

}  // namespace
}  // namespace crucible
