// crucible_check: the one program that judges. Prints a JSON object (docs/target_protocol.md) on
// stdout, progress on stderr. Takes no lock: call it through gpu_run.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/command_line.h"
#include "base/files.h"
#include "base/json.h"
#include "base/output.h"
#include "checks/judge/judge.h"
#include "checks/report.h"

namespace crucible {
namespace {

struct Words {
  std::string target, baseline, candidate, level = "full", rule = "claim";
  std::vector<std::string> cases, claims;
  std::uint64_t seed = 0;
  std::string time_limit, case_limit;
  double budget_ms = 0;
  bool peers = false, no_quick_check = false, table = false;
};

Result<Arm> ReadArm(const std::string& file) {
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(file));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  auto arm = ArmFromJson(json);
  if (!arm) return Within(file, arm.error());
  return arm;
}

Result<judge::Request> MakeRequest(const Words& words, bool seeded) {
  judge::Request request;
  CRUCIBLE_ASSIGN(request.target, LoadTarget(words.target));
  CRUCIBLE_ASSIGN(request.candidate, ReadArm(words.candidate));
  if (!words.baseline.empty()) {
    CRUCIBLE_ASSIGN(request.baseline, ReadArm(words.baseline));
  }
  request.cases = words.cases;
  request.claims = words.claims;
  request.level = words.level == "quick" ? CheckLevel::kQuick : CheckLevel::kFull;
  request.rule = words.rule;
  request.with_peers = words.peers;
  request.quick_check = !words.no_quick_check;
  if (seeded) request.seed = words.seed;
  if (!words.time_limit.empty()) {
    CRUCIBLE_ASSIGN(request.time_limit_ms, ParseDuration(words.time_limit));
  }
  if (!words.case_limit.empty()) {
    CRUCIBLE_ASSIGN(request.case_ms, ParseDuration(words.case_limit));
  }
  if (words.budget_ms > 0) request.slot_ms = words.budget_ms;
  request.progress = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return request;
}

Result<judge::Report> Run(const std::string& op, const judge::Request& request) {
  if (op == "check") return judge::RunCheck(request);
  if (op == "compare") return judge::RunCompare(request);
  if (op == "ratchet") return judge::RunRatchet(request);
  if (op == "gate") return judge::RunGate(request);
  if (op == "exploits") return judge::RunExploits(request);
  return judge::RunMeasure(request);
}

// A usage error ends with 2; any other one is the machine's: 3, and the JSON says what.
int EndWithError(const std::string& op, const Error& error) {
  std::fprintf(stderr, "crucible_check: %s\n", error.text.c_str());
  if (error.kind == ErrorKind::kUsage || error.kind == ErrorKind::kNotFound) return 2;
  judge::Report report{.op = op, .reason = error.text, .error = error.text};
  std::printf("%s\n", judge::ToJson(report).dump().c_str());
  return 3;
}

int Main(int argc, char** argv) {
  CLI::App app("Checks and times kernels: the judge of agents, people and merges.",
               "crucible_check");
  app.require_subcommand(1);
  Words words;
  bool seeded = false;
  const auto add = [&](const char* name, const char* help) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("--target", words.target, "the target file")->required();
    sub->add_option("--candidate", words.candidate, "ARM.json of what is judged")->required();
    sub->add_option("--seed", words.seed, "of the inputs; default: secret, told at the end")
        ->each([&](const std::string&) { seeded = true; });
    sub->add_option("--time-limit", words.time_limit, "of the whole, e.g. 10m");
    sub->add_flag("--table", words.table, "a table for people instead of JSON");
    return sub;
  };
  const auto add_measured = [&](CLI::App* sub, bool paired) {
    sub->add_option("--budget-ms", words.budget_ms, "measured time of one slot")
        ->check(CLI::PositiveNumber);
    sub->add_option("--case-limit", words.case_limit, "time for one case, e.g. 25s");
    if (paired)
      sub->add_option("--baseline", words.baseline, "ARM.json to compare with")->required();
  };
  const auto add_cases = [&](CLI::App* sub) {
    sub->add_option("--cases", words.cases, "names, separated by commas; default: all")
        ->delimiter(',');
  };
  CLI::App* check = add("check", "run the checks on the candidate, all of them");
  check->add_option("--level", words.level)->check(CLI::IsMember({"quick", "full"}));
  add_cases(check);
  CLI::App* compare = add("compare", "is the candidate faster on these cases?");
  add_measured(compare, true);
  add_cases(compare);
  compare->add_option("--rule", words.rule)->check(CLI::IsMember({"claim", "screen", "confirm"}));
  CLI::App* ratchet = add("ratchet", "is no case slower than its limit?");
  add_measured(ratchet, true);
  add_cases(ratchet);
  CLI::App* gate = add("gate", "check, compare the claims, ratchet the rest: the merge's question");
  add_measured(gate, true);
  gate->add_option("--claims", words.claims, "cases said to be faster; none: ratchet all")
      ->delimiter(',');
  CLI::App* measure = add("measure", "absolute times of the cases");
  add_measured(measure, false);
  add_cases(measure);
  measure->add_flag("--peers", words.peers, "measure the target's peers beside it");
  add("exploits", "are the target's cheating kernels caught, each for its own reason?");
  for (CLI::App* sub : {compare, ratchet, measure})
    sub->add_flag("--no-quick-check", words.no_quick_check, "the candidate was checked already");
  int code = 0;
  if (!ParseWords(&app, argc, argv, &code)) return code;

  const std::string op = app.get_subcommands().front()->get_name();
  const auto request = MakeRequest(words, seeded);
  if (!request) return EndWithError(op, request.error());
  const auto report = Run(op, *request);
  if (!report) return EndWithError(op, report.error());
  nlohmann::json json = judge::ToJson(*report);
  // The device job this ran as: evidence that leads to its clocks and log.
  if (const char* job = std::getenv("CRUCIBLE_JOB_ID")) json["job"] = job;
  std::printf("%s\n", words.table ? RenderReport(json).c_str() : JsonText(json).c_str());
  return report->ExitCode();
}

}  // namespace
}  // namespace crucible

int main(int argc, char** argv) { return crucible::FinishOutput(crucible::Main(argc, argv)); }
