// A target file's TOML into a Target; its checks are in target_checks.cc.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/files.h"
#include "base/json.h"
#include "base/toml_mistake.h"
#include "checks/target.h"
#include "checks/target_reader.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// cpu, any, or GPUs by index or the beginning of a UUID, as gpu_run takes them: whether there is
// such a one is seen on the machine.
bool IsDevice(const std::string& text) {
  if (text == "cpu" || text == "any") return true;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    const bool index = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    if (!index && !word.starts_with("GPU-") && !word.starts_with("MIG-")) return false;
    at = comma + 1;
  }
  return true;
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
    target.build_commands.push_back(reader.CommandOf(command, "commands"));
}

// Only a cheat may get past a harness's admission, to show what else would meet it.
void RefuseAdmitAny(Reader& reader, const toml::table& table, const std::string& where,
                    const std::vector<std::string>& command) {
  for (const std::string& word : command)
    if (word.find(kAdmitAny) != std::string::npos)
      reader.Complain(table, fmt::format("the command of {} has {}", where, kAdmitAny),
                      "leave it to [[exploit]] kernels, which must not be admitted otherwise");
}

void ReadHarness(Reader& reader, const toml::table& root, Target& target) {
  if (const toml::table* harness = reader.Table(root, "harness", true)) {
    reader.AllowKeys(*harness, "[harness]", {"command", "parts"});
    target.harness = reader.Command(*harness, "command", true);
    RefuseAdmitAny(reader, *harness, "[harness]", target.harness);
    target.harness_parts = reader.Command(*harness, "parts", false);
  }
  for (const toml::table* item : reader.Tables(root, "peer")) {
    reader.AllowKeys(*item, "[[peer]]", {"name", "command"});
    TargetPeer peer{reader.String(*item, "name", true), reader.Command(*item, "command", true)};
    RefuseAdmitAny(reader, *item, "[[peer]]", peer.command);
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
    return TomlMistake("read target", file.string(), text, error,
                       "see docs/target_protocol.md for the format");
  }
  Reader reader(file);
  Target target;
  target.file = fs::absolute(file);
  reader.AllowKeys(root, "the target file",
                   {"name", "description", "device", "paths", "build", "harness", "peer", "case",
                    "check", "tool_check", "limits", "knobs", "exploit", "integrity"});
  target.name = reader.String(root, "name", true);
  if (!target.name.empty() && !IsName(target.name))
    reader.Complain(*root.get("name"), fmt::format("name \"{}\" is not [a-z0-9_]+", target.name),
                    "rename the target");
  target.description = reader.String(root, "description", false);
  target.device = reader.String(root, "device", true);
  if (!target.device.empty() && !IsDevice(target.device))
    reader.Complain(
        *root.get("device"), fmt::format("device \"{}\" is unknown", target.device),
        "write \"cpu\", \"any\", a GPU's index or UUID, or several with commas between");
  ReadPaths(reader, root, target);
  ReadBuild(reader, root, target);
  ReadHarness(reader, root, target);
  ReadCases(reader, root, target);
  ReadExploits(reader, root, target);
  ReadChecks(reader, root, target);
  ReadToolChecks(reader, root, target);
  ReadIntegrity(reader, root, target);
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
