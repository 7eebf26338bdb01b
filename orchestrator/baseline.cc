#include "orchestrator/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "orchestrator/agents/knobs.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/judge.h"

namespace crucible {
namespace {

using nlohmann::json;

std::string ConditionsName(const std::string& target) { return "conditions:" + target; }

// Knob files none of whose knobs can move any of the cases.
std::set<std::string> ForeignKnobFiles(const KnobSpace& space,
                                       const std::vector<std::string>& cases) {
  std::set<std::string> foreign, own;
  for (const Knob& knob : space.knobs) {
    const bool moves =
        knob.cases.empty() || std::any_of(cases.begin(), cases.end(), [&](const std::string& name) {
          return std::find(knob.cases.begin(), knob.cases.end(), name) != knob.cases.end();
        });
    (moves ? own : foreign).insert(knob.file);
  }
  for (const std::string& file : own) foreign.erase(file);
  return foreign;
}

// The same floor in the same target file is one entry, whoever adds it again.
std::string FloorKey(const std::string& target, const TargetCase& item) {
  return fmt::format(
      "floor.{}.{}.{}", target, item.name,
      Sha256Hex(fmt::format("{} {}", item.floor_us.value_or(0), item.floor_why)).substr(0, 12));
}

std::vector<Entry> FloorEntries(const Target& target, const std::string& campaign,
                                std::int64_t now_ms) {
  std::vector<Entry> floors;
  for (const TargetCase& item : target.cases) {
    if (!item.floor_us) continue;
    Entry entry;
    entry.key = FloorKey(target.name, item);
    entry.kind = EntryKind::kFloor;
    entry.time_ms = now_ms;
    entry.target = target.name;
    entry.campaign = campaign;
    entry.author = "target file";
    entry.mechanism = "floor";
    entry.summary =
        fmt::format("{} cannot be faster than {}", item.name, FormatMicroseconds(*item.floor_us));
    entry.reason = item.floor_why;
    entry.cases.push_back({.name = item.name, .role = "measure", .verdict = "computed"});
    floors.push_back(std::move(entry));
  }
  return floors;
}

// The commit that set the case's record last; "" where it has none.
std::string RecordCommit(const std::vector<Point>& points, const std::string& case_name) {
  std::string commit;
  for (const Point& point : points)
    if (point.kind == "main" && point.record && point.case_name == case_name) commit = point.name;
  return commit;
}

// A bar that has a record keeps it: a lucky time at a campaign's start must not move it, and of the
// same kernel it says nothing new. Nor does it of a record whose commit this repository has not.
bool IsAnotherKernel(const BaselineContext& context, const std::string& record,
                     const std::string& commit, const std::string& case_name) {
  const auto then = KernelGeneration(context, record, {case_name});
  const auto now = KernelGeneration(context, commit, {case_name});
  return then && now && *then != *now;
}

// The checkout of `commit`, whole: a marker beside it is written last, so that what a killed
// process left half made is made again.
Result<std::filesystem::path> BaselineCheckout(const BaselineContext& context,
                                               const std::string& commit) {
  const std::filesystem::path checkout = context.workspace->Checkout(commit);
  const std::filesystem::path marker = checkout.string() + ".complete";
  std::error_code ignored;
  if (std::filesystem::exists(marker, ignored) &&
      std::filesystem::exists(checkout / ".git", ignored))
    return checkout;
  CRUCIBLE_TRY(
      context.repository->CheckoutDetached("base-" + commit.substr(0, 12), checkout, commit));
  CRUCIBLE_TRY(WriteFileAtomically(marker, commit + "\n"));
  return checkout;
}

}  // namespace

Result<Arm> BaselineArm(const BaselineContext& context, const std::string& commit) {
  CRUCIBLE_ASSIGN(const FileLock lock, FileLock::Take(context.workspace->BaselineLock()));
  CRUCIBLE_ASSIGN(const std::filesystem::path checkout, BaselineCheckout(context, commit));
  BuildRequest request;
  request.target = context.target;
  request.arm.name = commit.substr(0, 12);
  request.arm.source = checkout;
  request.arm.main = checkout;
  CRUCIBLE_ASSIGN(const std::string hash, SourceHash(*context.target, checkout));
  request.arm.build = context.workspace->Builds() / hash.substr(0, 16);
  request.programs = context.workspace->programs;
  // Not in the builds, which are swept when the campaign ends: an error names this file.
  request.log =
      context.workspace->home / "measurements" / fmt::format("build.{}.log", hash.substr(0, 16));
  request.environment = context.workspace->Environment("", context.run_nonce);
  if (context.target->build_on_device)
    request.runner = RunnerPrefix(*context.workspace, context.target->device,
                                  context.target->build_limit_ms, "high");
  CRUCIBLE_TRY(MakeDirectories(context.workspace->Builds()));
  return BuildArmOnce(request);
}

Result<std::string> KernelGeneration(const BaselineContext& context, const std::string& commit,
                                     const std::vector<std::string>& cases) {
  std::set<std::string> foreign;
  if (!context.target->knobs_file.empty()) {
    const auto text = context.repository->ReadFileAt(commit, context.target->knobs_file);
    if (text) {
      CRUCIBLE_ASSIGN(const KnobSpace space, ParseKnobs(*text, context.target->knobs_file));
      foreign = ForeignKnobFiles(space, cases);
    }
  }
  std::string listing;
  for (const std::string& path : context.target->editable) {
    CRUCIBLE_ASSIGN(const auto files, context.repository->ListFiles(commit, path));
    for (const auto& [file, blob] : files)
      if (!foreign.contains(file)) listing += file + " " + blob + "\n";
  }
  return Sha256Hex(listing).substr(0, 16);
}

Result<std::map<std::string, std::set<std::string>>> KnobFilesOfCases(
    const BaselineContext& context, const std::string& commit) {
  std::map<std::string, std::set<std::string>> files;
  const Target& target = *context.target;
  if (target.knobs_file.empty()) return files;
  const auto text = context.repository->ReadFileAt(commit, target.knobs_file);
  if (!text) return files;
  CRUCIBLE_ASSIGN(const KnobSpace space, ParseKnobs(*text, target.knobs_file));
  for (const Knob& knob : space.knobs)
    for (const TargetCase& item : target.cases)
      if (knob.cases.empty() ||
          std::find(knob.cases.begin(), knob.cases.end(), item.name) != knob.cases.end())
        files[item.name].insert(knob.file);
  return files;
}

Result<> MeasureMain(const BaselineContext& context, Store* store, const std::string& commit,
                     const std::string& key, const std::string& campaign, MeasureFor purpose) {
  CRUCIBLE_ASSIGN(const Arm arm, BaselineArm(context, commit));
  JudgeRequest request;
  request.op = "measure";
  request.target = context.target;
  request.candidate = arm;
  request.peers = !context.target->peers.empty();
  request.report = context.workspace->home / "measurements" / (key + ".json");
  request.log = context.workspace->home / "measurements" / (key + ".log");
  request.environment = context.workspace->Environment("", context.run_nonce);
  request.stop = context.stop;
  CRUCIBLE_ASSIGN(const JudgeReport report, RunJudge(*context.workspace, request));
  if (!report.pass)
    return Fail(
        ErrorKind::kUnavailable, "measure main of", context.target->name,
        report.first_failed_check.empty() ? report.reason : report.first_failed_check,
        "main itself must pass its check before a campaign starts; see " + request.log.string());

  const std::int64_t now_ms = SystemClock().UnixMs();
  Entry entry;
  entry.key = key;
  entry.kind = EntryKind::kNote;
  entry.time_ms = now_ms;
  entry.target = context.target->name;
  entry.campaign = campaign;
  entry.author = "orchestrator";
  entry.mechanism = "measurement of main";
  entry.cases = report.cases;
  entry.conditions = report.conditions;
  entry.evidence = report.evidence;
  entry.evidence.push_back({"commit", commit, ""});
  std::vector<std::string> numbers;
  std::vector<Point> points;
  const std::string conditions = json(report.conditions).dump();
  CRUCIBLE_ASSIGN(const std::vector<Point> old, store->Points(context.target->name));
  for (const CaseResult& item : report.cases) {
    if (!item.after_us) continue;
    numbers.push_back(fmt::format("{} {}", item.name, FormatMicroseconds(*item.after_us)));
    if (purpose == MeasureFor::kBesidePeers) continue;
    const std::string record = RecordCommit(old, item.name);
    if (!record.empty() && !IsAnotherKernel(context, record, commit, item.name)) continue;
    points.push_back({context.target->name, item.name, "main", commit, now_ms, *item.after_us,
                      std::nullopt, std::nullopt, record.empty(), key, conditions});
  }
  for (const PeerTime& peer : report.peers)
    points.push_back({context.target->name, peer.case_name, "peer", peer.peer, now_ms,
                      peer.median_us, peer.low_us, peer.high_us, false, key, conditions});
  const std::vector<Entry> floors = FloorEntries(*context.target, campaign, now_ms);
  for (const TargetCase& item : context.target->cases)
    if (item.floor_us && purpose == MeasureFor::kFirstPoints)
      points.push_back({context.target->name, item.name, "floor", item.floor_why, now_ms,
                        *item.floor_us, std::nullopt, std::nullopt, false,
                        FloorKey(context.target->name, item), "{}"});
  entry.summary = fmt::format("{}: {}", commit.substr(0, 12), fmt::join(numbers, ", "));
  return store->InTransaction([&]() -> Result<> {
    CRUCIBLE_TRY(store->AddEntry(entry));
    for (const Entry& floor : floors) CRUCIBLE_TRY(store->AddEntry(floor));
    CRUCIBLE_TRY(store->AddPoints(points));
    return store->SetMeta(ConditionsName(context.target->name), conditions);
  });
}

Result<std::map<std::string, std::string>> KnownConditions(Store* store,
                                                           const std::string& target) {
  CRUCIBLE_ASSIGN(const std::string text, store->Meta(ConditionsName(target)));
  if (text.empty()) return std::map<std::string, std::string>();
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object()) return std::map<std::string, std::string>();
  return object.get<std::map<std::string, std::string>>();
}

}  // namespace crucible
