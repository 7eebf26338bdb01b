// end_tools.cc: note, commit, restore, report: what of a mission outlives its conversation.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/measure.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::size_t kMostNotes = 24'000;
constexpr std::size_t kMostReport = 100'000;

Result<ToolAnswer> Note(Session* session, const json& arguments) {
  const std::string text = arguments.value("text", std::string());
  const bool replace = arguments.value("replace", false);
  const auto old = ReadFile(session->NotesFile());
  std::string notes = old && !replace ? *old : "";
  if (text.empty() && !replace)
    return Say(notes.empty() ? "(no notes yet)\n"
                             : Head(notes, session->context.limits.answer_bytes,
                                    session->NotesFile().string()));
  notes += text;
  if (!notes.empty() && notes.back() != '\n') notes += '\n';
  if (notes.size() > kMostNotes)
    return Fail(
        ErrorKind::kUsage, "note", session->order().id,
        fmt::format("the notes would have {} bytes, more than {}", notes.size(), kMostNotes),
        "replace them by a shorter version");
  CRUCIBLE_TRY(WriteFileAtomically(session->NotesFile(), notes));
  return Say(fmt::format("noted ({} bytes in all)\n", notes.size()));
}

// Missions that need not be faster: their commits need a check and no loss.
bool NeedsNoGain(const std::string& flavour) {
  return flavour == "simplifier" || flavour == "precision";
}

Result<> MayCommit(Session* session, const std::string& tree) {
  const auto refuse = [&](const std::string& cause, const std::string& next) {
    return Fail(ErrorKind::kUsage, "commit", session->order().id, cause, next);
  };
  const MissionState& state = session->state;
  if (tree == state.held.source_hash)
    return refuse("the files are the same as in the last commit", "there is nothing to commit");
  const bool compared = state.compared && state.compared->tree == tree &&
                        state.compared->against == state.held.source_hash;
  if (compared && state.compared->pass && state.compared->rule == "claim") return {};
  if (compared && state.compared->pass)
    return refuse("the last comparison was a screen", "compare with rule claim");
  if (NeedsNoGain(session->order().flavour)) {
    const bool checked = state.checked && state.checked->tree == tree && state.checked->pass &&
                         state.checked->rule == "full";
    const bool slower = state.pending && !ClearlySlower(state.pending->cases).empty();
    if (checked && compared && state.compared->verdict == "no_difference" && !slower) return {};
    if (slower) return refuse("it was slower", "a simplification may cost no time");
    return refuse(
        "exactly these files have no passed full check and a comparison against what is "
        "held that is accepted or finds no difference",
        "check with level full, then compare, without an edit between them");
  }
  if (compared)
    return refuse("the last comparison said " + state.compared->verdict,
                  "only what is accepted is kept");
  return refuse(state.compared ? "the files are not those that were compared last"
                               : "nothing was compared yet",
                "compare with rule claim, then commit without another edit");
}

// What is held from now on, for the diffs of later experiments.
Result<> KeepHeldFiles(const Session& session) {
  const fs::path folder = session.Folder() / "held";
  CRUCIBLE_TRY(RemoveTree(folder));
  std::error_code error;
  for (const std::string& path : session.target().editable) {
    const fs::path from = session.order().worktree / path;
    if (!fs::exists(from, error)) continue;
    const fs::path to = (folder / path).lexically_normal();
    CRUCIBLE_TRY(MakeDirectories((to.has_filename() ? to : to.parent_path()).parent_path()));
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks, error);
    if (error)
      return Fail(ErrorKind::kIo, "copy", from.string(), error.message(),
                  "check the space and rights of " + folder.string());
  }
  return {};
}

