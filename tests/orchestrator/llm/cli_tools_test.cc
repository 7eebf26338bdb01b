// Each program is told of the mission's MCP server in its own way.
#include "orchestrator/agents/cli/cli_tools.h"

#include <gmock/gmock.h>

#include "base/files.h"
#include "base/json.h"

namespace crucible {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

class CliTools : public testing::Test {
 protected:
  CliTools() : home(*MakeTemporaryDirectory("crucible-cli-home")) {}
  ~CliTools() override { (void)RemoveTree(home); }
  CliAgentSpec Offer(const std::string& profile) {
    CliAgentSpec spec;
    spec.profile = profile.empty() ? CommandProfile({"agent"}) : *FindCliProfile(profile);
    const auto offered = OfferTools({"/bin dir/crucible", "mcp"}, home, &spec);
    EXPECT_TRUE(offered) << offered.error().text;
    return spec;
  }
  std::filesystem::path home;
};

TEST_F(CliTools, ClaudeGetsAConfigurationAsAnArgument) {
  const CliAgentSpec spec = Offer("claude");
  ASSERT_EQ(spec.arguments.size(), 4u);
  EXPECT_EQ(spec.arguments[0], "--mcp-config");
  const json server = json::parse(spec.arguments[1])["mcpServers"]["crucible"];
  EXPECT_EQ(server["command"], "/bin dir/crucible");
  EXPECT_EQ(server["args"], json({"mcp"}));
  EXPECT_EQ(spec.arguments[3], "mcp__crucible") << "its tools need no person's leave";
}

TEST_F(CliTools, CodexGetsTwoSettings) {
  EXPECT_THAT(Offer("codex").arguments,
              ElementsAre("-c", R"(mcp_servers.crucible.command="/bin dir/crucible")", "-c",
                          R"(mcp_servers.crucible.args=["mcp"])"));
}

TEST_F(CliTools, OpencodeGetsAVariable) {
  const CliAgentSpec spec = Offer("opencode");
  const json config = json::parse(spec.environment.at("OPENCODE_CONFIG_CONTENT"));
  EXPECT_EQ(config["mcp"]["crucible"]["command"], json({"/bin dir/crucible", "mcp"}));
}

TEST_F(CliTools, GeminiGetsASettingsFileInItsScratchHome) {
  Offer("gemini");
  const auto text = ReadFile(home / ".gemini/settings.json");
  ASSERT_TRUE(text);
  EXPECT_EQ(json::parse(*text)["mcpServers"]["crucible"]["args"], json({"mcp"}));
}

TEST_F(CliTools, AnyOtherCommandIsLeftAlone) {
  const CliAgentSpec spec = Offer("");
  EXPECT_THAT(spec.arguments, IsEmpty());
  EXPECT_TRUE(spec.environment.empty());
}

}  // namespace
}  // namespace crucible
