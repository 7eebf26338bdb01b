#include "missions/campaign_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/files.h"
#include "checks/target.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

// Insertions, deletions and replacements that turn one word into the other.
std::size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string Suggestion(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest = std::min_element(
      known.begin(), known.end(),
      [&](const auto& a, const auto& b) { return Distance(word, a) < Distance(word, b); });
  const std::string list = fmt::format("it takes {}", fmt::join(known, ", "));
  const bool close = Distance(word, *nearest) <= std::max<std::size_t>(1, nearest->size() / 3);
  return close ? fmt::format("did you mean '{}'? {}", *nearest, list) : list;
}

// Keeps the first complaint and goes on, so that the parsing below reads like the file.
class Reader {
 public:
  explicit Reader(fs::path file) : file_(std::move(file)) {}

  void Complain(const toml::node& where, const std::string& what, const std::string& instead) {
    if (!error_)
      error_ =
          Error{ErrorKind::kUsage,
                fmt::format("read campaign {}:{}: {}; {}", file_.string(),
                            std::max<std::uint32_t>(1, where.source().begin.line), what, instead)};
  }

  void AllowKeys(const toml::table& table, const std::string& section,
                 const std::vector<std::string>& known) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(known.begin(), known.end(), name) == known.end())
        Complain(node, fmt::format("unknown key '{}' in {}", name, section),
                 Suggestion(name, known));
    }
  }

  const toml::table* Table(const toml::table& root, const std::string& key,
                           const std::vector<std::string>& known) {
    const toml::node* node = root.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table())
      Complain(*node, fmt::format("'{}' is not a table", key),
               fmt::format("write [{}] and its keys below", key));
    else
      AllowKeys(*node->as_table(), "[" + key + "]", known);
    return node->as_table();
  }

  bool Text(const toml::table& table, const std::string& key, std::string& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return false;
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty()) {
      Complain(*node, fmt::format("'{}' is not a text", key), "write it in quotes");
      return false;
    }
    into = *value;
    return true;
  }

  template <class Number>
  void Whole(const toml::table& table, const std::string& key, std::int64_t least,
             std::int64_t most, Number& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto value = node->value_exact<std::int64_t>();
    if (!value || *value < least || *value > most)
      Complain(*node, fmt::format("'{}' is not a whole number from {} to {}", key, least, most),
               "write it without quotes or a point");
    else
      into = static_cast<Number>(*value);
  }

  void Duration(const toml::table& table, const std::string& key, std::int64_t& into) {
    std::string text;
    if (!Text(table, key, text)) return;
    const auto parsed = ParseDuration(text);
    if (parsed && *parsed > 0)
      into = *parsed;
    else
      Complain(*table.get(key), fmt::format("'{}' is not a duration: \"{}\"", key, text),
               "write for example \"90s\", \"5m\" or \"1h\"");
  }

  // Not negative, with or without a point.
  void Amount(const toml::table& table, const std::string& key, double& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value >= 0) || *value > 1e12)
      Complain(*node, fmt::format("'{}' is not a number from 0", key), "write it without quotes");
    else
      into = *value;
  }

  void Texts(const toml::table& table, const std::string& key, std::vector<std::string>& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    const toml::array* words = node->as_array();
    for (std::size_t i = 0; words != nullptr && i < words->size(); ++i)
      into.push_back((*words)[i].value_exact<std::string>().value_or(""));
    if (words == nullptr || std::find(into.begin(), into.end(), "") != into.end())
      Complain(*node, fmt::format("'{}' is not a list of texts", key), "write [\"…\"]");
  }

  void Bool(const toml::table& table, const std::string& key, bool& into) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return;
    if (!node->is_boolean())
      Complain(*node, fmt::format("'{}' is not a boolean", key), "write true or false");
    else
      into = node->value_or(false);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  fs::path file_;
  std::optional<Error> error_;
};

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

