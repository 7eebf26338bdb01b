#include "checks/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "base/json.h"
#include "base/paths.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

// "a/" covers everything under a; "a" covers exactly a.
bool Covers(const std::string& pattern, const std::string& path) {
  if (pattern.ends_with('/')) return path.starts_with(pattern);
  return path == pattern;
}

bool CoveredByAny(const std::vector<std::string>& patterns, const std::string& path) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return Covers(pattern, path); });
}

bool StaysInside(const std::string& path) {
  if (path.empty() || path.starts_with('/')) return false;
  const fs::path parts(path);
  return std::none_of(parts.begin(), parts.end(),
                      [](const fs::path& part) { return part == ".." || part == "."; });
}

fs::path BinDirectory() {
  if (const char* named = std::getenv("CRUCIBLE_BIN_DIR"); named != nullptr && *named != 0)
    return named;
  return ProgramDirectory();
}

Result<std::string> SubstituteWord(const std::string& word,
                                   const std::map<std::string, std::string>& values) {
  std::string result;
  if (const std::string bad = BadPlaceholder(word); !bad.empty())
    return Fail(ErrorKind::kUsage, "substitute", word, bad,
                fmt::format("use {}", fmt::join(kPlaceholders, ", ")));
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t open = word.find('{', at);
    if (open == std::string::npos) return result + word.substr(at);
    const std::size_t close = word.find('}', open);
    const std::string name = word.substr(open + 1, close - open - 1);
    const auto value = values.find(name);
    CRUCIBLE_CHECK(value != values.end(), "every placeholder has a value");
    if (value->second.empty())
      return Fail(ErrorKind::kUsage, "substitute", word, fmt::format("the arm names no {}", name),
                  fmt::format("add \"{}\" to its ARM.json", name));
    result += word.substr(at, open - at) + value->second;
    at = close + 1;
  }
  return result;
}

}  // namespace

const TargetCase* Target::FindCase(const std::string& case_name) const {
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const TargetCase& item) { return item.name == case_name; });
  return found == cases.end() ? nullptr : &*found;
}

Result<std::vector<TargetCase>> SelectCases(const Target& target,
                                            const std::vector<std::string>& names) {
  if (names.empty()) return target.cases;
  std::vector<TargetCase> result;
  for (const std::string& name : names) {
    const TargetCase* found = target.FindCase(name);
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const TargetCase& item : target.cases) known.push_back(item.name);
      return Fail(ErrorKind::kUsage, "select case", name,
                  fmt::format("target {} has no such case", target.name),
                  fmt::format("choose among {}", fmt::join(known, ", ")));
    }
    const bool twice = std::any_of(result.begin(), result.end(),
                                   [&](const TargetCase& item) { return item.name == name; });
    if (!twice) result.push_back(*found);
  }
  return result;
}

bool IsEditable(const Target& target, const std::string& path) {
  return StaysInside(path) && CoveredByAny(target.editable, path) &&
         !CoveredByAny(target.protected_, path);
}

nlohmann::json ToJson(const Arm& arm) {
  return {{"name", arm.name},
          {"source", arm.source.string()},
          {"build", arm.build.string()},
          {"main", arm.main.string()},
          {"source_hash", arm.source_hash}};
}

Result<Arm> ArmFromJson(const nlohmann::json& json) {
  if (!json.is_object())
    return Fail(ErrorKind::kUsage, "read arm", "", "it is not a JSON object",
                R"(write {"name":…,"source":…,"build":…,"main":…,"source_hash":…})");
  for (const char* key : {"name", "source", "build", "main", "source_hash"}) {
    const auto found = json.find(key);
    const bool optional = std::string_view(key) == "main";
    if (found == json.end() ? !optional : !found->is_string())
      return Fail(ErrorKind::kUsage, "read arm", "",
                  fmt::format("\"{}\" is missing or not a string", key),
                  R"(write {"name":…,"source":…,"build":…,"main":…,"source_hash":…})");
  }
  return Arm{.name = json["name"],
             .source = json["source"].get<std::string>(),
             .build = json["build"].get<std::string>(),
             .main = json.value("main", std::string()),
             .source_hash = json["source_hash"]};
}

std::string BadPlaceholder(const std::string& word, std::string_view more) {
  for (std::size_t open = word.find('{'); open != std::string::npos; open = word.find('{', open)) {
    const std::size_t close = word.find('}', open);
    if (close == std::string::npos) return "a '{' without its '}'";
    const std::string name = word.substr(open, close + 1 - open);
    if (name != more && std::find(std::begin(kPlaceholders), std::end(kPlaceholders), name) ==
                            std::end(kPlaceholders))
      return "unknown placeholder " + name;
    open = close;
  }
  return "";
}

Result<std::vector<std::string>> Substitute(const std::vector<std::string>& words, const Arm& arm) {
  const fs::path bin = BinDirectory();
  const unsigned jobs = std::max(1u, std::thread::hardware_concurrency());
  const std::map<std::string, std::string> values = {{"source", arm.source.string()},
                                                     {"build", arm.build.string()},
                                                     {"main", arm.main.string()},
                                                     {"bin", bin.string()},
                                                     {"lib", (bin.parent_path() / "lib").string()},
                                                     {"jobs", std::to_string(jobs)}};
  std::vector<std::string> result;
  for (const std::string& word : words) {
    CRUCIBLE_ASSIGN(std::string substituted, SubstituteWord(word, values));
    result.push_back(std::move(substituted));
  }
  return result;
}

Result<std::int64_t> ParseDuration(const std::string& text) {
  static const std::map<std::string_view, std::int64_t> kUnits = {
      {"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}};
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const auto unit = kUnits.find(std::string_view(rest, static_cast<std::size_t>(end - rest)));
  constexpr std::int64_t kLongestMs = 30LL * 24 * 3'600'000;
  if (error != std::errc() || number <= 0 || unit == kUnits.end() ||
      number > kLongestMs / unit->second)
    return Fail(ErrorKind::kUsage, "read duration", fmt::format("\"{}\"", text),
                "it is not a whole number above 0 and a unit",
                "write for example \"500ms\", \"10s\", \"3m\" or \"1h\"");
  return number * unit->second;
}

}  // namespace crucible
