#include "orchestrator/agents/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>
#include <toml++/toml.h>

#include "base/files.h"
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

Result<Knob> ReadKnob(const std::string& file, const toml::table& table) {
  CRUCIBLE_TRY(OnlyKeys(file, table, {"name", "file", "constant", "values", "cases", "mechanism"}));
  Knob knob;
  CRUCIBLE_ASSIGN(knob.name, Text(file, table, "name"));
  CRUCIBLE_ASSIGN(knob.file, Text(file, table, "file"));
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
  if (const toml::array* cases = table["cases"].as_array())
    for (const auto& node : *cases) knob.cases.push_back(node.value_or(std::string()));
  return knob;
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
    return Fail(ErrorKind::kUsage, "read knobs",
                fmt::format("{}:{}", file_name, error.source().begin.line), error.description(),
                "correct the TOML");
  }
  CRUCIBLE_TRY(OnlyKeys(file_name, root, {"knob", "constraint"}));
  KnobSpace space;
  if (const toml::array* knobs = root["knob"].as_array()) {
    for (const auto& node : *knobs) {
      if (!node.is_table()) return Problem(file_name, &node, "no table", "write [[knob]]");
      CRUCIBLE_ASSIGN(Knob knob, ReadKnob(file_name, *node.as_table()));
      if (space.Find(knob.name) != nullptr)
        return Problem(file_name, &node, fmt::format("knob '{}' is there twice", knob.name),
                       "give each its own name");
      space.knobs.push_back(std::move(knob));
    }
  }
  if (space.knobs.empty())
    return Problem(file_name, nullptr, "it has no [[knob]]", "see docs/target_protocol.md");
  const NameLookup any_name = [&](const std::string& name) -> std::optional<std::int64_t> {
    const Knob* knob = space.Find(name);
    return knob == nullptr ? std::nullopt : std::optional(knob->values.front());
  };
  if (const toml::array* constraints = root["constraint"].as_array()) {
    for (const auto& node : *constraints) {
      if (!node.is_table()) return Problem(file_name, &node, "no table", "write [[constraint]]");
      const toml::table& table = *node.as_table();
      CRUCIBLE_TRY(OnlyKeys(file_name, table, {"when", "reason"}));
      Constraint constraint;
      CRUCIBLE_ASSIGN(constraint.when, Text(file_name, table, "when"));
      CRUCIBLE_ASSIGN(constraint.reason, Text(file_name, table, "reason"));
      if (const auto value = Evaluate(constraint.when, any_name); !value)
        return Problem(file_name, &node, value.error().text, "");
      space.constraints.push_back(std::move(constraint));
    }
  }
  return space;
}

std::string CanonicalText(const Configuration& configuration) {
  std::string text;
  for (const auto& [name, value] : configuration)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

Result<Configuration> ReadConfiguration(const KnobSpace& space,
                                        const std::filesystem::path& root) {
  Configuration configuration;
  std::map<std::string, std::string> files;
  for (const Knob& knob : space.knobs) {
    if (!files.contains(knob.file)) {
      CRUCIBLE_ASSIGN(files[knob.file], ReadFile(root / knob.file));
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
    CRUCIBLE_ASSIGN(const std::int64_t refused, Evaluate(constraint.when, lookup));
    if (refused != 0) return fmt::format("{} ({})", constraint.reason, constraint.when);
  }
  return std::string();
}

}  // namespace crucible
