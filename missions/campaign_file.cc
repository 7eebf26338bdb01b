#include "missions/campaign_file.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/toml_mistake.h"
#include "missions/campaign_reader.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

void CheckPlaceholders(CampaignReader& reader, const toml::node& node, const std::string& word) {
  for (std::size_t at = word.find('{'); at != std::string::npos; at = word.find('{', at + 1)) {
    const std::size_t end = word.find('}', at);
    if (end == std::string::npos) return;
    const std::string name = word.substr(at, end - at + 1);
    const bool is_word =
        std::all_of(name.begin() + 1, name.end() - 1, [](char c) { return c >= 'a' && c <= 'z'; });
    if (is_word && name.size() > 2 && name != "{mission}" && name != "{worktree}" &&
        name != "{bin}")
      reader.Complain(node, fmt::format("unknown placeholder {} in 'command'", name),
                      "it takes {mission}, {worktree}, {bin}");
  }
}

void ReadCommand(CampaignReader& reader, const toml::node& command, AgentSettings& settings) {
  const toml::array* words = command.as_array();
  if (words == nullptr || words->empty()) {
    reader.Complain(command, "'command' is not a list of texts", "write [\"program\", \"…\"]");
    return;
  }
  for (const toml::node& node : *words) {
    const auto word = node.value_exact<std::string>();
    if (!word) {
      reader.Complain(node, "'command' holds something that is not a text", "quote each word");
      return;
    }
    CheckPlaceholders(reader, node, *word);
    settings.command.push_back(*word);
  }
}

void ReadAgent(CampaignReader& reader, const toml::table& root, CampaignFile& file) {
  const toml::table* agent = reader.Table(
      root, "agent",
      {"kind", "command", "profile", "model", "usd", "network", "readable", "unsandboxed", "seed"});
  if (agent == nullptr) return;
  AgentSettings& settings = file.agent;
  static const std::vector<std::string> kKinds = {"proposer", "command", "llm", "cli"};
  reader.Text(*agent, "kind", settings.kind);
  if (std::find(kKinds.begin(), kKinds.end(), settings.kind) == kKinds.end())
    reader.Complain(*agent->get("kind"), fmt::format("unknown agent kind '{}'", settings.kind),
                    Suggestion(settings.kind, kKinds));
  reader.Whole(*agent, "seed", 0, INT64_MAX, file.seed);
  reader.Bool(*agent, "unsandboxed", settings.unsandboxed);
  reader.Text(*agent, "profile", settings.profile);
  settings.network = !settings.profile.empty();  // each reaches its vendor's servers
  reader.Bool(*agent, "network", settings.network);
  reader.Texts(*agent, "readable", settings.readable);
  reader.Text(*agent, "model", settings.cli_model);
  const bool cli = settings.kind == "cli";
  ReadPrices(reader, *agent, settings.cli_usd);
  for (const char* key : {"profile", "model", "usd", "network", "readable"})
    if (!cli && agent->get(key) != nullptr)
      reader.Complain(
          *agent->get(key), fmt::format("'{}' with kind = \"{}\"", key, settings.kind),
          "write kind = \"cli\", or remove it (models of kind llm are [[model]] tables)");
  const toml::node* command = agent->get("command");
  if (settings.kind == "command" && command == nullptr)
    reader.Complain(*agent, "kind = \"command\" without a 'command'",
                    "add command = [\"program\", \"{mission}\"]");
  if (cli && (command == nullptr) == settings.profile.empty())
    reader.Complain(*agent, "kind = \"cli\" needs a 'profile' or a 'command', and not both",
                    "add profile = \"claude\" (or codex, opencode, gemini)");
  if (command == nullptr) return;
  if (settings.kind != "command" && !cli)
    reader.Complain(*command, fmt::format("'command' with kind = \"{}\"", settings.kind),
                    "write kind = \"command\", or remove it");
  ReadCommand(reader, *command, settings);
}

