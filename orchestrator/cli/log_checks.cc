#include "orchestrator/cli/log_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "base/clock.h"
#include "base/hash.h"
#include "checks/target.h"
#include "orchestrator/cli/command.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kEvidence = {
    "commit", "base_commit", "merge_commit", "job", "report", "profile", "file", "url"};

bool IsFile(const std::string& kind) {
  return kind == "report" || kind == "profile" || kind == "file";
}

// Names of the target files of the repository that this folder is in.
std::set<std::string> TargetsHere() {
  std::set<std::string> names;
  std::error_code failed;
  for (fs::path folder = fs::current_path(failed); !failed; folder = folder.parent_path()) {
    std::error_code none;
    for (const auto& file : fs::directory_iterator(folder / "missions" / "targets", none))
      if (file.path().extension() == ".toml") names.insert(file.path().stem().string());
    if (!names.empty() || !folder.has_relative_path()) break;
  }
  return names;
}

}  // namespace

Result<> CheckTimes(const Entry& entry) {
  for (const CaseResult& result : entry.cases) {
    if (!result.before_us || !result.after_us) continue;
    const bool faster = *result.after_us < *result.before_us;
    if ((entry.kind == EntryKind::kWin && !faster) || (entry.kind == EntryKind::kLoss && faster))
      return Fail(
          ErrorKind::kUsage, "add entry", "",
          fmt::format("a {} that went from {} to {} is none", ToText(entry.kind),
                      FormatMicroseconds(*result.before_us), FormatMicroseconds(*result.after_us)),
          "turn --before and --after round, or give another --kind");
  }
  return {};
}

Result<> SealEvidence(const fs::path& home, Entry* entry) {
  for (Evidence& item : entry->evidence) {
    if (std::find(kEvidence.begin(), kEvidence.end(), item.kind) == kEvidence.end())
      return Fail(ErrorKind::kUsage, "add entry", "",
                  fmt::format("--evidence {}={}: there is no such kind", item.kind, item.ref),
                  fmt::format("kinds: {}", fmt::join(kEvidence, ", ")));
    if (!IsFile(item.kind)) continue;
    std::error_code ignored;
    const fs::path file =
        fs::is_regular_file(item.ref, ignored) ? fs::path(item.ref) : home / item.ref;
    if (!fs::is_regular_file(file, ignored))
      return Fail(ErrorKind::kNotFound, "add entry", "",
                  fmt::format("--evidence {}={}: there is no such file, here or in {}", item.kind,
                              item.ref, home.string()),
                  "check the path; a place elsewhere is --evidence url=…");
    CRUCIBLE_ASSIGN(item.sha256, Sha256HexOfFile(file));
  }
  return {};
}

Result<> CheckNames(Store* store, const Entry& entry, bool in_repository) {
  if (entry.target.empty()) return {};
  std::set<std::string> targets, cases;
  CRUCIBLE_ASSIGN(const auto entries, store->QueryEntries({}));
  for (const Entry& known : entries) {
    if (!known.target.empty()) targets.insert(known.target);
    if (known.target == entry.target)
      for (const CaseResult& result : known.cases) cases.insert(result.name);
  }
  CRUCIBLE_ASSIGN(const auto points, store->Points(""));
  for (const Point& point : points) {
    targets.insert(point.target);
    if (point.target == entry.target) cases.insert(point.case_name);
  }
  if (in_repository) {
    targets.merge(TargetsHere());
    if (const auto file = FindTargetFile(entry.target)) {
      targets.insert(entry.target);
      if (const auto target = LoadTarget(*file))
        for (const TargetCase& item : target->cases) cases.insert(item.name);
    }
  }
  if (!targets.empty() && !targets.contains(entry.target))
    return Fail(ErrorKind::kUsage, "add entry", "",
                "neither the log nor this repository has a target " + entry.target,
                fmt::format("they have {}", fmt::join(targets, ", ")));
  for (const CaseResult& result : entry.cases)
    if (!cases.empty() && !cases.contains(result.name))
      return Fail(ErrorKind::kUsage, "add entry", "",
                  fmt::format("target {} has no case {}", entry.target, result.name),
                  fmt::format("it has {}", fmt::join(cases, ", ")));
  return {};
}

}  // namespace crucible
