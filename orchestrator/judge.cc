#include "orchestrator/judge.h"

#include <fmt/format.h>

#include <cmath>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "checks/report.h"

namespace crucible {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAnswerBytes = 16u << 20;

struct TemporaryFolder {
  std::filesystem::path path;
  ~TemporaryFolder() {
    if (!path.empty()) (void)RemoveTree(path);
  }
};

std::string TextOf(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> NumberOf(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

CaseResult ReadCase(const json& item) {
  CaseResult result;
  result.name = TextOf(item, "case");
  result.role = TextOf(item, "role");
  result.verdict = TextOf(item, "verdict");
  result.before_us = NumberOf(item, "before_us");
  result.after_us = NumberOf(item, "after_us");
  result.ratio = NumberOf(item, "ratio");
  result.ratio_low = NumberOf(item, "ratio_low");
  result.ratio_high = NumberOf(item, "ratio_high");
  if (const auto rounds = NumberOf(item, "rounds"))
    result.rounds = static_cast<std::int64_t>(*rounds);
  return result;
}

void ReadChecks(const json& checks, JudgeReport* report) {
  for (const json& item : checks) {
    if (!item.value("pass", false) && report->first_failed_check.empty())
      report->first_failed_check =
          fmt::format("{}: {}", TextOf(item, "case"), TextOf(item, "reason"));
  }
}

std::string Relative(const Workspace& workspace, const std::filesystem::path& file) {
  return file.lexically_relative(workspace.home).string();
}

Result<JudgeReport> Parse(const Workspace& workspace, const std::filesystem::path& file,
                          const std::string& text) {
  const json object = json::parse(text, nullptr, false);
  if (!object.is_object())
    return Fail(ErrorKind::kInternal, "read the judge's answer", file.string(),
                "it is no JSON object", "read the log beside it");
  if (const std::string error = TextOf(object, "error"); !error.empty())
    return Fail(ErrorKind::kUnavailable, "judge", TextOf(object, "op"), error,
                "read the log beside " + file.string());
  JudgeReport report;
  report.pass = object.value("pass", false);
  report.verdict = TextOf(object, "verdict");
  report.reason = TextOf(object, "reason");
  report.job = TextOf(object, "job");
  report.wall_ms = object.value("wall_ms", std::int64_t{0});
  if (const auto found = object.find("conditions"); found != object.end() && found->is_object())
    for (const auto& [name, value] : found->items())
      report.conditions[name] = value.is_string() ? value.get<std::string>() : JsonText(value);
  if (const auto found = object.find("cases"); found != object.end())
    for (const json& item : *found) report.cases.push_back(ReadCase(item));
  if (const auto found = object.find("checks"); found != object.end()) ReadChecks(*found, &report);
  for (const auto& [gate, worst] : WorstMargins(object)) {
    Margin margin(worst.value);
    margin.check = worst.check;
    margin.matrix = worst.matrix;
    margin.seed = static_cast<std::int64_t>(worst.seed);
    report.margins[gate] = margin;
  }
  if (const auto found = object.find("peers"); found != object.end())
    for (const json& item : *found)
      if (const auto median = NumberOf(item, "median_us"))
        report.peers.push_back({TextOf(item, "peer"), TextOf(item, "case"), *median,
                                NumberOf(item, "low_us").value_or(*median),
                                NumberOf(item, "high_us").value_or(*median)});
  report.evidence.push_back({"report", Relative(workspace, file), Sha256Hex(text)});
  if (!report.job.empty()) report.evidence.push_back({"job", report.job, ""});
  return report;
}

}  // namespace

std::optional<double> JudgeReport::Ratio(const std::vector<std::string>& names) const {
  double sum = 0;
  int count = 0;
  for (const std::string& name : names) {
    for (const CaseResult& result : cases) {
      if (result.name != name || !result.ratio) continue;
      sum += std::log(*result.ratio);
      ++count;
      break;
    }
  }
  if (count == 0) return std::nullopt;
  return std::exp(sum / count);
}

EntryKind KindOf(const JudgeReport& report, const std::string& rule,
                 const std::vector<std::string>& cases) {
  if (report.pass) return rule == "screen" ? EntryKind::kInconclusive : EntryKind::kWin;
  if (report.verdict == "inconclusive" || report.verdict == "refused" ||
      report.verdict == "flagged")
    return EntryKind::kInconclusive;
  if (report.verdict == "crashed") return EntryKind::kCrashed;
  if (report.verdict == "check_failed") return EntryKind::kRefused;
  if (report.verdict == "rejected" && report.Ratio(cases).value_or(1) > 1) return EntryKind::kLoss;
  return EntryKind::kNull;
}

std::vector<std::string> RunnerPrefix(const Workspace& workspace, const std::string& device,
                                      std::int64_t limit_ms, const std::string& priority) {
  return {(workspace.programs / "gpu_run").string(),
          "--device",
          device,
          "--limit",
          fmt::format("{}ms", limit_ms),
          "--queue-limit",
          "2h",
          "--priority",
          priority,
          "--"};
}

Result<JudgeReport> RunJudge(const Workspace& workspace, const JudgeRequest& request) {
  CRUCIBLE_CHECK(request.target != nullptr, "a judge needs a target");
  const std::filesystem::path folder = request.report.parent_path();
  CRUCIBLE_TRY(MakeDirectories(folder));
  const std::string stem = request.report.stem().string();
  std::vector<std::string> words = RunnerPrefix(
      workspace, request.target->device, request.target->limits.job_limit_ms, request.priority);
  words.insert(words.end(), {(workspace.programs / "crucible_check").string(), request.op,
                             "--target", request.target->file.string()});
  const auto add_arm = [&](const char* option, const Arm& arm) -> Result<> {
    const std::filesystem::path file = folder / (stem + "." + (option + 2) + ".arm.json");
    CRUCIBLE_TRY(WriteFileAtomically(file, JsonText(ToJson(arm), 2) + "\n"));
    words.insert(words.end(), {option, file.string()});
    return {};
  };
  if (request.baseline) CRUCIBLE_TRY(add_arm("--baseline", *request.baseline));
  CRUCIBLE_TRY(add_arm("--candidate", request.candidate));
  if (!request.cases.empty())
    words.insert(words.end(), {request.op == "gate" ? "--claims" : "--cases",
                               fmt::format("{}", fmt::join(request.cases, ","))});
  if (!request.rule.empty()) words.insert(words.end(), {"--rule", request.rule});
  if (!request.level.empty()) words.insert(words.end(), {"--level", request.level});
  if (request.peers) words.push_back("--peers");
  if (request.checked_already) words.push_back("--no-quick-check");

  SubprocessSpec spec{.argv = words, .environment = request.environment};
  TemporaryFolder own;  // of a judge that may be ended before it has tidied up
  if (request.stop) {
    CRUCIBLE_ASSIGN(own.path, MakeTemporaryDirectory("crucible-judge"));
    spec.environment["TMPDIR"] = own.path.string();
  }
  CRUCIBLE_ASSIGN(const Captured run,
                  RunCaptured(std::move(spec), std::nullopt, {}, kMostAnswerBytes, request.stop));
  if (!request.log.empty()) CRUCIBLE_TRY(AppendLine(request.log, run.err));
  if (run.stopped)
    return Fail(ErrorKind::kInterrupted, "judge", request.op, "it was stopped before its verdict",
                "run the command again");
  const int code = run.status.ShellCode();
  if (code == 124)
    return Fail(ErrorKind::kTimeout, "judge", request.op, "the job ran past its limit",
                "see " + request.log.string());
  if (run.status.signal != 0 || (run.out.empty() && code != 0))
    return Fail(ErrorKind::kUnavailable, "judge", request.op,
                fmt::format("it ended with {} and no answer", run.status.Describe()),
                "see " + request.log.string());
  CRUCIBLE_TRY(WriteFileAtomically(request.report, run.out));
  return Parse(workspace, request.report, run.out);
}

Result<JudgeReport> ReadJudgeReport(const Workspace& workspace, const std::filesystem::path& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  return Parse(workspace, file, text);
}

}  // namespace crucible
