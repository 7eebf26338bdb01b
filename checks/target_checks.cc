// The checks of a target file: [[check]], [[tool_check]] and the kernels that cheat.
#include <set>

#include "checks/target_reader.h"

namespace crucible {
namespace {

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

}  // namespace

void ReadChecks(Reader& reader, const toml::table& root, Target& target) {
  std::set<std::string> seen;
  for (const toml::table* item : reader.Tables(root, "check"))
    ReadCheck(reader, *item, target, seen);
}

void ReadExploits(Reader& reader, const toml::table& root, Target& target) {
  for (const toml::table* item : reader.Tables(root, "exploit")) {
    reader.AllowKeys(*item, "[[exploit]]", {"name", "command", "expects", "case"});
    TargetExploit exploit{.name = reader.String(*item, "name", true),
                          .command = reader.Command(*item, "command", true),
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

void ReadIntegrity(Reader& reader, const toml::table& root, Target& target) {
  const toml::table* integrity = reader.Table(root, "integrity", false);
  if (integrity == nullptr) return;
  reader.AllowKeys(*integrity, "[integrity]", {"refuse"});
  for (const toml::table* item : reader.Tables(*integrity, "refuse")) {
    reader.AllowKeys(*item, "[[integrity.refuse]]", {"words", "except", "why"});
    target.integrity.refused.push_back({.words = reader.Words(*item, "words", true),
                                        .except = reader.Words(*item, "except", false),
                                        .why = reader.String(*item, "why", true)});
  }
}

void ReadToolChecks(Reader& reader, const toml::table& root, Target& target) {
  for (const toml::table* item : reader.Tables(root, "tool_check")) {
    reader.AllowKeys(*item, "[[tool_check]]", {"name", "tool", "command"});
    ToolCheck check{.name = reader.String(*item, "name", true),
                    .tool = reader.String(*item, "tool", true),
                    .command = reader.Command(*item, "command", true, "{tool}")};
    if (std::find(check.command.begin(), check.command.end(), "{tool}") == check.command.end())
      reader.Complain(*item, fmt::format("the command of '{}' does not name {{tool}}", check.name),
                      "write the word \"{tool}\" where the tool's path belongs");
    target.tool_checks.push_back(std::move(check));
  }
}

}  // namespace crucible
