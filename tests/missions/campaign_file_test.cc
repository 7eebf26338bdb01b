// Campaign files: what they say, and one clear error for each mistake.
#include "missions/campaign_file.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

constexpr const char* kHead = "name = \"demo\"\ntarget = \"../targets/t.toml\"\n";

TEST(CampaignFile, ReadsEveryKey) {
  const auto file = ParseCampaignFile(std::string(kHead) + R"(
branch = "trunk"
agents = 3
[budget]
wall = "5m"
missions = 8
idle_missions = 3
[mission]
wall = "90s"
experiments = 6
[agent]
kind = "command"
command = ["{bin}/agent", "--mission={mission}", "{worktree}", "{}"]
seed = 7
[merge]
approve = true
)",
                                      "/c/campaigns/demo.toml");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->name, "demo");
  EXPECT_EQ(file->target, "/c/targets/t.toml");
  EXPECT_EQ(file->branch, "trunk");
  EXPECT_EQ(file->agents, 3);
  EXPECT_EQ(file->wall_ms, 300'000);
  EXPECT_EQ(file->missions, 8);
  EXPECT_EQ(file->idle_missions, 3);
  EXPECT_EQ(file->mission_wall_ms, 90'000);
  EXPECT_EQ(file->mission_experiments, 6);
  EXPECT_EQ(file->agent.kind, "command");
  EXPECT_EQ(file->agent.command.size(), 4u);
  EXPECT_EQ(file->seed, 7u);
  EXPECT_TRUE(file->approve);
}

TEST(CampaignFile, ReadsModelsAndBudgetsOfAgents) {
  const auto file = ParseCampaignFile(std::string(kHead) + R"(
[budget]
usd = 20
tokens = 1_000_000
device_seconds = 90.5
[mission]
turns = 40
usd = 1.5
silence = "5m"
[agent]
kind = "llm"
[[model]]
name = "big"
usd = { input = 3.0, output = 15 }
flavours = ["kernel", "explorer"]
[[model]]
name = "local"
provider = "openai"
weight = 0.5
stream = false
)",
                                      "/c/campaigns/demo.toml");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->usd, 20);
  EXPECT_EQ(file->tokens, 1'000'000);
  EXPECT_EQ(file->device_seconds, 90.5);
  EXPECT_EQ(file->agent.budget.turns, 40);
  EXPECT_EQ(file->agent.budget.silence_ms, 300'000);
  ASSERT_EQ(file->agent.models.size(), 2u);
  EXPECT_EQ(file->agent.models[0].usd.output, 15);
  EXPECT_EQ(file->agent.models[0].flavours.size(), 2u);
  EXPECT_EQ(file->agent.models[1].provider, "openai");
  EXPECT_FALSE(file->agent.models[1].stream);
  const auto again = AgentSettingsFromJson(ToJson(file->agent));
  ASSERT_TRUE(again) << again.error().text;
  EXPECT_EQ(ToJson(*again), ToJson(file->agent));
}

TEST(CampaignFile, ACachesPriceThatIsNotGivenIsTheDearestAndNotNothing) {
  const auto file = ParseCampaignFile(std::string(kHead) + R"(
[budget]
turns = 300
[agent]
kind = "llm"
[[model]]
name = "some"
usd = { input = 4.0, output = 15 }
[[model]]
name = "all"
usd = { input = 4.0, output = 15, cache_read = 0.4, cache_write = 0 }
[[model]]
name = "none"
)",
                                      "/c/campaigns/demo.toml");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->turns, 300);
  const auto& models = file->agent.models;
  EXPECT_EQ(models[0].usd.cache_read, 4);
  EXPECT_EQ(models[0].usd.cache_write, 5);
  EXPECT_EQ(models[1].usd.cache_read, 0.4);
  EXPECT_EQ(models[1].usd.cache_write, 0);
  EXPECT_EQ(models[2].usd.cache_write, 0);
}

