// command_tool.cc: run_command: a shell command in the worktree, in the sandbox, within its limits.
//
// The output goes to a file as it comes, so that nothing is lost, and what is answered names it.
// The command's group is killed at the limit, and after every command whatever still carries its
// mark.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/process_identity.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Kind = Argument::Kind;

constexpr std::int64_t kDefaultSeconds = 120;
constexpr auto kLookEvery = std::chrono::milliseconds(50);
constexpr char kMark[] = "CRUCIBLE_COMMAND";

// Outside a sandbox the environment is built from little, too.
std::vector<std::string> AllBut(const std::set<std::string>& kept) {
  std::vector<std::string> names;
  for (char** item = environ; *item != nullptr; ++item) {
    const std::string text = *item;
    const std::string name = text.substr(0, text.find('='));
    if (!kept.contains(name)) names.push_back(name);
  }
  return names;
}

Result<SubprocessSpec> CommandSpec(Session* session, const std::string& command,
                                   const fs::path& folder, const std::string& mark) {
  SubprocessSpec spec;
  spec.argv = {"/bin/sh", "-c", command};
  spec.directory = folder;
  const ToolContext& context = session->context;
  if (context.sandbox) {
    CRUCIBLE_CHECK(context.enter_sandbox != nullptr, "a sandbox comes with the way into it");
    CRUCIBLE_ASSIGN(spec, context.enter_sandbox(*context.sandbox, std::move(spec)));
  } else {
    spec.unset = AllBut({"PATH", "HOME", "TMPDIR", "LANG", "USER", "CRUCIBLE_LOCK_DIR"});
    for (const auto& [name, value] : session->Environment()) spec.environment[name] = value;
    const char* path = std::getenv("PATH");
    spec.environment["PATH"] = session->order().workspace.programs.string() + ":" +
                               (path != nullptr ? path : "/usr/bin:/bin");
  }
  spec.environment[kMark] = mark;
  return spec;
}

struct Run {
  ExitStatus status;
  std::string ended;  // why it was ended, if it was
  std::int64_t wall_ms = 0;
};

Result<Run> Wait(Session* session, Subprocess* child, const fs::path& output,
                 std::int64_t limit_ms) {
  const ToolLimits& limits = session->context.limits;
  const std::int64_t start = SystemClock().MonotonicNs();
  Run run;
  for (;;) {
    const auto status = child->Wait(kLookEvery);
    run.wall_ms = (SystemClock().MonotonicNs() - start) / 1'000'000;
    if (status) {
      run.status = *status;
      return run;
    }
    if (status.error().kind != ErrorKind::kTimeout) return tl::unexpected(status.error());
    std::error_code ignored;
    const std::uintmax_t bytes = fs::file_size(output, ignored);
    if (run.wall_ms >= limit_ms)
      run.ended = fmt::format("ended at its limit of {} s", (limit_ms + 999) / 1000);
    else if (!ignored && bytes > limits.command_bytes)
      run.ended = fmt::format("ended after {} bytes of output", bytes);
    else if (session->Interrupted())
      run.ended = "ended because the mission is stopped";
    if (run.ended.empty()) continue;
    child->Signal(SIGKILL);
    CRUCIBLE_ASSIGN(run.status, child->Wait());
    return run;
  }
}

Result<ToolAnswer> RunCommand(Session* session, const json& arguments) {
  CRUCIBLE_TRY(session->InTime());
  const std::string command = arguments.at("command");
  if (command.find('\0') != std::string::npos)
    return Fail(ErrorKind::kUsage, "run", "the command", "it holds a zero byte", "");
  const std::string where = arguments.value("directory", std::string("."));
  CRUCIBLE_ASSIGN(const ConfinedPath folder, PathToRead({session->order().worktree}, where));
  std::error_code ignored;
  if (!fs::is_directory(folder.file, ignored))
    return Fail(ErrorKind::kUsage, "run in", where, "it is no folder", "");
  const std::int64_t limit_ms =
      std::min({arguments.value("limit_s", kDefaultSeconds) * 1000,
                session->context.limits.command_ms, std::max<std::int64_t>(session->LeftMs(), 1)});
  const std::string mark = RandomHex(16);
  CRUCIBLE_ASSIGN(SubprocessSpec spec, CommandSpec(session, command, folder.file, mark));
  const fs::path output = session->NextOutput("command");
  CRUCIBLE_TRY(WriteFileAtomically(output, ""));
  spec.in = Stdio::kNull;
  spec.out = spec.err = Stdio::kFile;
  spec.log_path = output;
  CRUCIBLE_ASSIGN(Subprocess child, Subprocess::Start(spec));
  CRUCIBLE_ASSIGN(const Run run, Wait(session, &child, output, limit_ms));
  child.Signal(SIGKILL);
  KillByEnvironment(kMark, mark, 2000);
  CRUCIBLE_ASSIGN(const std::string text, ReadFile(output));
  ToolAnswer answer;
  answer.is_error = !run.ended.empty() || !run.status.ok();
  answer.text =
      fmt::format("[{} after {}]\n{}", run.ended.empty() ? run.status.Describe() : run.ended,
                  FormatDuration(run.wall_ms),
                  HeadAndTail(text, session->context.limits.answer_bytes, output.string()));
  return answer;
}

}  // namespace

void AddCommandTool(const SharedSession& session, ToolSet* tools) {
  const ToolContext& context = session->context;
  if (!context.sandbox && !context.unsandboxed) return;
  tools->push_back(MakeFunctionTool(
      {"run_command",
       std::string("Run a shell command in the worktree") +
           (context.sandbox ? " (sandboxed: no network, no GPU but through gpu_run). " : ". ") +
           "Standard output and error come together; what it leaves running is killed. Times that "
           "it prints are no results: compare measures.",
       {{.name = "command", .help = "for /bin/sh -c", .required = true},
        {.name = "directory", .help = "relative to the worktree (default: its root)"},
        {.name = "limit_s",
         .kind = Kind::kInteger,
         .help = "seconds it may take (default 120)",
         .least = 1,
         .most = std::max<std::int64_t>(1, context.limits.command_ms / 1000)}},
       [session](const json& arguments) { return RunCommand(session.get(), arguments); }}));
}

}  // namespace crucible
