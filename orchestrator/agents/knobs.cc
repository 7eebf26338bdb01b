#include "orchestrator/agents/knobs.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "base/files.h"
#include "base/toml_mistake.h"
#include "orchestrator/agents/expression.h"

namespace crucible {
namespace {

tl::unexpected<Error> Problem(const std::string& file, const toml::node* node,
                              std::string_view cause, std::string_view next) {
  const std::string place =
      node == nullptr ? file : fmt::format("{}:{}", file, node->source().begin.line);
  return Fail(ErrorKind::kUsage, "read knobs", place, cause, next);
}

Result<std::string> Text(const std::string& file, const toml::table& table, const char* key) {
  const auto value = table[key].value<std::string>();
  if (!value || value->empty())
    return Problem(file, &table, fmt::format("'{}' is missing or no text", key),
                   "see docs/target_protocol.md, The knobs file");
  return *value;
}

Result<> OnlyKeys(const std::string& file, const toml::table& table,
                  std::initializer_list<std::string_view> known) {
  for (const auto& [key, node] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      return Problem(file, &node, fmt::format("unknown key '{}'", key.str()),
                     fmt::format("known keys: {}", fmt::join(known, ", ")));
  return {};
}

// A class of sizes that has its own copy of every knob.
struct KnobClass {
  std::string name, file;
  std::vector<std::string> cases;
  std::map<std::string, std::int64_t> constants;
};

std::vector<std::string> Texts(const toml::table& table, const char* key) {
  std::vector<std::string> texts;
  if (const toml::array* values = table[key].as_array())
    for (const auto& node : *values) texts.push_back(node.value_or(std::string()));
  return texts;
}

Result<std::vector<KnobClass>> ReadClasses(const std::string& file, const toml::table& root) {
  std::vector<KnobClass> classes;
  const toml::array* tables = root["class"].as_array();
  if (tables == nullptr) return classes;
  for (const auto& node : *tables) {
    if (!node.is_table()) return Problem(file, &node, "no table", "write [[class]]");
    const toml::table& table = *node.as_table();
    CRUCIBLE_TRY(OnlyKeys(file, table, {"name", "file", "cases", "constants"}));
    KnobClass item;
    CRUCIBLE_ASSIGN(item.name, Text(file, table, "name"));
    CRUCIBLE_ASSIGN(item.file, Text(file, table, "file"));
    item.cases = Texts(table, "cases");
    if (const toml::table* constants = table["constants"].as_table())
      for (const auto& [key, value] : *constants)
        item.constants[std::string(key.str())] = value.value_or(std::int64_t{0});
    classes.push_back(std::move(item));
  }
  return classes;
}

// `of_class`: the knob's file and cases are the class's.
Result<Knob> ReadKnob(const std::string& file, const toml::table& table, bool of_class) {
  CRUCIBLE_TRY(
      OnlyKeys(file, table, {"name", "file", "constant", "values", "cases", "mechanism", "first"}));
  Knob knob;
  CRUCIBLE_ASSIGN(knob.name, Text(file, table, "name"));
  if (!of_class) {
    CRUCIBLE_ASSIGN(knob.file, Text(file, table, "file"));
  }
  CRUCIBLE_ASSIGN(knob.constant, Text(file, table, "constant"));
  CRUCIBLE_ASSIGN(knob.mechanism, Text(file, table, "mechanism"));
  const toml::array* values = table["values"].as_array();
  if (values == nullptr || values->size() < 2)
    return Problem(file, &table, fmt::format("knob '{}' needs at least two values", knob.name),
                   "write values = [1, 2, 4]");
  for (const auto& node : *values) {
    const auto value = node.value<std::int64_t>();
    if (!value) return Problem(file, &node, "a value is no integer", "knobs are integers");
    knob.values.push_back(*value);
  }
  std::sort(knob.values.begin(), knob.values.end());
  knob.cases = Texts(table, "cases");
  knob.first = table["first"].value<std::int64_t>();
  if (knob.first &&
      std::find(knob.values.begin(), knob.values.end(), *knob.first) == knob.values.end())
    return Problem(file, &table,
                   fmt::format("'first' of knob '{}' is not among its values", knob.name),
                   "name one of them");
  return knob;
}

Result<> AddKnob(const std::string& file, const toml::node& node,
                 const std::vector<KnobClass>& classes, KnobSpace* space) {
  if (!node.is_table()) return Problem(file, &node, "no table", "write [[knob]]");
  CRUCIBLE_ASSIGN(const Knob knob, ReadKnob(file, *node.as_table(), !classes.empty()));
  std::vector<Knob> copies;
  for (const KnobClass& item : classes) {
    Knob copy = knob;
    copy.name = item.name + "." + knob.name;
    copy.file = item.file;
    copy.cases = item.cases;
    copies.push_back(std::move(copy));
  }
  if (classes.empty()) copies.push_back(knob);
  for (Knob& copy : copies) {
    if (space->Find(copy.name) != nullptr)
      return Problem(file, &node, fmt::format("knob '{}' is there twice", copy.name),
                     "give each its own name");
    space->knobs.push_back(std::move(copy));
  }
  return {};
}

NameLookup NamesOf(const Constraint& constraint, NameLookup knobs) {
  return [&constraint,
          knobs = std::move(knobs)](const std::string& name) -> std::optional<std::int64_t> {
    const auto constant = constraint.constants.find(name);
    if (constant != constraint.constants.end()) return constant->second;
    return knobs(constraint.prefix + name);
  };
}

Result<> AddConstraint(const std::string& file, const toml::node& node,
                       const std::vector<KnobClass>& classes, KnobSpace* space) {
  if (!node.is_table()) return Problem(file, &node, "no table", "write [[constraint]]");
  const toml::table& table = *node.as_table();
  CRUCIBLE_TRY(OnlyKeys(file, table, {"when", "require", "reason"}));
  Constraint constraint;
  constraint.required = table.contains("require");
  if (constraint.required && table.contains("when"))
    return Problem(file, &node, "it has both 'when' and 'require'", "write one of them");
  CRUCIBLE_ASSIGN(constraint.expression,
                  Text(file, table, constraint.required ? "require" : "when"));
  CRUCIBLE_ASSIGN(constraint.reason, Text(file, table, "reason"));
  std::vector<Constraint> copies;
  for (const KnobClass& item : classes) {
    copies.push_back(constraint);
    copies.back().prefix = item.name + ".";
    copies.back().constants = item.constants;
  }
  if (classes.empty()) copies.push_back(constraint);
  const NameLookup first_values = [&](const std::string& name) -> std::optional<std::int64_t> {
    const Knob* knob = space->Find(name);
    return knob == nullptr ? std::nullopt : std::optional(knob->values.back());
  };
  for (Constraint& copy : copies) {
    if (const auto value = Evaluate(copy.expression, NamesOf(copy, first_values)); !value)
      return Problem(file, &node, value.error().text, "");
    space->constraints.push_back(std::move(copy));
  }
  return {};
}

std::regex ConstantPattern(const Knob& knob) {
  return std::regex("(\\bconstexpr\\s+int\\s+" + knob.constant + "\\s*=\\s*)(-?[0-9]+)(\\s*;)");
}

Result<std::int64_t> FindConstant(const Knob& knob, const std::string& text) {
  const std::regex pattern = ConstantPattern(knob);
  const auto begin = std::sregex_iterator(text.begin(), text.end(), pattern);
  const auto count = std::distance(begin, std::sregex_iterator());
  if (count != 1)
    return Fail(ErrorKind::kUsage, "read knob", knob.name,
                fmt::format("{} has {} definitions 'constexpr int {} = N;'", knob.file, count,
                            knob.constant),
                "there must be exactly one");
  return std::stoll((*begin)[2].str());
}

}  // namespace

const Knob* KnobSpace::Find(const std::string& name) const {
  for (const Knob& knob : knobs)
    if (knob.name == name) return &knob;
  return nullptr;
}

Result<KnobSpace> ParseKnobs(const std::string& toml_text, const std::string& file_name) {
  toml::table root;
  try {
    root = toml::parse(toml_text, file_name);
  } catch (const toml::parse_error& error) {
    return TomlMistake("read knobs", file_name, toml_text, error,
                       "docs/target_protocol.md shows a knobs file");
  }
  CRUCIBLE_TRY(OnlyKeys(file_name, root, {"class", "knob", "constraint"}));
  CRUCIBLE_ASSIGN(const std::vector<KnobClass> classes, ReadClasses(file_name, root));
  KnobSpace space;
  if (const toml::array* knobs = root["knob"].as_array())
    for (const auto& node : *knobs) CRUCIBLE_TRY(AddKnob(file_name, node, classes, &space));
  if (space.knobs.empty())
    return Problem(file_name, nullptr, "it has no [[knob]]", "see docs/target_protocol.md");
  if (const toml::array* constraints = root["constraint"].as_array())
    for (const auto& node : *constraints)
      CRUCIBLE_TRY(AddConstraint(file_name, node, classes, &space));
  return space;
}

std::string CanonicalText(const Configuration& configuration) {
  std::string text;
  for (const auto& [name, value] : configuration)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

Result<Configuration> ReadConfiguration(const KnobSpace& space, const std::filesystem::path& root) {
  return ReadConfiguration(space, [&](const std::string& file) { return ReadFile(root / file); });
}

Result<Configuration> ReadConfiguration(const KnobSpace& space, const FileReader& read) {
  Configuration configuration;
  std::map<std::string, std::string> files;
  for (const Knob& knob : space.knobs) {
    if (!files.contains(knob.file)) {
      CRUCIBLE_ASSIGN(files[knob.file], read(knob.file));
    }
    CRUCIBLE_ASSIGN(configuration[knob.name], FindConstant(knob, files[knob.file]));
  }
  return configuration;
}

Result<> WriteConfiguration(const KnobSpace& space, const std::filesystem::path& root,
                            const Configuration& configuration) {
  std::map<std::string, std::pair<std::string, std::string>> files;  // file -> old, new text
  for (const Knob& knob : space.knobs) {
    const auto wanted = configuration.find(knob.name);
    if (wanted == configuration.end()) continue;
    if (!files.contains(knob.file)) {
      CRUCIBLE_ASSIGN(const std::string text, ReadFile(root / knob.file));
      files[knob.file] = {text, text};
    }
    std::string& text = files[knob.file].second;
    CRUCIBLE_TRY(FindConstant(knob, text));
    text = std::regex_replace(text, ConstantPattern(knob),
                              "$01" + std::to_string(wanted->second) + "$3");
  }
  for (const auto& [file, texts] : files)
    if (texts.first != texts.second) CRUCIBLE_TRY(WriteFileAtomically(root / file, texts.second));
  return {};
}

Result<std::string> WhyInvalid(const KnobSpace& space, const Configuration& configuration) {
  for (const auto& [name, value] : configuration) {
    const Knob* knob = space.Find(name);
    if (knob == nullptr) return fmt::format("no knob is called {}", name);
    if (std::find(knob->values.begin(), knob->values.end(), value) == knob->values.end())
      return fmt::format("{} = {} is not one of its values {}", name, value,
                         fmt::join(knob->values, ", "));
  }
  const NameLookup lookup = [&](const std::string& name) -> std::optional<std::int64_t> {
    const auto found = configuration.find(name);
    return found == configuration.end() ? std::nullopt : std::optional(found->second);
  };
  for (const Constraint& constraint : space.constraints) {
    CRUCIBLE_ASSIGN(const std::int64_t holds,
                    Evaluate(constraint.expression, NamesOf(constraint, lookup)));
    if ((holds != 0) != constraint.required)
      return fmt::format("{} ({}{})", constraint.reason, constraint.required ? "not " : "",
                         constraint.expression);
  }
  return std::string();
}

}  // namespace crucible