TEST(CampaignFile, AProgramThatTellsNoMoneyHasAPriceTable) {
  const auto file = ParseCampaignFile(
      std::string(kHead) +
          "[agent]\nkind = \"cli\"\nprofile = \"codex\"\nusd = { input = 2, output = 8 }\n",
      "/c/campaigns/demo.toml");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->agent.cli_usd.output, 8);
  EXPECT_EQ(file->agent.cli_usd.cache_read, 2);
}

TEST(CampaignFile, APlannerModelIsReadWithItsBudget) {
  const auto none = ParseCampaignFile(kHead, "/c/campaigns/demo.toml");
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->planner.on()) << "the policy alone, unless the file says otherwise";
  const auto file = ParseCampaignFile(std::string(kHead) + R"(
[planner]
name = "chooser"
provider = "openai"
usd = { input = 1.0, output = 2.0 }
max_tokens = 1000
wall = "30s"
candidates = 4
budget = { usd = 0.5, tokens = 9000 }
)",
                                      "/c/campaigns/demo.toml");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_TRUE(file->planner.on());
  EXPECT_EQ(file->planner.model.provider, "openai");
  EXPECT_EQ(file->planner.model.usd.output, 2);
  EXPECT_EQ(file->planner.wall_ms, 30'000);
  EXPECT_EQ(file->planner.candidates, 4);
  EXPECT_EQ(file->planner.usd, 0.5);
  EXPECT_EQ(file->planner.tokens, 9000);
}

TEST(CampaignFile, AProfilesSandboxHasTheNetworkAndACommandsHasNot) {
  const auto parse = [](const std::string& agent) {
    const auto file = ParseCampaignFile(std::string(kHead) + "[agent]\nkind = \"cli\"\n" + agent,
                                        "/c/campaigns/demo.toml");
    EXPECT_TRUE(file) << file.error().text;
    return file ? file->agent : AgentSettings{};
  };
  EXPECT_TRUE(parse("profile = \"claude\"\n").network);
  EXPECT_FALSE(parse("profile = \"claude\"\nnetwork = false\n").network);
  EXPECT_FALSE(parse("command = [\"x\"]\n").network);
  const AgentSettings own = parse("command = [\"x\"]\nnetwork = true\nreadable = [\"/opt/x\"]\n");
  EXPECT_TRUE(own.network);
  EXPECT_EQ(own.readable, std::vector<std::string>{"/opt/x"});
}

TEST(CampaignFile, AKeyOrAnAddressInTheFileIsRefused) {
  for (const std::string key : {"base_url", "api_key", "key"}) {
    const auto file = ParseCampaignFile(std::string(kHead) +
                                            "[agent]\nkind = \"llm\"\n[[model]]\nname = \"x\"\n" +
                                            key + " = \"y\"\n",
                                        "/c/campaigns/demo.toml");
    ASSERT_FALSE(file) << key;
    EXPECT_NE(file.error().text.find("'" + key + "' in a campaign file"), std::string::npos)
        << file.error().text;
  }
}

TEST(CampaignFile, DefaultsNeedTwoKeysOnly) {
  const auto file = ParseCampaignFile(kHead, "/c/campaigns/demo.toml");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_EQ(file->agent.kind, "proposer");
  EXPECT_EQ(file->branch, "main");
  EXPECT_FALSE(file->approve);
}

