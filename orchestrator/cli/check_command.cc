// check_command.cc: crucible check and crucible compare: the judge, for people.
//
// The same program, protocol and gates as an agent's and the merge's; this only builds the arms
// (outside the lock unless the target asks otherwise) and prints the answer as a table.
#include <fmt/format.h>
#include <fmt/ostream.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <ostream>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "checks/report.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/log_command.h"
#include "orchestrator/cli/place.h"
#include "orchestrator/judge.h"
#include "results_log/store.h"

namespace crucible {
namespace {

constexpr int kJudgeWithoutVerdict = 3;

constexpr int kAnswerPollMs = 200;

volatile sig_atomic_t g_interrupted = 0;
void OnInterrupt(int) { g_interrupted = 1; }

// Runs the judge with its progress on this terminal and prints its answer. Its own files are in
// `folder`, so that they go with it also when the judge is ended.
Result<int> Judge(const Place& place, const std::string& folder, std::vector<std::string> words,
                  bool as_json, std::ostream& out) {
  std::vector<std::string> argv = RunnerPrefix(place.workspace, place.target.device,
                                               place.target.limits.job_limit_ms, "normal");
  argv.push_back((place.workspace.programs / "crucible_check").string());
  argv.insert(argv.end(), words.begin(), words.end());
  SubprocessSpec spec{.argv = argv, .environment = {{"TMPDIR", folder}}, .out = Stdio::kPipe};
  CRUCIBLE_ASSIGN(Subprocess child, Subprocess::Start(spec));
  UniqueFd answer = child.TakeStdout();
  std::string text;
  char buffer[1 << 16];
  bool told = false;
  for (;;) {
    if (g_interrupted != 0 && !told) {
      told = true;
      child.Signal(SIGTERM);
    }
    pollfd item{answer.get(), POLLIN, 0};
    if (::poll(&item, 1, kAnswerPollMs) <= 0) continue;
    const ssize_t count = ::read(answer.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  CRUCIBLE_ASSIGN(const ExitStatus status, child.Wait());
  if (told)
    return Fail(ErrorKind::kInterrupted, "judge", words.front(), "interrupted before its verdict",
                "run the command again");
  if (text.empty())
    return Fail(ErrorKind::kUnavailable, "judge", words.front(),
                fmt::format("it ended with {} and no answer", status.Describe()),
                "read its lines above");
  if (as_json)
    out << text;
  else
    out << RenderReport(nlohmann::json::parse(text, nullptr, false)) << "\n";
  // The judge ends with 3 where the machine kept it from a verdict; for a person that is a failure.
  const int code = status.ShellCode();
  return code == kJudgeWithoutVerdict ? 1 : code;
}

// The arms as files for the judge, in a folder of this call alone: another one may be waiting for
// the device with its own.
class ArmFiles {
 public:
  static Result<ArmFiles> Make() {
    // From here on an interrupt ends the job, and this call takes its files along.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, OnInterrupt);
    ArmFiles files;
    CRUCIBLE_ASSIGN(files.folder_, MakeTemporaryDirectory("crucible-arms"));
    return files;
  }
  ArmFiles(ArmFiles&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  ~ArmFiles() {
    if (!folder_.empty()) (void)RemoveTree(folder_);
  }
  std::string folder() const { return folder_.string(); }
  Result<std::string> Write(const Arm& arm, const std::string& role) const {
    const std::filesystem::path file = folder_ / (role + ".arm.json");
    CRUCIBLE_TRY(WriteFileAtomically(file, JsonText(ToJson(arm), 2) + "\n"));
    return file.string();
  }

 private:
  ArmFiles() = default;
  std::filesystem::path folder_;
};

struct Options {
  std::string target, branch, baseline, candidate = ".", rule = "claim";
  std::vector<std::string> cases;
  bool quick = false, as_json = false;
};

constexpr char kTargetHelp[] =
    "Target name or file (default: the log's only target that has a file here, else eigh_cpu)";

// What --target says, else the target that this repository's log is of.
std::string TargetOr(const std::string& given) {
  if (!given.empty()) return given;
  if (const auto log = LogFile(""))
    if (auto store = Store::OpenReadOnly(*log))
      if (const auto only = OnlyTarget(&*store, "", {}); only && !only->empty())
        if (FindTargetFile(*only)) return *only;
  return "eigh_cpu";
}

Result<int> RunCheck(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Place place, OpenPlace(TargetOr(options.target), options.branch));
  CRUCIBLE_TRY(SelectCases(place.target, options.cases));
  CRUCIBLE_ASSIGN(const Arm candidate, ArmOf(&place, options.candidate));
  CRUCIBLE_ASSIGN(const ArmFiles files, ArmFiles::Make());
  CRUCIBLE_ASSIGN(const std::string file, files.Write(candidate, "candidate"));
  return Judge(place, files.folder(),
               {"check", "--target", place.target.file.string(), "--candidate", file, "--level",
                options.quick ? "quick" : "full"},
               options.as_json, out);
}

Result<int> RunCompare(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(Place place, OpenPlace(TargetOr(options.target), options.branch));
  CRUCIBLE_ASSIGN(const std::vector<TargetCase> cases, SelectCases(place.target, options.cases));
  CRUCIBLE_ASSIGN(const Arm baseline, ArmOf(&place, options.baseline));
  CRUCIBLE_ASSIGN(const Arm candidate, ArmOf(&place, options.candidate));
  CRUCIBLE_ASSIGN(const ArmFiles files, ArmFiles::Make());
  CRUCIBLE_ASSIGN(const std::string first, files.Write(baseline, "baseline"));
  CRUCIBLE_ASSIGN(const std::string second, files.Write(candidate, "candidate"));
  std::vector<std::string> names;
  for (const TargetCase& item : cases) names.push_back(item.name);
  return Judge(
      place, files.folder(),
      {"compare", "--target", place.target.file.string(), "--baseline", first, "--candidate",
       second, "--cases", fmt::format("{}", fmt::join(names, ",")), "--rule", options.rule},
      options.as_json, out);
}

int Finish(const Result<int>& result, std::ostream& err) {
  return result ? *result : Report(result.error(), err);
}

}  // namespace

int CheckCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Build a checkout and run the shared check on it", "crucible check");
  Options options;
  app.add_option("WHAT", options.candidate,
                 "Folder, revision or built library (.so); default: this folder");
  app.add_option("--target", options.target, kTargetHelp);
  AddBranchOption(&app, &options.branch);
  app.add_flag("--quick", options.quick, "The short list that runs before each measurement");
  app.add_flag("--json", options.as_json, "Print the judge's answer as JSON");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  return Finish(RunCheck(options, out), err);
}

int CompareCommand(const Words& words, std::ostream& out, std::ostream& err) {
  CLI::App app("Build two checkouts and compare them, paired", "crucible compare");
  Options options;
  app.add_option("A", options.baseline, "Baseline: folder, revision or built library (.so)")
      ->required();
  app.add_option("B", options.candidate, "Candidate: folder, revision or built library (.so)")
      ->required();
  app.add_option("--case", options.cases, "Case (repeatable; default: all)");
  app.add_option("--rule", options.rule, "claim, screen or confirm")
      ->check(CLI::IsMember({"claim", "screen", "confirm"}))
      ->capture_default_str();
  app.add_option("--target", options.target, kTargetHelp);
  AddBranchOption(&app, &options.branch);
  app.add_flag("--json", options.as_json, "Print the judge's answer as JSON");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  return Finish(RunCompare(options, out), err);
}

}  // namespace crucible
