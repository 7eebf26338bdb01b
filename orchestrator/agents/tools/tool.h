// tool.h: one thing an agent can do, offered alike to a model, to an MCP client and to a test.
//
// A tool never fails the mission: what went wrong is an answer with is_error that says what to do
// next. Answers are bounded (ToolLimits); the rest is in a file that the answer names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/agents/llm/message.h"

namespace crucible {

struct ToolAnswer {
  std::string text;
  bool is_error = false;
  bool ends_mission = false;   // `report` was called and accepted
  bool bad_arguments = false;  // the call's form was wrong: counts as a format error
};

class Tool {
 public:
  virtual ~Tool() = default;
  virtual const ToolDescription& description() const = 0;
  // `arguments`: JSON text as the caller wrote it. Malformed or wrong arguments are an error answer
  // that names the field and shows the schema's form of it.
  virtual ToolAnswer Call(const std::string& arguments) = 0;
};

using ToolSet = std::vector<std::unique_ptr<Tool>>;

}  // namespace crucible