TEST(CampaignFile, EachMistakeIsNamedWithItsLine) {
  const struct {
    std::string text, line, says;
  } mistakes[] = {
      {"name = \"demo\n", ":1", ""},
      {"target = \"t\"\n", ":1", "'name' is missing"},
      {"name = \"x\"\n", ":1", "'target' is missing"},
      {"name = \"A b\"\ntarget = \"t\"\n", ":1", "[a-z0-9_-]+"},
      {std::string(kHead) + "agnets = 2\n", ":3", "did you mean 'agents'?"},
      {std::string(kHead) + "quite_else = 2\n", ":3", "it takes name, target, branch"},
      {std::string(kHead) + "agents = 0\n", ":3", "from 1 to 64; write one within that"},
      {std::string(kHead) + "agents = \"2\"\n", ":3", "whole number"},
      {std::string(kHead) + "budget = 3\n", ":3", "write [budget]"},
      {std::string(kHead) + "[budget]\nwall = \"5 parsecs\"\n", ":4", "\"5 parsecs\""},
      {std::string(kHead) + "[budget]\nwal = \"5m\"\n", ":4", "did you mean 'wall'?"},
      {std::string(kHead) + "[mission]\nexperiments = 0\n", ":4", "experiments"},
      {std::string(kHead) + "[agent]\nkind = \"propser\"\n", ":4", "did you mean 'proposer'?"},
      {std::string(kHead) + "[agent]\nkind = \"command\"\n", ":3", "without a 'command'"},
      {std::string(kHead) + "[agent]\ncommand = [\"x\"]\n", ":4", "kind = \"command\""},
      {std::string(kHead) + "[agent]\nkind = \"command\"\ncommand = [\"{wroktree}\"]\n", ":5",
       "{wroktree}"},
      {std::string(kHead) + "[agent]\nseed = -1\n", ":4", "seed"},
      {std::string(kHead) + "[agent]\nnetwork = true\n", ":4", "kind = \"cli\""},
      {std::string(kHead) + "[agent]\nusd = { input = 1 }\n", ":4", "kind = \"cli\""},
      {std::string(kHead) + "[planner]\nprovider = \"openai\"\n", ":3", "without a 'name'"},
      {std::string(kHead) + "[planner]\nname = \"x\"\nkey = \"y\"\n", ":5", "CRUCIBLE_KEY_FILE"},
      {std::string(kHead) + "[planner]\nname = \"x\"\nweight = 2\n", ":5", "unknown key"},
      {std::string(kHead) + "[planner]\nname = \"x\"\ncandidates = 1\n", ":5", "from 2 to 20"},
      {std::string(kHead) + "[merge]\napprove = 1\n", ":4", "true or false"},
  };
  for (const auto& mistake : mistakes) {
    const auto file = ParseCampaignFile(mistake.text, "bad.toml");
    ASSERT_FALSE(file) << mistake.text;
    EXPECT_EQ(file.error().kind, ErrorKind::kUsage);
    EXPECT_NE(file.error().text.find("bad.toml" + mistake.line + ":"), std::string::npos)
        << file.error().text;
    EXPECT_NE(file.error().text.find(mistake.says), std::string::npos) << file.error().text;
  }
}

TEST(CampaignFile, TheOnesThatAreShippedCanBeLaunched) {
  int files = 0;
  for (const auto& item :
       std::filesystem::directory_iterator(CRUCIBLE_SOURCE_DIR "/missions/campaigns")) {
    if (item.path().extension() != ".toml") continue;
    ++files;
    const auto file = LoadCampaignFile(item.path());
    EXPECT_TRUE(file) << file.error().text;
  }
  EXPECT_GE(files, 2);
}

TEST(CampaignFile, TheTargetFileMustExistWhenLoaded) {
  const auto root = MakeTemporaryDirectory("campaign").value();
  const auto path = root / "campaigns/demo.toml";
  ASSERT_TRUE(WriteFileAtomically(path, kHead));
  const auto missing = LoadCampaignFile(path);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().text.find("demo.toml:2: there is no target file"), std::string::npos)
      << missing.error().text;
  ASSERT_TRUE(WriteFileAtomically(root / "targets/t.toml", ""));
  EXPECT_TRUE(LoadCampaignFile(path));
  EXPECT_EQ(LoadCampaignFile(root / "absent.toml").error().kind, ErrorKind::kNotFound);
  EXPECT_TRUE(RemoveTree(root));
}

}  // namespace
}  // namespace crucible
