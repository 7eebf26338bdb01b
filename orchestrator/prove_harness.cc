#include "orchestrator/prove_harness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include "base/counted.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "orchestrator/judge.h"

namespace crucible {
namespace {

using nlohmann::json;

std::string MetaName(const Target& target) { return "proof:" + target.name; }

std::filesystem::path ReportFile(const BaselineContext& context) {
  return context.workspace->home / "measurements" / ("exploits." + context.target->name + ".json");
}

// The command as the target writes it (folders differ from commit to commit and say nothing about
// the harness), and a hash of every file it names: program, script, cheating library.
Result<std::string> FilesOf(const std::vector<std::string>& command, const Arm& arm) {
  CRUCIBLE_ASSIGN(const std::vector<std::string> words, Substitute(command, arm));
  std::string listing;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::error_code ignored;
    listing += command[i] + " ";
    if (!std::filesystem::is_regular_file(words[i], ignored)) continue;
    CRUCIBLE_ASSIGN(const std::string hash, Sha256HexOfFile(words[i]));
    listing += hash + " ";
  }
  return listing + "\n";
}

// What a proof depends on. The candidate's own build is left out: the cheats are what is judged.
Result<std::string> ProofKey(const BaselineContext& context, const Arm& arm) {
  const Target& target = *context.target;
  CRUCIBLE_ASSIGN(std::string all, Sha256HexOfFile(context.workspace->programs / "crucible_check"));
  CRUCIBLE_ASSIGN(const std::string file, Sha256HexOfFile(target.file));
  all += " " + file + "\n";
  Arm fixed = arm;
  fixed.build = "/nonexistent";  // the candidate's own files are not part of a proof
  CRUCIBLE_ASSIGN(const std::string harness, FilesOf(target.harness, fixed));
  CRUCIBLE_ASSIGN(const std::string parts, FilesOf(target.harness_parts, fixed));
  all += harness + parts;
  for (const TargetExploit& exploit : target.exploits) {
    CRUCIBLE_ASSIGN(const std::string files, FilesOf(exploit.command, fixed));
    all += files;
  }
  const auto compiler = RunCaptured({.argv = {"c++", "--version"}}, std::chrono::seconds(10));
  if (compiler) all += compiler->out.substr(0, compiler->out.find('\n')) + "\n";
  utsname system{};
  ::uname(&system);
  return Sha256Hex(all + system.release);
}

Result<HarnessProof> RunSuite(const BaselineContext& context, const Arm& arm) {
  JudgeRequest request;
  request.op = "exploits";
  request.target = context.target;
  request.candidate = arm;
  request.report = ReportFile(context);
  request.log = std::filesystem::path(request.report).replace_extension(".log");
  request.environment = context.workspace->Environment("", context.run_nonce);
  request.stop = context.stop;
  CRUCIBLE_ASSIGN(const JudgeReport report, RunJudge(*context.workspace, request));
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(request.report));
  const json answer = json::parse(text, nullptr, false);
  HarnessProof proof{.holds = report.pass, .reason = report.reason};
  for (const TargetExploit& exploit : context.target->exploits) {
    ExploitRow row{exploit.name, fmt::format("{}", fmt::join(exploit.expects, " … ")), "not run",
                   false};
    for (const json& check : answer.value("checks", json::array())) {
      if (check.value("case", "") != exploit.name) continue;
      row.seen = check.value("reason", "");
      row.caught = check.value("pass", false);
      break;
    }
    proof.rows.push_back(std::move(row));
  }
  return proof;
}

}  // namespace

Result<HarnessProof> RunExploitSuite(const BaselineContext& context, const std::string& commit) {
  CRUCIBLE_ASSIGN(const Arm arm, BaselineArm(context, commit));
  return RunSuite(context, arm);
}

Result<> ProveHarness(const BaselineContext& context, Store* store, const std::string& commit,
                      const std::function<void(const std::string&)>& tell) {
  const Target& target = *context.target;
  if (target.exploits.empty()) {
    tell(fmt::format("target {} names no cheating kernels: its harness is taken as it is",
                     target.name));
    return {};
  }
  CRUCIBLE_ASSIGN(const Arm arm, BaselineArm(context, commit));
  CRUCIBLE_ASSIGN(const std::string key, ProofKey(context, arm));
  CRUCIBLE_ASSIGN(const std::string known, store->Meta(MetaName(target)));
  if (known == key) {
    tell(fmt::format("the harness of {} is proven: the same one caught {} before", target.name,
                     Counted(target.exploits.size(), "cheating kernel")));
    return {};
  }
  CRUCIBLE_ASSIGN(const HarnessProof proof, RunSuite(context, arm));
  if (!proof.holds)
    return Fail(ErrorKind::kUnavailable, "trust the harness of", target.name, proof.reason,
                "what lets a cheat through judges nothing: see `crucible doctor --exploits` and " +
                    ReportFile(context).string());
  CRUCIBLE_TRY(store->SetMeta(MetaName(target), key));
  tell(fmt::format("the harness of {} caught {} of {}, each for its own reason", target.name,
                   proof.rows.size(), Counted(proof.rows.size(), "cheating kernel")));
  return {};
}

}  // namespace crucible
