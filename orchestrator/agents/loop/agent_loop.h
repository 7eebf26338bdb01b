// agent_loop.h: an agent's conversation with a model: turns, tool calls, budgets, restarts.
//
// How a mission is wired:
//   order = ReadMissionOrder(file); target = LoadTarget(order.target_file);
//   provider = … (reads the key); DropSecretsFromEnvironment();
//   tools = MakeTools({order, target, "agent:" + provider->model(), limits, sandbox, Sandboxed});
//   outcome = RunAgentLoop({provider, &tools, SystemTemplate(), mission.md, …});
//   WriteLoopResult(order.workspace.Mission(order.id), *outcome);
// Every end is a defined state: the branch holds the best commit, result.json the outcome, the
// spend file what was used, the transcript all of it, also when the process is killed between two
// steps. Runs on the caller's thread; `interrupted` is asked between steps and by the tools.
#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "orchestrator/agents/llm/provider.h"
#include "orchestrator/agents/loop/spend.h"
#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/agents/tools/tool.h"

namespace crucible {

struct LoopSpec {
  Provider* provider = nullptr;
  const ToolSet* tools = nullptr;
  std::string system;                     // how to work: missions/templates/system.md
  std::string mission;                    // mission.md; its brief may be part of it …
  std::function<std::string()> brief;     // … or comes fresh with every (re)start from here
  std::filesystem::path notes;            // the note tool's file; told after a restart
  std::filesystem::path transcript;       // JSON Lines; "": none
  std::filesystem::path spend;            // JSON, rewritten at every billing and turn; "": none
  std::int64_t context_tokens = 200'000;  // of the model
  int reply_tokens = 8192;
  std::int64_t request_ms = 600'000;  // the outer deadline of one request
  LoopBudgets budgets;
  std::function<double()> gpu_seconds;  // used so far (DeviceSeconds)
  std::function<bool()> interrupted;
  std::stop_token stop;                             // the same, for a request under way
  std::function<void(const LoopSpend&)> on_spend;   // after every billing and turn
  std::function<void(const std::string&)> on_text;  // the model's words as they stream in
  std::vector<std::string> secrets;                 // never in a transcript or an answer
  Clock* clock = nullptr;                           // the machine's by default
};

struct LoopOutcome {
  LoopEnd end = LoopEnd::kReported;
  std::string detail;  // the provider's words, or what the budget was
  LoopSpend spend;
};

// An Error means that the loop itself could not go on (the transcript cannot be written).
Result<LoopOutcome> RunAgentLoop(const LoopSpec& spec);

// What a mission that ended so has for a result; kReported has its own and gives nothing to write.
// Budgets, no progress and format errors are `budget`; refusals and a wrong key are `blocked`.
MissionResult ResultOf(const LoopOutcome& outcome);
// Writes it to the mission's folder, unless the agent reported; a provider without an answer leaves
// no result, so that the campaign sees a crashed agent.
Result<> WriteLoopResult(const std::filesystem::path& folder, const LoopOutcome& outcome);

}  // namespace crucible