void CheckPlaceholders(Reader& reader, const toml::node& node, const std::string& word) {
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

void ReadCommand(Reader& reader, const toml::node& command, AgentSettings& settings) {
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

void ReadAgent(Reader& reader, const toml::table& root, CampaignFile& file) {
  const toml::table* agent =
      reader.Table(root, "agent", {"kind", "command", "profile", "model", "unsandboxed", "seed"});
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
  reader.Text(*agent, "model", settings.cli_model);
  const bool cli = settings.kind == "cli";
  for (const char* key : {"profile", "model"})
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

void ReadPrices(Reader& reader, const toml::table& table, CampaignModel& model) {
  const toml::table* usd =
      reader.Table(table, "usd", {"input", "output", "cache_read", "cache_write"});
  if (usd == nullptr) return;
  reader.Amount(*usd, "input", model.usd_input);
  reader.Amount(*usd, "output", model.usd_output);
  reader.Amount(*usd, "cache_read", model.usd_cache_read);
  reader.Amount(*usd, "cache_write", model.usd_cache_write);
}

void ReadModels(Reader& reader, const toml::table& root, CampaignFile& file) {
  const toml::node* node = root.get("model");
  if (node == nullptr) {
    if (file.agent.kind == "llm")
      reader.Complain(root, "kind = \"llm\" without a model", "add [[model]] and name = \"…\"");
    return;
  }
  if (file.agent.kind != "llm")
    reader.Complain(*node, fmt::format("[[model]] with kind = \"{}\"", file.agent.kind),
                    "write kind = \"llm\" in [agent], or remove it");
  const toml::array* tables = node->as_array();
  if (tables == nullptr) {
    reader.Complain(*node, "'model' is not a list of tables", "write [[model]]");
    return;
  }
  for (const toml::node& item : *tables) {
    const toml::table* table = item.as_table();
    if (table == nullptr) {
      reader.Complain(item, "'model' is not a list of tables", "write [[model]]");
      return;
    }
    for (const char* key : {"base_url", "key", "api_key"})
      if (table->get(key) != nullptr)
        reader.Complain(*table->get(key), fmt::format("'{}' in a campaign file", key),
                        "keys and addresses come from the environment or $CRUCIBLE_KEY_FILE "
                        "(docs/llm.md)");
    reader.AllowKeys(*table, "[[model]]",
                     {"name", "provider", "key_variable", "weight", "flavours", "usd", "stream",
                      "max_tokens", "context_tokens"});
    CampaignModel model;
    if (!reader.Text(*table, "name", model.name))
      reader.Complain(*table, "a model without a 'name'", "add name = \"…\"");
    reader.Text(*table, "provider", model.provider);
    if (model.provider != "anthropic" && model.provider != "openai")
      reader.Complain(*table->get("provider"), fmt::format("unknown provider '{}'", model.provider),
                      Suggestion(model.provider, {"anthropic", "openai"}));
    reader.Text(*table, "key_variable", model.key_variable);
    reader.Amount(*table, "weight", model.weight);
    reader.Texts(*table, "flavours", model.flavours);
    reader.Bool(*table, "stream", model.stream);
    reader.Whole(*table, "max_tokens", 16, 1'000'000, model.max_tokens);
    reader.Whole(*table, "context_tokens", 1000, 100'000'000, model.context_tokens);
    ReadPrices(reader, *table, model);
    file.agent.models.push_back(std::move(model));
  }
}

void ReadRoot(Reader& reader, const toml::table& root, const fs::path& path, CampaignFile& file) {
  reader.AllowKeys(
      root, "the campaign file",
      {"name", "target", "branch", "agents", "budget", "mission", "agent", "merge", "model"});
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
}

Result<CampaignFile> Parse(const std::string& text, const fs::path& path, bool target_must_exist) {
  toml::table root;
  try {
    root = toml::parse(text, path.string());
  } catch (const toml::parse_error& error) {
    return Fail(ErrorKind::kUsage, "read campaign",
                fmt::format("{}:{}", path.string(), error.source().begin.line), error.description(),
                "see missions/campaigns/demo.toml for the format");
  }
  Reader reader(path);
  CampaignFile file;
  file.file = fs::absolute(path).lexically_normal();
  ReadRoot(reader, root, path, file);
  constexpr std::int64_t kMost = 1'000'000;
  if (const auto* budget =
          reader.Table(root, "budget",
                       {"wall", "missions", "idle_missions", "tokens", "usd", "device_seconds"})) {
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
