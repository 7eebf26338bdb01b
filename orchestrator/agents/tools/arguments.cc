#include "orchestrator/agents/tools/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace crucible {
namespace {

using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::size_t kShownValue = 60;

std::string Shown(const json& value) {
  std::string text = JsonText(value);
  if (text.size() > kShownValue) text = text.substr(0, kShownValue) + "…";
  return text;
}

std::string Choices(const Argument& argument) {
  return fmt::format("one of {}", fmt::join(argument.choices, ", "));
}

std::string Form(const Argument& argument) {
  switch (argument.kind) {
    case Kind::kText:
      return argument.choices.empty() ? "text" : Choices(argument);
    case Kind::kInteger:
      if (argument.least && argument.most)
        return fmt::format("an integer from {} to {}", *argument.least, *argument.most);
      return argument.least ? fmt::format("an integer of at least {}", *argument.least)
                            : "an integer";
    case Kind::kFlag:
      return "true or false";
    case Kind::kTexts:
      return argument.choices.empty() ? "a list of texts"
                                      : "a list of texts, each " + Choices(argument);
    case Kind::kObject:
      return "an object";
  }
  return "";
}

std::string Forms(const std::vector<Argument>& arguments) {
  if (arguments.empty()) return "the tool takes no arguments: {}";
  std::vector<std::string> parts;
  for (const Argument& argument : arguments)
    parts.push_back(fmt::format("\"{}\": {}{}", argument.name, Form(argument),
                                argument.required ? " (required)" : ""));
  return fmt::format("the arguments are {{{}}}", fmt::join(parts, ", "));
}

bool Allowed(const Argument& argument, const std::string& text) {
  return argument.choices.empty() || std::find(argument.choices.begin(), argument.choices.end(),
                                               text) != argument.choices.end();
}

// Models write 10.0 for 10; nothing is lost by reading it so.
std::optional<std::int64_t> Integer(const json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  if (std::floor(number) != number || std::abs(number) > 1e15) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

bool Fits(const Argument& argument, json* value) {
  switch (argument.kind) {
    case Kind::kText:
      return value->is_string() && Allowed(argument, value->get<std::string>());
    case Kind::kInteger: {
      const auto number = Integer(*value);
      if (!number || (argument.least && *number < *argument.least) ||
          (argument.most && *number > *argument.most))
        return false;
      *value = *number;
      return true;
    }
    case Kind::kFlag:
      return value->is_boolean();
    case Kind::kTexts:
      return value->is_array() && std::all_of(value->begin(), value->end(), [&](const json& item) {
               return item.is_string() && Allowed(argument, item.get<std::string>());
             });
    case Kind::kObject:
      return value->is_object();
  }
  return false;
}

json Schema(const Argument& argument) {
  json schema = json::object();
  switch (argument.kind) {
    case Kind::kText:
      schema["type"] = "string";
      if (!argument.choices.empty()) schema["enum"] = argument.choices;
      break;
    case Kind::kInteger:
      schema["type"] = "integer";
      if (argument.least) schema["minimum"] = *argument.least;
      if (argument.most) schema["maximum"] = *argument.most;
      break;
    case Kind::kFlag:
      schema["type"] = "boolean";
      break;
    case Kind::kTexts:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      if (!argument.choices.empty()) schema["items"]["enum"] = argument.choices;
      break;
    case Kind::kObject:
      schema["type"] = "object";
      break;
  }
  schema["description"] = argument.help;
  return schema;
}

}  // namespace

std::string SchemaText(const std::vector<Argument>& arguments) {
  json properties = json::object();
  json required = json::array();
  for (const Argument& argument : arguments) {
    properties[argument.name] = Schema(argument);
    if (argument.required) required.push_back(argument.name);
  }
  json schema = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return schema.dump();
}

Result<json> ReadArguments(const std::string& tool, const std::vector<Argument>& arguments,
                           const std::string& text) {
  const auto wrong = [&](const std::string& what) {
    return Fail(ErrorKind::kUsage, "call", tool, what, Forms(arguments));
  };
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string::npos;
  json values = blank ? json::object() : json::parse(text, nullptr, false);
  if (values.is_discarded()) return wrong("its arguments are not JSON");
  if (!values.is_object()) return wrong("its arguments are not a JSON object");
  for (const auto& [name, value] : values.items())
    if (std::none_of(arguments.begin(), arguments.end(),
                     [&](const Argument& argument) { return argument.name == name; }))
      return wrong(fmt::format("it has no argument \"{}\"", name));
  for (const Argument& argument : arguments) {
    const auto found = values.find(argument.name);
    if (found == values.end() || found->is_null()) {
      if (argument.required) return wrong(fmt::format("\"{}\" is missing", argument.name));
      values.erase(argument.name);
      continue;
    }
    if (!Fits(argument, &*found))
      return wrong(
          fmt::format("\"{}\" must be {}, not {}", argument.name, Form(argument), Shown(*found)));
  }
  return values;
}

}  // namespace crucible
