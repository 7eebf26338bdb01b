// A target file's TOML into a Target. The reader keeps the first complaint and goes on returning
// defaults, so the parsing below reads like the file and still reports one clear error.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>

#include "base/files.h"
#include "base/json.h"
#include "checks/target.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  explicit Reader(fs::path file) : file_(std::move(file)) {}

  void Complain(const toml::node& where, const std::string& what, const std::string& instead) {
    if (error_) return;
    error_ = Error{ErrorKind::kUsage, fmt::format("read target {}:{}: {}; {}", file_.string(),
                                                  where.source().begin.line, what, instead)};
  }

  void AllowKeys(const toml::table& table, const std::string& section,
                 const std::vector<std::string>& allowed) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::find(allowed.begin(), allowed.end(), name) == allowed.end())
        Complain(node, fmt::format("unknown key '{}' in {}", name, section),
                 fmt::format("it takes {}", fmt::join(allowed, ", ")));
    }
  }

  const toml::table* Table(const toml::table& parent, const std::string& key, bool required) {
    const toml::node* node = parent.get(key);
    if (node == nullptr) {
      if (required) Complain(parent, fmt::format("[{}] is missing", key), "add it");
      return nullptr;
    }
    if (!node->is_table())
      Complain(*node, fmt::format("'{}' is not a table", key),
               fmt::format("write [{}] and its keys below", key));
    return node->as_table();
  }

  std::vector<const toml::table*> Tables(const toml::table& parent, const std::string& key) {
    std::vector<const toml::table*> result;
    const toml::node* node = parent.get(key);
    if (node == nullptr) return result;
    const toml::array* array = node->as_array();
    if (array == nullptr || !std::all_of(array->begin(), array->end(),
                                         [](const toml::node& item) { return item.is_table(); })) {
      Complain(*node, fmt::format("'{}' is not a list of tables", key),
               fmt::format("write [[{}]] before each", key));
      return result;
    }
    for (const toml::node& item : *array) result.push_back(item.as_table());
    return result;
  }

  std::string String(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = Find(table, key, required);
    if (node == nullptr) return {};
    const auto value = node->value_exact<std::string>();
    if (!value || value->empty()) {
      Complain(*node, fmt::format("'{}' is not a text", key), "write it in quotes");
      return {};
    }
    return *value;
  }

  // A finite number above `least`.
  std::optional<double> Number(const toml::table& table, const std::string& key, double least) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return std::nullopt;
    const auto value = node->is_number() ? node->value<double>() : std::nullopt;
    if (!value || !(*value > least) || !(*value < 1e300)) {
      Complain(*node, fmt::format("'{}' is not a number above {}", key, least),
               "write for example 0.02");
      return std::nullopt;
    }
    return value;
  }

  void Duration(const toml::table& table, const std::string& key, std::int64_t& into) {
    if (table.get(key) == nullptr) return;
    const std::string text = String(table, key, true);
    const auto parsed = ParseDuration(text);
    if (parsed) {
      into = *parsed;
    } else if (!text.empty()) {
      Complain(*table.get(key), fmt::format("'{}' is not a duration: \"{}\"", key, text),
               "write for example \"500ms\", \"10s\", \"3m\" or \"1h\"");
    }
  }

  bool Bool(const toml::table& table, const std::string& key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean())
      Complain(*node, fmt::format("'{}' is not a boolean", key), "write true or false");
    return node->value_or(false);
  }

  std::vector<std::string> Words(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = Find(table, key, required);
    return node == nullptr ? std::vector<std::string>{} : WordsOf(*node, key);
  }

  std::vector<std::string> WordsOf(const toml::node& node, const std::string& key) {
    std::vector<std::string> result;
    const toml::array* array = node.as_array();
    if (array == nullptr || array->empty()) {
      Complain(node, fmt::format("'{}' is not a list of texts", key), "write [\"…\", \"…\"]");
      return result;
    }
    for (const toml::node& item : *array) {
      const auto word = item.value_exact<std::string>();
      if (!word || word->empty())
        Complain(item, fmt::format("'{}' holds something that is not a text", key),
                 "write each word in quotes");
      else
        result.push_back(*word);
    }
    return result;
  }

  const toml::node* Find(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = table.get(key);
    if (node == nullptr && required)
      Complain(table, fmt::format("'{}' is missing", key), "add it to this table");
    return node;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  fs::path file_;
  std::optional<Error> error_;
};

