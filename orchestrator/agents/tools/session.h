// session.h: what the tools of one mission share. Private to this folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/subprocess.h"
#include "orchestrator/agents/tools/confined_path.h"
#include "orchestrator/agents/tools/function_tool.h"
#include "orchestrator/agents/tools/mission_state.h"
#include "orchestrator/agents/tools/tool_context.h"
#include "orchestrator/repository.h"
#include "results_log/store.h"

namespace crucible {

struct Session {
  ToolContext context;
  Store store;
  Repository repository;
  MissionState state;
  int outputs = 0;  // files of outputs made, for their names

  static Result<Session> Open(const ToolContext& context);

  const MissionOrder& order() const { return context.order; }
  const Target& target() const { return context.target; }
  std::filesystem::path Folder() const { return order().workspace.Mission(order().id); }
  std::filesystem::path StateFile() const { return Folder() / "tools.json"; }
  std::filesystem::path NotesFile() const { return Folder() / "notes.md"; }
  // A measurement that the log does not know yet.
  bool Unlogged() const { return state.pending && state.pending_known.empty(); }
  Result<> Save() { return SaveMissionState(StateFile(), state); }

  // Where an agent may read: the worktree first, then what the harness wrote for it.
  std::vector<std::filesystem::path> ReadRoots() const;
  // A new file for an output too long for an answer.
  std::filesystem::path NextOutput(const std::string& name);

  bool Interrupted() const { return context.interrupted && context.interrupted(); }
  bool OutOfTime() const;
  std::int64_t LeftMs() const;
  // An error that says to report, once the mission's time, or its time on the device, is over.
  Result<> InTime() const;

  // Paths of the worktree that were changed and may not be: nothing is built or judged with them.
  Result<> NothingForeignChanged();
  // Hash of the editable files as they are.
  Result<std::string> Tree() const;
  std::map<std::string, std::string> Environment() const {
    return order().workspace.Environment(order().id, order().run_nonce);
  }
  // Progress is a courtesy: no tool fails for it.
  void Event(const std::string& kind, const std::string& text);
};

inline ToolAnswer Say(std::string text) { return {.text = std::move(text)}; }

}  // namespace crucible
