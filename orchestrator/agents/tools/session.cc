#include "orchestrator/agents/tools/session.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/files.h"
#include "orchestrator/build_arm.h"
#include "orchestrator/spend.h"

namespace crucible {

namespace fs = std::filesystem;

Result<Session> Session::Open(const ToolContext& context) {
  const MissionOrder& order = context.order;
  const fs::path folder = order.workspace.Mission(order.id);
  CRUCIBLE_TRY(MakeDirectories(folder / "outputs"));
  CRUCIBLE_TRY(MakeDirectories(folder / "reports"));
  CRUCIBLE_ASSIGN(Store store, Store::Open(order.workspace.LogFile()));
  CRUCIBLE_ASSIGN(Repository repository, Repository::Open(order.worktree, order.main_branch));
  CRUCIBLE_ASSIGN(MissionState state, LoadMissionState(folder / "tools.json", order.baseline));
  Session session{context, std::move(store), std::move(repository), std::move(state), 0};
  std::error_code ignored;
  for (auto item = fs::directory_iterator(folder / "outputs", ignored);
       !ignored && item != fs::directory_iterator(); item.increment(ignored))
    ++session.outputs;
  return session;
}

std::vector<fs::path> Session::ReadRoots() const {
  std::vector<fs::path> roots = {order().worktree};
  if (context.sandbox && !context.sandbox->scratch.empty())
    roots.push_back(context.sandbox->scratch);
  for (const char* name :
       {"outputs", "reports", "build.log", "judge.log", "notes.md", "mission.md"})
    roots.push_back(Folder() / name);
  return roots;
}

fs::path Session::NextOutput(const std::string& name) {
  return Folder() / "outputs" / fmt::format("{:03}-{}.txt", ++outputs, name);
}

std::int64_t Session::LeftMs() const { return order().deadline_ms - SystemClock().UnixMs(); }

bool Session::OutOfTime() const { return LeftMs() <= 0; }

Result<> Session::InTime() const {
  if (const std::string used =
          DeviceTimeUsedUp(order().workspace, order().id, order().agent.budget.device_seconds);
      !used.empty())
    return Fail(ErrorKind::kTimeout, "run", "the tool", used,
                "log what was measured, commit what was accepted, and report");
  if (!OutOfTime()) return {};
  return Fail(ErrorKind::kTimeout, "run", "the tool", "the mission's time is over",
              "log what was measured, commit what was accepted, and report");
}

Result<> Session::NothingForeignChanged() {
  CRUCIBLE_ASSIGN(const auto changes, repository.WorktreeChanges(order().worktree));
  std::vector<std::string> foreign;
  for (const ChangedPath& change : changes)
    if (!IsEditable(target(), change.path)) foreign.push_back(change.path);
  if (foreign.empty()) return {};
  constexpr std::size_t kShown = 20;
  const std::size_t all = foreign.size();
  if (all > kShown) foreign.resize(kShown);
  return Fail(ErrorKind::kUsage, "use", "the worktree",
              fmt::format("{} path{} changed that the mission may not change: {}{}", all,
                          all == 1 ? " was" : "s were", fmt::join(foreign, ", "),
                          all > kShown ? ", …" : ""),
              fmt::format("restore goes back to the last commit, or put them back by hand; it may "
                          "change {}",
                          EditableText(target())));
}

Result<std::string> Session::Tree() const { return SourceHash(target(), order().worktree); }

void Session::Event(const std::string& kind, const std::string& text) {
  (void)store.AddEvent(order().campaign, order().id, kind, order().id + ": " + text);
}

}  // namespace crucible