// One value of a params table: text, number or boolean.
std::optional<nlohmann::json> Scalar(Reader& reader, const toml::node& node,
                                     const std::string& key) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto whole = node.value_exact<std::int64_t>()) return *whole;
  if (const auto real = node.value_exact<double>()) return *real;
  if (const auto truth = node.value_exact<bool>()) return *truth;
  reader.Complain(node, fmt::format("params '{}' is neither a text, a number nor a boolean", key),
                  "write one value (or, under [[check]], a list of them)");
  return std::nullopt;
}

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Keys of a table in the order they were written.
std::vector<std::pair<std::string, const toml::node*>> InFileOrder(const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> items;
  for (const auto& [key, node] : table) items.emplace_back(std::string(key.str()), &node);
  std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    const auto left = a.second->source().begin, right = b.second->source().begin;
    return std::tie(left.line, left.column) < std::tie(right.line, right.column);
  });
  return items;
}

void ReadPaths(Reader& reader, const toml::table& root, Target& target) {
  const toml::table* paths = reader.Table(root, "paths", true);
  if (paths == nullptr) return;
  reader.AllowKeys(*paths, "[paths]", {"editable", "protected"});
  target.editable = reader.Words(*paths, "editable", true);
  target.protected_ = reader.Words(*paths, "protected", false);
  for (const auto* list : {&target.editable, &target.protected_}) {
    for (const std::string& path : *list) {
      const fs::path parts(path);
      if (parts.is_absolute() || std::find(parts.begin(), parts.end(), "..") != parts.end())
        reader.Complain(*paths, fmt::format("path \"{}\" leaves the repository", path),
                        "write it relative to the repository's root, without '..'");
    }
  }
}

void ReadBuild(Reader& reader, const toml::table& root, Target& target) {
  const toml::table* build = reader.Table(root, "build", false);
  if (build == nullptr) return;  // nothing to build: an interpreted kernel
  reader.AllowKeys(*build, "[build]", {"commands", "on_device", "limit"});
  target.build_on_device = reader.Bool(*build, "on_device");
  reader.Duration(*build, "limit", target.build_limit_ms);
  const toml::node* commands = reader.Find(*build, "commands", true);
  if (commands == nullptr) return;
  if (commands->as_array() == nullptr) {
    reader.Complain(*commands, "'commands' is not a list of commands",
                    "write [[\"cmake\", \"-S\", …], …]");
    return;
  }
  for (const toml::node& command : *commands->as_array())
    target.build_commands.push_back(reader.WordsOf(command, "commands"));
}

void ReadHarness(Reader& reader, const toml::table& root, Target& target) {
  if (const toml::table* harness = reader.Table(root, "harness", true)) {
    reader.AllowKeys(*harness, "[harness]", {"command", "parts"});
    target.harness = reader.Words(*harness, "command", true);
    target.harness_parts = reader.Words(*harness, "parts", false);
  }
  for (const toml::table* item : reader.Tables(root, "peer")) {
    reader.AllowKeys(*item, "[[peer]]", {"name", "command"});
    TargetPeer peer{reader.String(*item, "name", true), reader.Words(*item, "command", true)};
    for (const TargetPeer& other : target.peers)
      if (other.name == peer.name)
        reader.Complain(*item, fmt::format("a second peer is named '{}'", peer.name),
                        "give each its own name");
    target.peers.push_back(std::move(peer));
  }
}

