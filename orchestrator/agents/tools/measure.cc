#include "orchestrator/agents/tools/measure.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "orchestrator/agents/case_numbers.h"
#include "orchestrator/agents/tools/stop_watch.h"
#include "orchestrator/build_arm.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::int64_t kDiffMs = 20'000;

fs::path FreeSlot(const Session& session) {
  return session.Folder() / fmt::format("build-{}", 1 - session.state.held_slot);
}

// What the candidate changed against what is held, for a person to read; the log's evidence.
std::optional<Evidence> KeepDiff(const Session& session, const std::string& stem) {
  fs::path held = session.Folder() / "held";
  if (session.state.held.source_hash == session.order().baseline.source_hash)
    held = session.order().baseline.source;
  std::string text;
  for (const std::string& path : session.target().editable) {
    SubprocessSpec spec;
    spec.argv = {"diff", "-ruN", "--no-dereference", (held / path).string(),
                 (session.order().worktree / path).string()};
    const auto run = RunCaptured(std::move(spec), std::chrono::milliseconds(kDiffMs));
    if (!run || run->status.ShellCode() > 1) return std::nullopt;
    text += run->out;
  }
  const fs::path file = session.Folder() / "reports" / (stem + ".diff");
  if (!WriteFileAtomically(file, text)) return std::nullopt;
  return Evidence{"file", file.lexically_relative(session.order().workspace.home).string(),
                  Sha256Hex(text)};
}

// The entry of a measurement, without the agent's words.
Entry Measured(const Session& session, const std::string& tree, const std::string& against,
               const std::vector<std::string>& cases, const std::string& stem) {
  Entry entry;
  entry.time_ms = SystemClock().UnixMs();
  entry.target = session.target().name;
  entry.campaign = session.order().campaign;
  entry.mission = session.order().id;
  entry.author = session.context.author;
  entry.flavour = session.order().flavour;
  entry.change = json{{"tree", tree}, {"against", against}}.dump();
  entry.conditions = session.order().now;
  for (const std::string& name : cases)
    entry.cases.push_back({.name = name, .role = "claim", .verdict = "not_measured"});
  if (const auto diff = KeepDiff(session, stem)) entry.evidence.push_back(*diff);
  entry.evidence.push_back({"base_commit", session.order().base_commit, ""});
  return entry;
}

void AddReport(const JudgeReport& report, Entry* entry) {
  for (const auto& [name, value] : report.conditions) entry->conditions[name] = value;
  if (!report.cases.empty()) entry->cases = report.cases;
  entry->evidence.insert(entry->evidence.begin(), report.evidence.begin(), report.evidence.end());
  entry->margins = report.margins;
  entry->summary = CaseNumbers(report);
  entry->reason = report.reason;
  if (!report.first_failed_check.empty()) {
    entry->summary = "wrong result";
    entry->reason = report.first_failed_check;
  }
}

Result<> Pend(Session* session, Entry entry) {
  session->state.pending = std::move(entry);
  session->state.pending_known.clear();
  return session->Save();
}

BuildRequest RequestFor(Session* session) {
  const MissionOrder& order = session->order();
  BuildRequest request;
  request.target = &session->target();
  request.arm.name = fmt::format("{}.{}", order.id, session->state.judged + 1);
  request.arm.source = order.worktree;
  request.arm.build = FreeSlot(*session);
  request.arm.main = order.baseline.main;
  request.programs = order.workspace.programs;
  request.log = session->Folder() / "build.log";
  request.environment = session->Environment();
  if (session->target().build_on_device)
    request.runner = RunnerPrefix(order.workspace, session->target().device,
                                  session->target().build_limit_ms, "normal");
  return request;
}

// A build runs what the agent wrote, so it runs in a sandbox of its own: the build folder is what
// it may write, the sources it can only read. Between builds nothing of the agent's reaches that
// folder.
Result<> PutInSandbox(const ToolContext& context, BuildRequest* request) {
  if (!context.sandbox) return {};
  CRUCIBLE_CHECK(context.enter_sandbox != nullptr, "a sandbox comes with the way into it");
  CRUCIBLE_TRY(MakeDirectories(request->arm.build));
  SandboxSpec sandbox = *context.sandbox;
  sandbox.worktree = request->arm.build;
  sandbox.scratch.clear();
  sandbox.broker_socket.clear();
  sandbox.readable.push_back(request->arm.source);
  sandbox.readable.push_back(request->arm.main);
  SubprocessSpec probe;
  probe.argv = {"true"};
  CRUCIBLE_ASSIGN(const SubprocessSpec inside, context.enter_sandbox(sandbox, probe));
  CRUCIBLE_CHECK(
      inside.argv.size() > 1 && inside.argv.back() == "true" && inside.descriptors.empty(),
      "a sandbox without git is words in front of a command");
  request->runner.insert(request->runner.end(), inside.argv.begin(), inside.argv.end() - 1);
  // A target's commands start in the sources, inside as outside.
  request->runner.insert(request->runner.end(), {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"",
                                                 request->arm.source.string()});
  return {};
}

