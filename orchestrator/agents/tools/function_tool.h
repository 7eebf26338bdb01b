// function_tool.h: a Tool made of a name, its declared arguments and a function; the arguments that
// reach the function are valid.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/agents/tools/arguments.h"
#include "orchestrator/agents/tools/tool.h"

namespace crucible {

// An Error becomes an error answer.
using ToolFunction = std::function<Result<ToolAnswer>(const nlohmann::json& arguments)>;

struct ToolSpec {
  std::string name, help;
  std::vector<Argument> arguments;
  ToolFunction function;
};

std::unique_ptr<Tool> MakeFunctionTool(ToolSpec spec);

// The tool of that name, or nullptr.
Tool* FindTool(const ToolSet& tools, const std::string& name);

}  // namespace crucible