void ReadCases(Reader& reader, const toml::table& root, Target& target) {
  for (const toml::table* item : reader.Tables(root, "case")) {
    reader.AllowKeys(*item, "[[case]]", {"name", "params", "floor_us", "floor_why"});
    TargetCase parsed;
    parsed.name = reader.String(*item, "name", true);
    if (!parsed.name.empty() && !IsName(parsed.name))
      reader.Complain(*item, fmt::format("case name \"{}\" is not [a-z0-9_]+", parsed.name),
                      "rename it");
    if (target.FindCase(parsed.name) != nullptr)
      reader.Complain(*item, fmt::format("a second case is named '{}'", parsed.name),
                      "give each its own name");
    nlohmann::json params = nlohmann::json::object();
    if (const toml::table* table = reader.Table(*item, "params", false))
      for (const auto& [key, node] : InFileOrder(*table))
        if (auto value = Scalar(reader, *node, key)) params[key] = *value;
    parsed.params = params.dump();
    parsed.floor_us = reader.Number(*item, "floor_us", 0);
    parsed.floor_why = reader.String(*item, "floor_why", false);
    if (parsed.floor_us && parsed.floor_why.empty())
      reader.Complain(*item, fmt::format("case '{}' has floor_us without floor_why", parsed.name),
                      "name the limit the floor was computed from");
    target.cases.push_back(std::move(parsed));
  }
  if (target.cases.empty()) reader.Complain(root, "no [[case]]", "add what is to be measured");
}

void ReadExploits(Reader& reader, const toml::table& root, Target& target) {
  for (const toml::table* item : reader.Tables(root, "exploit")) {
    reader.AllowKeys(*item, "[[exploit]]", {"name", "command", "expects", "case"});
    TargetExploit exploit{.name = reader.String(*item, "name", true),
                          .command = reader.Words(*item, "command", true),
                          .case_name = reader.String(*item, "case", false)};
    const toml::node* expects = item->get("expects");
    if (expects != nullptr && expects->is_string())
      exploit.expects = {reader.String(*item, "expects", true)};
    else
      exploit.expects = reader.Words(*item, "expects", true);
    if (!exploit.case_name.empty() && target.FindCase(exploit.case_name) == nullptr)
      reader.Complain(*item,
                      fmt::format("exploit '{}' names case '{}', which there is not", exploit.name,
                                  exploit.case_name),
                      "name one of the [[case]]s");
    for (const TargetExploit& other : target.exploits)
      if (other.name == exploit.name)
        reader.Complain(*item, fmt::format("a second exploit is named '{}'", exploit.name),
                        "give each its own name");
    target.exploits.push_back(std::move(exploit));
  }
}

// "dense n=32 batch=3": texts as they are, everything else as key=value, in the file's order.
std::string CheckName(const std::vector<std::pair<std::string, nlohmann::json>>& values) {
  std::vector<std::string> words;
  for (const auto& [key, value] : values)
    words.push_back(value.is_string() ? value.get<std::string>()
                                      : fmt::format("{}={}", key, value.dump()));
  return fmt::format("{}", fmt::join(words, " "));
}

