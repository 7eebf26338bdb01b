#include "orchestrator/cli/profile_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>
#include <sstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/place.h"
#include "orchestrator/judge.h"
#include "results_log/store.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kRequestFd = 3, kReplyFd = 4;

struct Options {
  std::string case_name, what = ".", target = "eigh_cpu", branch, kernel, entry;
  std::string clocks = "observe";
  int launches = 20;
  bool as_json = false;
};

struct Files {
  fs::path requests, replies, log, report, summary;
};

Files FilesIn(const fs::path& folder, const std::string& stem) {
  const auto file = [&](const char* ending) { return folder / (stem + ending); };
  return {file(".requests.jsonl"), file(".replies.jsonl"), file(".harness.log"), file(".ncu-rep"),
          file(".txt")};
}

// All that is asked of the harness, at once: nothing here depends on an answer, and a profiler
// between the two makes any talk slow.
Result<std::string> Requests(const TargetCase& item) {
  json params = json::parse(item.params, nullptr, false);
  if (!params.is_object())
    return Fail(ErrorKind::kInternal, "profile", item.name, "its params are no JSON object");
  params["name"] = item.name;
  std::string text;
  for (const json& request :
       {json{{"op", "hello"}, {"protocol", 1}},
        json{{"op", "prepare"}, {"case", params}, {"seed", 1}},
        json{{"op", "slot"}, {"budget_ms", 1}, {"min_calls", 1}, {"max_calls", 1}},
        json{{"op", "bye"}}})
    text += request.dump() + "\n";
  return text;
}

// The hello's conditions; kUnavailable when a reply says no or is missing.
Result<std::map<std::string, std::string>> ReadReplies(const Files& files) {
  std::map<std::string, std::string> conditions;
  std::istringstream lines(ReadFile(files.replies).value_or(""));
  const auto wrong = [&](const std::string& op, const std::string& cause) {
    return Fail(ErrorKind::kUnavailable, "profile: harness request", op, cause,
                "its output is in " + files.log.string());
  };
  for (const char* op : {"hello", "prepare", "slot"}) {
    std::string line;
    std::getline(lines, line);
    const json reply = json::parse(line, nullptr, false);
    if (!reply.is_object()) return wrong(op, "no reply");
    if (!reply.value("ok", false)) return wrong(op, reply.value("error", "it says no"));
    if (std::string_view(op) != "hello" || !reply.contains("conditions")) continue;
    for (const auto& [name, value] : reply["conditions"].items())
      conditions[name] = value.is_string() ? value.get<std::string>() : JsonText(value);
  }
  return conditions;
}

Result<UniqueFd> OpenFile(const fs::path& file, int flags) {
  UniqueFd fd(::open(file.c_str(), flags | O_CLOEXEC, 0644));
  if (fd.valid()) return fd;
  return Fail(ErrorKind::kIo, "open", file.string(), std::strerror(errno));
}

Result<> RunHarness(const Place& place, const Arm& arm, const TargetCase& item,
                    const Options& options, const Files& files) {
  CRUCIBLE_ASSIGN(const std::string requests, Requests(item));
  CRUCIBLE_TRY(WriteFileAtomically(files.requests, requests));
  CRUCIBLE_ASSIGN(const UniqueFd input, OpenFile(files.requests, O_RDONLY));
  CRUCIBLE_ASSIGN(const UniqueFd output, OpenFile(files.replies, O_WRONLY | O_CREAT | O_TRUNC));
  CRUCIBLE_ASSIGN(const std::vector<std::string> harness, Substitute(place.target.harness, arm));
  std::vector<std::string> argv = RunnerPrefix(place.workspace, place.target.device,
                                               place.target.limits.job_limit_ms, "normal");
  argv.pop_back();  // its "--"
  argv.insert(argv.end(), {"--profile", files.report.string(), "--profile-launches",
                           std::to_string(options.launches), "--clocks", options.clocks});
  if (!options.kernel.empty()) argv.insert(argv.end(), {"--profile-kernel", options.kernel});
  argv.push_back("--");
  argv.insert(argv.end(), harness.begin(), harness.end());
  SubprocessSpec spec{.argv = argv,
                      .environment = {{"CRUCIBLE_REQUEST_FD", std::to_string(kRequestFd)},
                                      {"CRUCIBLE_REPLY_FD", std::to_string(kReplyFd)}},
                      .out = Stdio::kFile,
                      .log_path = files.log,
                      .descriptors = {{kRequestFd, input.get()}, {kReplyFd, output.get()}}};
  CRUCIBLE_ASSIGN(Subprocess child, Subprocess::Start(spec));
  CRUCIBLE_ASSIGN(const ExitStatus status, child.Wait());
  if (status.ok()) return {};
  return Fail(ErrorKind::kUnavailable, "profile", item.name,
              fmt::format("the job ended with {}", status.Describe()),
              "read the lines above and " + files.log.string());
}

