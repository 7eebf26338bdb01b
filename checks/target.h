// target.h: a target file (docs/target_protocol.md), read and validated.
//
// A target is what a campaign works on: how to build it, what may be edited, its cases, its full
// check, its limits. Plain data; loading touches the disk only to read the file. Every error names
// the file, the line where TOML gives one, what is wrong and what to write instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace crucible {

struct TargetCase {
  std::string name;
  std::string params;              // the harness's own words, as JSON object text
  std::optional<double> floor_us;  // what it cannot beat …
  std::string floor_why;           // … and the limit that says so
};

// kExploits: what the cheating kernels are run on, and nothing else is.
enum class CheckLevel { kQuick, kFull, kExploits };

struct CheckCase {
  std::string name;    // "dense n=32 batch=3": made from the params
  std::string params;  // JSON object text, every list of the file resolved to one value
  CheckLevel level = CheckLevel::kFull;
};

struct TargetPeer {
  std::string name;
  std::vector<std::string> command;
};

// The word with which a harness leaves out what it refuses a library for before loading it. A
// target file may give it to its [[exploit]] kernels alone.
inline constexpr std::string_view kAdmitAny = "--admit-any";

// A kernel that cheats, to prove that the harness sees it.
struct TargetExploit {
  std::string name;
  std::vector<std::string> command;  // a harness with the cheating library
  std::vector<std::string> expects;  // words the rejection must hold, all of them: its own reason
  std::string case_name;             // the [[case]] it is timed on; empty: the first
};

// A part of the full check that a tool makes: a program of the build under a memory checker. Where
// the machine has no such tool it is left out, and the answer says so.
struct ToolCheck {
  std::string name;
  std::string tool;                  // the program that must be installed
  std::vector<std::string> command;  // {tool} is where it was found
};

// Words that the source of a kernel may not hold.
struct RefusedWords {
  std::vector<std::string> words;
  std::vector<std::string> except;  // beginnings of text where such a word is allowed
  std::string why;
};
struct Integrity {
  std::vector<RefusedWords> refused;
};

struct TargetLimits {
  double ratchet = 0.02;        // slowdown of a case that fails the merge
  double ratchet_short = 0.04;  // … for cases under short_us
  double short_us = 1000;
  double minimum_effect = 0.003;
  double flag_speedup = 10;  // a gain beyond this waits for a person
  std::int64_t job_limit_ms = 600'000;
  std::int64_t request_limit_ms = 120'000;  // a harness silent for longer is a crashed arm
  std::int64_t slot_ms = 100;               // measured time asked of one slot
  std::int64_t screen_ms = 8'000;           // deciding one case, by rule
  std::int64_t claim_ms = 25'000;
  std::int64_t ratchet_ms = 25'000;
};

struct Target {
  std::string name, description, device;
  std::filesystem::path file;                     // where it was read from, absolute
  std::vector<std::string> editable, protected_;  // relative to the root; '/' at the end: folder
  std::vector<std::vector<std::string>> build_commands;
  bool build_on_device = false;
  std::int64_t build_limit_ms = 180'000;  // of each command
  std::vector<std::string> harness;
  std::vector<std::string> harness_parts;  // other files it is made of: a proof of it names them
  std::vector<TargetPeer> peers;
  std::vector<TargetExploit> exploits;
  std::vector<TargetCase> cases;
  std::vector<CheckCase> checks;
  std::vector<ToolCheck> tool_checks;
  Integrity integrity;
  TargetLimits limits;
  std::string knobs_file;  // relative to the root; empty: none

  const TargetCase* FindCase(const std::string& name) const;
};

Result<Target> LoadTarget(const std::filesystem::path& file);
Result<Target> ParseTarget(const std::string& toml, const std::filesystem::path& file);

// Names to cases; an unknown one is kUsage and lists what there is. Empty: all of them.
Result<std::vector<TargetCase>> SelectCases(const Target& target,
                                            const std::vector<std::string>& names);

// True when an agent may change this path (relative to the root, '/'-separated, no "..").
bool IsEditable(const Target& target, const std::string& path);

// One built copy of a target.
struct Arm {
  std::string name;              // "main", "m12", "record n32"
  std::filesystem::path source;  // the checkout that was built
  std::filesystem::path build;   // its build folder
  std::filesystem::path main;    // a checkout of main, for a harness kept in the repository
  std::string source_hash;       // hash of what it was built from; binds the arm to its source
};

nlohmann::json ToJson(const Arm& arm);
Result<Arm> ArmFromJson(const nlohmann::json& json);

inline constexpr std::string_view kPlaceholders[] = {"{source}", "{build}", "{main}",
                                                     "{bin}",    "{lib}",   "{jobs}"};

// What is wrong with a command's word: an unknown placeholder (not one of these or `more`), a '{'
// without its '}'; empty when nothing is.
std::string BadPlaceholder(const std::string& word, std::string_view more = "");

// {source} {build} {main} {bin} {lib} {jobs} replaced; an unknown placeholder is kUsage. {bin} is
// the folder of the running program (or $CRUCIBLE_BIN_DIR, for a program that lies elsewhere),
// {lib} the `lib` beside it.
Result<std::vector<std::string>> Substitute(const std::vector<std::string>& words, const Arm& arm);

// "500ms", "10s", "3m", "1h" to milliseconds.
Result<std::int64_t> ParseDuration(const std::string& text);

}  // namespace crucible