// The judgement of `request`, ended early when the mission is.
Result<JudgeReport> Judge(Session* session, JudgeRequest request, const std::string& what) {
  const std::string stem = fmt::format("{:03}-{}", ++session->state.judged, what);
  CRUCIBLE_TRY(session->Save());
  request.target = &session->target();
  request.report = session->Folder() / "reports" / (stem + ".json");
  request.log = session->Folder() / "judge.log";
  request.environment = session->Environment();
  StopWatch watch([session] { return session->Interrupted() || session->OutOfTime(); });
  auto report = RunJudge(session->order().workspace, request);
  if (!report && watch.stopped())
    return Fail(ErrorKind::kInterrupted, what, session->order().id, "it was ended with the mission",
                "report");
  return report;
}

bool ChangedMeanwhile(const Session& session, const std::string& tree) {
  const auto now = session.Tree();
  return !now || *now != tree;
}

}  // namespace

Result<Arm> BuildWorktree(Session* session, bool* built_now) {
  CRUCIBLE_TRY(session->NothingForeignChanged());
  CRUCIBLE_ASSIGN(const std::string tree, session->Tree());
  if (built_now != nullptr) *built_now = false;
  if (session->state.built && session->state.built->source_hash == tree)
    return *session->state.built;
  session->state.built.reset();  // half a build is none
  CRUCIBLE_TRY(session->Save());
  BuildRequest request = RequestFor(session);
  CRUCIBLE_TRY(PutInSandbox(session->context, &request));
  StopWatch watch([session] { return session->Interrupted() || session->OutOfTime(); });
  auto built = BuildArm(request);
  if (!built && watch.stopped())
    return Fail(ErrorKind::kInterrupted, "build", session->order().id,
                "it was ended with the mission", "report");
  if (built && ChangedMeanwhile(*session, tree))
    built = Fail(ErrorKind::kUnavailable, "build", session->order().id,
                 "the build itself changed the sources", "let it write to the build folder only");
  if (!built) {
    Entry entry = Measured(*session, tree, session->state.held.source_hash, session->order().cases,
                           fmt::format("{:03}-build", ++session->state.judged));
    entry.kind = EntryKind::kCrashed;
    entry.summary = "the build failed";
    entry.reason = built.error().text;
    CRUCIBLE_TRY(Pend(session, std::move(entry)));
    return built;
  }
  if (built_now != nullptr) *built_now = true;
  session->state.built = *built;
  CRUCIBLE_TRY(session->Save());
  return built;
}

Result<JudgeReport> Check(Session* session, const std::string& level) {
  CRUCIBLE_ASSIGN(const Arm arm, BuildWorktree(session));
  JudgeRequest request;
  request.op = "check";
  request.candidate = arm;
  request.level = level;
  CRUCIBLE_ASSIGN(const JudgeReport report, Judge(session, request, "check"));
  session->state.checked = TreeVerdict{arm.source_hash, "", level, report.verdict, report.pass};
  if (!report.pass) {
    Entry entry =
        Measured(*session, arm.source_hash, session->state.held.source_hash, session->order().cases,
                 fmt::format("{:03}-check", session->state.judged));
    AddReport(report, &entry);
    entry.kind = report.verdict == "crashed" ? EntryKind::kCrashed : EntryKind::kRefused;
    CRUCIBLE_TRY(Pend(session, std::move(entry)));
  }
  CRUCIBLE_TRY(session->Save());
  return report;
}

Result<JudgeReport> Compare(Session* session, const Comparison& comparison) {
  CRUCIBLE_ASSIGN(const Arm arm, BuildWorktree(session));
  const Arm& other = comparison.against == "base" ? session->order().baseline : session->state.held;
  MissionState& state = session->state;
  // What passed a screen is confirmed on fresh data; its quick check is done.
  const bool screened =
      state.compared && state.compared->pass && state.compared->rule == "screen" &&
      state.compared->tree == arm.source_hash && state.compared->against == other.source_hash;
  JudgeRequest request;
  request.op = "compare";
  request.baseline = other;
  request.candidate = arm;
  request.cases = comparison.cases;
  request.rule = comparison.rule == "claim" && screened ? "confirm" : comparison.rule;
  request.checked_already = request.rule == "confirm";
  state.measured.insert(arm.source_hash);
  const auto report = Judge(session, request, comparison.rule);
  // Only a candidate that hangs is at fault when there is no verdict: one that crashes has one.
  if (!report && report.error().kind != ErrorKind::kTimeout) return tl::unexpected(report.error());
  Entry entry = Measured(*session, arm.source_hash, other.source_hash, comparison.cases,
                         fmt::format("{:03}-{}", state.judged, comparison.rule));
  if (!report) {
    entry.kind = EntryKind::kCrashed;
    entry.summary = "no verdict";
    entry.reason = report.error().text;
    state.compared.reset();
    CRUCIBLE_TRY(Pend(session, std::move(entry)));
    return tl::unexpected(report.error());
  }
  AddReport(*report, &entry);
  if (screened && entry.margins.empty() && state.pending) entry.margins = state.pending->margins;
  entry.kind = KindOf(*report, comparison.rule, comparison.cases);
  state.compared = TreeVerdict{arm.source_hash, other.source_hash, comparison.rule, report->verdict,
                               report->pass};
  CRUCIBLE_TRY(Pend(session, std::move(entry)));
  return *report;
}

}  // namespace crucible
