#include "orchestrator/agents/cli/cli_tools.h"

#include "base/files.h"
#include "base/json.h"

namespace crucible {

using nlohmann::json;

Result<> OfferTools(const std::vector<std::string>& server, const std::filesystem::path& home,
                    CliAgentSpec* spec) {
  CRUCIBLE_CHECK(!server.empty(), "a server has a command");
  const json arguments(std::vector<std::string>(server.begin() + 1, server.end()));
  const json settings = {
      {"mcpServers", {{"crucible", {{"command", server.front()}, {"args", arguments}}}}}};
  std::vector<std::string>& words = spec->arguments;
  switch (spec->profile.format) {
    case CliFormat::kClaude:
      words.insert(words.end(),
                   {"--mcp-config", settings.dump(), "--allowedTools", "mcp__crucible"});
      return {};
    case CliFormat::kCodex:
      words.insert(words.end(),
                   {"-c", "mcp_servers.crucible.command=" + json(server.front()).dump(), "-c",
                    "mcp_servers.crucible.args=" + arguments.dump()});
      return {};
    case CliFormat::kOpencode:
      spec->environment["OPENCODE_CONFIG_CONTENT"] =
          json{{"mcp", {{"crucible", {{"type", "local"}, {"command", server}, {"enabled", true}}}}}}
              .dump();
      return {};
    case CliFormat::kGemini:
      if (home.empty()) return {};
      CRUCIBLE_TRY(MakeDirectories(home / ".gemini"));
      return WriteFileAtomically(home / ".gemini" / "settings.json", settings.dump(2) + "\n");
    case CliFormat::kPlain:
      return {};
  }
  return {};
}

}  // namespace crucible