void ReadCheck(Reader& reader, const toml::table& item, Target& target,
               std::set<std::string>& seen) {
  reader.AllowKeys(item, "[[check]]", {"params", "level"});
  const toml::table* params = reader.Table(item, "params", true);
  const std::string level = reader.String(item, "level", false);
  if (!level.empty() && level != "quick" && level != "full" && level != "exploits")
    reader.Complain(*item.get("level"), fmt::format("level \"{}\" is unknown", level),
                    "write \"quick\", \"full\" or \"exploits\"");
  if (params == nullptr) return;
  std::vector<std::vector<std::pair<std::string, nlohmann::json>>> product = {{}};
  for (const auto& [key, node] : InFileOrder(*params)) {
    std::vector<nlohmann::json> values;
    if (const toml::array* list = node->as_array()) {
      if (list->empty())
        reader.Complain(*node, fmt::format("params '{}' is empty", key), "give at least one value");
      for (const toml::node& one : *list)
        if (auto value = Scalar(reader, one, key)) values.push_back(*value);
    } else if (auto value = Scalar(reader, *node, key)) {
      values.push_back(*value);
    }
    decltype(product) longer;
    for (const auto& prefix : product) {
      for (const nlohmann::json& value : values) {
        longer.push_back(prefix);
        longer.back().emplace_back(key, value);
      }
    }
    product = std::move(longer);
  }
  for (const auto& values : product) {
    CheckCase check{.name = CheckName(values),
                    .level = level == "quick"      ? CheckLevel::kQuick
                             : level == "exploits" ? CheckLevel::kExploits
                                                   : CheckLevel::kFull};
    if (!seen.insert(check.name).second)
      reader.Complain(item, fmt::format("check '{}' comes twice", check.name),
                      "remove one of the two");
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, value] : values) object[key] = value;
    check.params = object.dump();
    target.checks.push_back(std::move(check));
  }
}

void ReadLimits(Reader& reader, const toml::table& root, TargetLimits& limits) {
  const toml::table* table = reader.Table(root, "limits", false);
  if (table == nullptr) return;
  reader.AllowKeys(*table, "[limits]",
                   {"ratchet", "ratchet_short", "short_us", "minimum_effect", "flag_speedup",
                    "job_limit", "request_limit", "slot", "screen", "claim", "ratchet_time"});
  const auto number = [&](const char* key, double least, double& into) {
    if (const auto value = reader.Number(*table, key, least)) into = *value;
  };
  number("ratchet", 0, limits.ratchet);
  number("ratchet_short", 0, limits.ratchet_short);
  number("short_us", 0, limits.short_us);
  number("minimum_effect", 0, limits.minimum_effect);
  number("flag_speedup", 1, limits.flag_speedup);
  reader.Duration(*table, "job_limit", limits.job_limit_ms);
  reader.Duration(*table, "request_limit", limits.request_limit_ms);
  reader.Duration(*table, "slot", limits.slot_ms);
  reader.Duration(*table, "screen", limits.screen_ms);
  reader.Duration(*table, "claim", limits.claim_ms);
  reader.Duration(*table, "ratchet_time", limits.ratchet_ms);
}

}  // namespace

Result<Target> ParseTarget(const std::string& text, const fs::path& file) {
  toml::table root;
  try {
    root = toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    return Fail(ErrorKind::kUsage, "read target",
                fmt::format("{}:{}", file.string(), error.source().begin.line), error.description(),
                "see docs/target_protocol.md for the format");
  }
  Reader reader(file);
  Target target;
  target.file = fs::absolute(file);
  reader.AllowKeys(root, "the target file",
                   {"name", "description", "device", "paths", "build", "harness", "peer", "case",
                    "check", "limits", "knobs", "exploit"});
  target.name = reader.String(root, "name", true);
  if (!target.name.empty() && !IsName(target.name))
    reader.Complain(*root.get("name"), fmt::format("name \"{}\" is not [a-z0-9_]+", target.name),
                    "rename the target");
  target.description = reader.String(root, "description", false);
  target.device = reader.String(root, "device", true);
  ReadPaths(reader, root, target);
  ReadBuild(reader, root, target);
  ReadHarness(reader, root, target);
  ReadCases(reader, root, target);
  ReadExploits(reader, root, target);
  std::set<std::string> seen;
  for (const toml::table* item : reader.Tables(root, "check"))
    ReadCheck(reader, *item, target, seen);
  ReadLimits(reader, root, target.limits);
  if (const toml::table* knobs = reader.Table(root, "knobs", false)) {
    reader.AllowKeys(*knobs, "[knobs]", {"file"});
    target.knobs_file = reader.String(*knobs, "file", true);
  }
  if (reader.error()) return tl::unexpected(*reader.error());
  return target;
}

Result<Target> LoadTarget(const fs::path& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  return ParseTarget(text, file);
}

}  // namespace crucible
