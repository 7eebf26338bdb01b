// What a mission's order keeps of a campaign's agents.
#include "missions/agent_settings.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace crucible {
namespace {

TEST(AgentSettings, AnOrderKeepsEveryField) {
  AgentSettings settings;
  settings.kind = "cli";
  settings.command = {"agent", "--fast"};
  settings.profile = "claude";
  settings.cli_model = "large";
  settings.cli_usd = {.input = 5, .output = 6, .cache_read = 7, .cache_write = 8};
  settings.unsandboxed = settings.network = true;
  CampaignModel model;
  model.name = "m";
  model.provider = "openai";
  model.key_variable = "KEY";
  model.weight = 2.5;
  model.flavours = {"scout", "kernel"};
  model.usd.input = 1;
  model.usd.output = 2;
  model.usd.cache_read = 3;
  model.usd.cache_write = 4;
  model.stream = false;
  model.max_tokens = 77;
  model.context_tokens = 1234;
  settings.models = {model, CampaignModel{}};
  settings.budget = {.turns = 1,
                     .tokens = 2,
                     .usd = 3.5,
                     .device_seconds = 4.5,
                     .format_errors = 5,
                     .idle_turns = 6,
                     .silence_ms = 7};
  const nlohmann::json object = ToJson(settings);
  const auto read = AgentSettingsFromJson(object);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(ToJson(*read), object);
  EXPECT_EQ(read->models.front().flavours, model.flavours);
  EXPECT_EQ(read->budget.idle_turns, 6);
  EXPECT_TRUE(read->network);
  EXPECT_EQ(read->cli_usd.cache_write, 8);
  EXPECT_EQ(read->models.front().usd.cache_write, 4);
}

TEST(AgentSettings, TheErrorNamesTheFieldThatIsMissing) {
  nlohmann::json object = ToJson(AgentSettings{});
  object["budget"].erase("turns");
  const auto read = AgentSettingsFromJson(object);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kUsage);
  EXPECT_NE(read.error().text.find("turns"), std::string::npos) << read.error().text;
}

TEST(AgentSettings, AScoutMayReadForLongerThanAKernelMission) {
  const AgentBudget by_flavour;
  EXPECT_EQ(IdleTurnsOf(by_flavour, "kernel"), 25);
  EXPECT_GT(IdleTurnsOf(by_flavour, "explorer"), IdleTurnsOf(by_flavour, "kernel"));
  EXPECT_GT(IdleTurnsOf(by_flavour, "scout"), IdleTurnsOf(by_flavour, "explorer"));
  AgentBudget own;
  own.idle_turns = 9;
  EXPECT_EQ(IdleTurnsOf(own, "scout"), 9) << "the campaign file's own word holds for all";
  own.idle_turns = 0;
  EXPECT_EQ(IdleTurnsOf(own, "scout"), 0) << "no limit";
}

}  // namespace
}  // namespace crucible
