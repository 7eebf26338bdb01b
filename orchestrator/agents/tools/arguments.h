// arguments.h: the arguments of a tool, declared once: the JSON Schema that a model is shown and
// the check that its call must pass come from the same list, so they cannot disagree.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace crucible {

struct Argument {
  enum class Kind { kText, kInteger, kFlag, kTexts, kObject };
  std::string name;
  Kind kind = Kind::kText;
  std::string help;
  bool required = false;
  std::vector<std::string> choices;         // kText and kTexts: the only ones allowed
  std::optional<std::int64_t> least, most;  // kInteger
};

// JSON Schema (an object, no other properties) as text.
std::string SchemaText(const std::vector<Argument>& arguments);

// The call's arguments, every rule of the list held. Empty text is an empty object, as some servers
// send it. The error names the field and shows the form of all of them.
Result<nlohmann::json> ReadArguments(const std::string& tool,
                                     const std::vector<Argument>& arguments,
                                     const std::string& text);

}  // namespace crucible
