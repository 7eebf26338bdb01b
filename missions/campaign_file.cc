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
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return Distance(word, a) < Distance(word, b);
  });
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
      error_ = Error{ErrorKind::kUsage,
                     fmt::format("read campaign {}:{}: {}; {}", file_.string(),
                                 std::max<std::uint32_t>(1, where.source().begin.line), what,
                                 instead)};
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
    const bool is_word = std::all_of(name.begin() + 1, name.end() - 1,
                                     [](char c) { return c >= 'a' && c <= 'z'; });
    if (is_word && name.size() > 2 && name != "{mission}" && name != "{worktree}" &&
        name != "{bin}")
      reader.Complain(node, fmt::format("unknown placeholder {} in 'command'", name),
                      "it takes {mission}, {worktree}, {bin}");
  }
}

void ReadAgent(Reader& reader, const toml::table& root, CampaignFile& file) {
  const toml::table* agent = reader.Table(root, "agent", {"kind", "command", "seed"});
  if (agent == nullptr) return;
  reader.Text(*agent, "kind", file.agent_kind);
  if (file.agent_kind != "proposer" && file.agent_kind != "command")
    reader.Complain(*agent->get("kind"), fmt::format("unknown agent kind '{}'", file.agent_kind),
                    Suggestion(file.agent_kind, {"proposer", "command"}));
  reader.Whole(*agent, "seed", 0, INT64_MAX, file.seed);
  const toml::node* command = agent->get("command");
  if (file.agent_kind == "command" && command == nullptr)
    reader.Complain(*agent, "kind = \"command\" without a 'command'",
                    "add command = [\"program\", \"{mission}\"]");
  if (command == nullptr) return;
  if (file.agent_kind != "command")
    reader.Complain(*command, fmt::format("'command' with kind = \"{}\"", file.agent_kind),
                    "write kind = \"command\", or remove it");
  const toml::array* words = command->as_array();
  if (words == nullptr || words->empty()) {
    reader.Complain(*command, "'command' is not a list of texts", "write [\"program\", \"…\"]");
    return;
  }
  for (const toml::node& node : *words) {
    const auto word = node.value_exact<std::string>();
    if (!word) {
      reader.Complain(node, "'command' holds something that is not a text", "quote each word");
      return;
    }
    CheckPlaceholders(reader, node, *word);
    file.agent_command.push_back(*word);
  }
}

void ReadRoot(Reader& reader, const toml::table& root, const fs::path& path, CampaignFile& file) {
  reader.AllowKeys(root, "the campaign file",
                   {"name", "target", "branch", "agents", "budget", "mission", "agent", "merge"});
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
                fmt::format("{}:{}", path.string(), error.source().begin.line),
                error.description(), "see missions/campaigns/demo.toml for the format");
  }
  Reader reader(path);
  CampaignFile file;
  file.file = fs::absolute(path).lexically_normal();
  ReadRoot(reader, root, path, file);
  constexpr std::int64_t kMost = 1'000'000;
  if (const auto* budget = reader.Table(root, "budget", {"wall", "missions", "idle_missions"})) {
    reader.Duration(*budget, "wall", file.wall_ms);
    reader.Whole(*budget, "missions", 0, kMost, file.missions);
    reader.Whole(*budget, "idle_missions", 0, kMost, file.idle_missions);
  }
  if (const auto* mission = reader.Table(root, "mission", {"wall", "experiments"})) {
    reader.Duration(*mission, "wall", file.mission_wall_ms);
    reader.Whole(*mission, "experiments", 1, kMost, file.mission_experiments);
  }
  ReadAgent(reader, root, file);
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