void ReadRoot(CampaignReader& reader, const toml::table& root, const fs::path& path,
              CampaignFile& file) {
  reader.AllowKeys(root, "the campaign file",
                   {"name", "target", "branch", "agents", "cases", "budget", "mission", "agent",
                    "merge", "model", "planner"});
  if (!reader.Text(root, "name", file.name))
    reader.Complain(root, "'name' is missing", "add name = \"…\"");
  else if (!IsName(file.name))
    reader.Complain(*root.get("name"), fmt::format("name \"{}\" is not [a-z0-9_-]+", file.name),
                    "rename the campaign");
  std::string target;
  if (!reader.Text(root, "target", target))
    reader.Complain(root, "'target' is missing", "add target = \"../targets/….toml\"");
  file.target = (fs::absolute(path).parent_path() / target).lexically_normal();
  reader.Text(root, "branch", file.branch);
  reader.Whole(root, "agents", 1, 64, file.agents);
  reader.Texts(root, "cases", file.cases);
}

Result<CampaignFile> Parse(const std::string& text, const fs::path& path, bool target_must_exist) {
  toml::table root;
  try {
    root = toml::parse(text, path.string());
  } catch (const toml::parse_error& error) {
    return TomlMistake("read campaign", path.string(), text, error,
                       "see missions/campaigns/demo.toml for the format");
  }
  CampaignReader reader(path);
  CampaignFile file;
  file.file = fs::absolute(path).lexically_normal();
  ReadRoot(reader, root, path, file);
  constexpr std::int64_t kMost = 1'000'000;
  if (const auto* budget = reader.Table(
          root, "budget",
          {"wall", "missions", "idle_missions", "turns", "tokens", "usd", "device_seconds"})) {
    reader.Whole(*budget, "turns", 0, INT64_MAX, file.turns);
    reader.Whole(*budget, "tokens", 0, INT64_MAX, file.tokens);
    reader.Amount(*budget, "usd", file.usd);
    reader.Amount(*budget, "device_seconds", file.device_seconds);
    reader.Duration(*budget, "wall", file.wall_ms);
    reader.Whole(*budget, "missions", 0, kMost, file.missions);
    reader.Whole(*budget, "idle_missions", 0, kMost, file.idle_missions);
  }
  if (const auto* mission =
          reader.Table(root, "mission",
                       {"wall", "experiments", "turns", "tokens", "usd", "device_seconds",
                        "format_errors", "idle_turns", "silence"})) {
    AgentBudget& of_agent = file.agent.budget;
    reader.Whole(*mission, "turns", 0, kMost, of_agent.turns);
    reader.Whole(*mission, "tokens", 0, INT64_MAX, of_agent.tokens);
    reader.Amount(*mission, "usd", of_agent.usd);
    reader.Amount(*mission, "device_seconds", of_agent.device_seconds);
    reader.Whole(*mission, "format_errors", 1, kMost, of_agent.format_errors);
    reader.Whole(*mission, "idle_turns", 0, kMost, of_agent.idle_turns);
    reader.Duration(*mission, "silence", of_agent.silence_ms);
    reader.Duration(*mission, "wall", file.mission_wall_ms);
    reader.Whole(*mission, "experiments", 1, kMost, file.mission_experiments);
  }
  ReadAgent(reader, root, file);
  ReadModels(reader, root, file);
  ReadPlanner(reader, root, file);
  if (const auto* merge = reader.Table(root, "merge", {"approve"}))
    reader.Bool(*merge, "approve", file.approve);
  std::error_code ignored;
  if (target_must_exist && root.get("target") != nullptr &&
      !fs::is_regular_file(file.target, ignored))
    reader.Complain(*root.get("target"), "there is no target file " + file.target.string(),
                    "write its path relative to the campaign file");
  if (reader.error()) return tl::unexpected(*reader.error());
  return file;
}

}  // namespace

Result<CampaignFile> ParseCampaignFile(const std::string& toml, const fs::path& file) {
  return Parse(toml, file, /*target_must_exist=*/false);
}

Result<CampaignFile> LoadCampaignFile(const fs::path& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  return Parse(text, file, /*target_must_exist=*/true);
}

}  // namespace crucible