Result<ToolAnswer> Commit(Session* session, const json& arguments) {
  const std::string message = arguments.at("message");
  if (message.find_first_not_of(" \t\r\n") == std::string::npos)
    return Fail(ErrorKind::kUsage, "commit", session->order().id, "the message is empty",
                "say in a line what was changed and why");
  CRUCIBLE_TRY(session->NothingForeignChanged());
  CRUCIBLE_ASSIGN(const std::string tree, session->Tree());
  CRUCIBLE_TRY(MayCommit(session, tree));
  CRUCIBLE_CHECK(session->state.built && session->state.built->source_hash == tree,
                 "what was compared was built");
  std::string text = Shorten(message, 4000);
  if (session->state.pending && !session->state.pending->summary.empty())
    text += "\n\n" + session->state.pending->summary;
  text += fmt::format("\n\nMission {}, {}.\n", session->order().id, session->context.author);
  CRUCIBLE_ASSIGN(const std::string commit,
                  session->repository.CommitAll(session->order().worktree, text,
                                                "crucible " + session->context.author));
  MissionState& state = session->state;
  state.held = *state.built;
  state.held.name = commit.substr(0, 12);
  state.held_slot = 1 - state.held_slot;
  state.built.reset();
  if (state.pending) state.pending->evidence.push_back({"commit", commit, ""});
  CRUCIBLE_TRY(session->Save());
  CRUCIBLE_TRY(KeepHeldFiles(*session));
  session->Event("commit", fmt::format("{} {}", commit.substr(0, 12), Shorten(message, 100)));
  return Say(fmt::format("committed {}; it is what later comparisons are made against{}\n",
                         commit.substr(0, 12), state.pending ? "; log_experiment comes next" : ""));
}

Result<ToolAnswer> Restore(Session* session) {
  CRUCIBLE_ASSIGN(const auto changes,
                  session->repository.WorktreeChanges(session->order().worktree));
  CRUCIBLE_ASSIGN(const std::string head,
                  session->repository.Resolve("refs/heads/" + session->order().branch));
  CRUCIBLE_TRY(session->repository.ResetHard(session->order().worktree, head));
  std::string text = fmt::format("back at {}: ", head.substr(0, 12));
  std::vector<std::string> paths;
  for (const ChangedPath& change : changes) paths.push_back(change.path);
  text += paths.empty() ? "nothing was changed" : fmt::format("{}", fmt::join(paths, ", "));
  return Say(Head(text, session->context.limits.answer_bytes, "the worktree") + "\n");
}

Result<ToolAnswer> ReportTool(Session* session, const json& arguments) {
  MissionResult result;
  result.outcome = arguments.at("outcome");
  result.report = arguments.at("report");
  const auto refuse = [&](const std::string& cause, const std::string& next) {
    return Fail(ErrorKind::kUsage, "report", result.outcome, cause, next);
  };
  if (result.report.find_first_not_of(" \t\r\n") == std::string::npos)
    return refuse("the report is empty", "say what was tried, the numbers, and what is left");
  if (result.report.size() > kMostReport)
    return refuse(fmt::format("it has more than {} bytes", kMostReport), "shorten it");
  const bool committed = session->state.held.source_hash != session->order().baseline.source_hash;
  if (result.outcome == "candidate" && !committed)
    return refuse("the mission has no commit", "commit what was accepted, or report no_change");
  if (session->Unlogged() && !session->OutOfTime())
    return refuse("the last measurement is not logged", "log_experiment first");
  CRUCIBLE_TRY(WriteMissionResult(session->Folder(), result));
  session->Event("report", result.outcome);
  ToolAnswer answer = Say(fmt::format("the mission ends: {}\n", result.outcome));
  answer.ends_mission = true;
  return answer;
}

}  // namespace

void AddEndTools(const SharedSession& session, ToolSet* tools) {
  tools->push_back(MakeFunctionTool(
      {"note",
       "Your own notes: they survive a restart of the conversation. Adds text; without text it "
       "shows them.",
       {{.name = "text", .help = "what to add"},
        {.name = "replace", .kind = Kind::kFlag, .help = "in place of all that is there"}},
       [session](const json& arguments) { return Note(session.get(), arguments); }}));
  tools->push_back(MakeFunctionTool(
      {"commit",
       "Commit the worktree. Refused unless the last comparison (rule claim, against what is held) "
       "of exactly these files was accepted.",
       {{.name = "message", .help = "imperative first line: what and why", .required = true}},
       [session](const json& arguments) { return Commit(session.get(), arguments); }}));
  tools->push_back(MakeFunctionTool(
      {"restore",
       "Throw away every change since the last commit (new files, too): what a rejected experiment "
       "leaves.",
       {},
       [session](const json&) { return Restore(session.get()); }}));
  tools->push_back(MakeFunctionTool(
      {"report",
       "End the mission. candidate: the commit is to be merged; no_change: nothing was found; "
       "pivot: the idea is dead, with the evidence; blocked: by what.",
       {{.name = "outcome",
         .help = "what came of it",
         .required = true,
         .choices = {"candidate", "no_change", "pivot", "blocked"}},
        {.name = "report",
         .help = "Markdown: what was tried, the numbers, what is left to try",
         .required = true}},
       [session](const json& arguments) { return ReportTool(session.get(), arguments); }}));
}

}  // namespace crucible