Result<Evidence> EvidenceOf(const std::string& kind, const fs::path& file, const fs::path& home) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  return Evidence{kind, fs::relative(file, home).string(), Sha256Hex(text)};
}

// The first kernel's lines, short enough for a sentence.
std::string FirstLines(const std::string& summary) {
  std::istringstream lines(summary);
  std::string line, text;
  for (int i = 0; i < 5 && std::getline(lines, line); ++i) {
    line.erase(0, line.find_first_not_of(' '));
    text += (text.empty() ? "" : "; ") + line;
  }
  return text;
}

Result<int> Profile(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Place place, OpenPlace(options.target, options.branch));
  CRUCIBLE_ASSIGN(const std::vector<TargetCase> cases,
                  SelectCases(place.target, {options.case_name}));
  CRUCIBLE_ASSIGN(Store store, Store::Open(place.workspace.LogFile()));
  Entry entry;
  if (!options.entry.empty()) {
    CRUCIBLE_ASSIGN(const Entry profiled, store.FindEntry(options.entry));
    entry.campaign = profiled.campaign;
    entry.mission = profiled.mission;
    entry.reason = fmt::format("profiles e{} ({}). ", profiled.id, profiled.key);
  }
  CRUCIBLE_ASSIGN(const Arm arm, ArmOf(&place, options.what));
  const fs::path folder = place.workspace.home / "profiles";
  CRUCIBLE_TRY(MakeDirectories(folder));
  entry.time_ms = SystemClock().UnixMs();
  const Files files = FilesIn(folder, fmt::format("{}-{}", options.case_name, entry.time_ms));
  CRUCIBLE_TRY(RunHarness(place, arm, cases[0], options, files));
  CRUCIBLE_ASSIGN(entry.conditions, ReadReplies(files));
  CRUCIBLE_ASSIGN(const std::string summary, ReadFile(files.summary));

  entry.kind = EntryKind::kNote;
  entry.target = place.target.name;
  entry.author = UserAuthor();
  entry.mechanism = "profile";
  entry.summary = FirstLines(summary);
  entry.reason += fmt::format("built from {}, source hash {}", options.what, arm.source_hash);
  CaseResult measured;
  measured.name = options.case_name;
  measured.role = "measure";
  entry.cases.push_back(measured);
  for (const auto& [kind, file] : {std::pair{"profile", files.report}, {"report", files.summary}}) {
    CRUCIBLE_ASSIGN(Evidence evidence, EvidenceOf(kind, file, place.workspace.home));
    entry.evidence.push_back(std::move(evidence));
  }
  CRUCIBLE_ASSIGN(const std::int64_t id, store.AddEntry(entry));
  if (options.as_json)
    out << JsonText({{"entry", fmt::format("e{}", id)},
                     {"report", files.report.string()},
                     {"summary", summary}},
                    2)
        << "\n";
  else
    fmt::print(out, "{}e{}: {}\n", summary, id, files.report.string());
  return 0;
}

}  // namespace

int ProfileCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Build a checkout and measure a case's kernels with Nsight Compute",
               "crucible profile");
  Options options;
  app.add_option("CASE", options.case_name, "A case of the target")->required();
  app.add_option("WHAT", options.what, "Folder or revision (default: this folder)");
  app.add_option("--target", options.target, "Target name or file")->capture_default_str();
  AddBranchOption(&app, &options.branch);
  app.add_option("--kernel", options.kernel,
                 "Only kernels whose name matches (regular expression)");
  app.add_option("--launches", options.launches, "Measure at most so many launches")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--clocks", options.clocks, "gpu_run's: observe, pin or off")
      ->capture_default_str()
      ->check(CLI::IsMember({"observe", "pin", "off"}));
  app.add_option("--entry", options.entry, "The log entry that this profile explains");
  app.add_flag("--json", options.as_json, "Print the entry, the report's path and the summary");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  const Result<int> done = Profile(options, out);
  return done ? *done : Report(done.error(), err);
}

}  // namespace crucible
