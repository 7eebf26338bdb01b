#include "orchestrator/agents/tools/function_tool.h"

#include <exception>

#include "base/json.h"

namespace crucible {
namespace {

class FunctionTool : public Tool {
 public:
  explicit FunctionTool(ToolSpec spec)
      : spec_(std::move(spec)), description_{spec_.name, spec_.help, SchemaText(spec_.arguments)} {}

  const ToolDescription& description() const override { return description_; }

  ToolAnswer Call(const std::string& arguments) override {
    const auto values = ReadArguments(spec_.name, spec_.arguments, arguments);
    if (!values) return {.text = values.error().text, .is_error = true, .bad_arguments = true};
    try {
      auto answer = spec_.function(*values);
      if (answer) return std::move(*answer);
      return {.text = answer.error().text, .is_error = true};
    } catch (const std::exception& error) {  // a library's: the mission goes on
      return {.text = spec_.name + ": " + error.what(), .is_error = true};
    }
  }

 private:
  ToolSpec spec_;
  ToolDescription description_;
};

}  // namespace

std::unique_ptr<Tool> MakeFunctionTool(ToolSpec spec) {
  return std::make_unique<FunctionTool>(std::move(spec));
}

Tool* FindTool(const ToolSet& tools, const std::string& name) {
  for (const auto& tool : tools)
    if (tool->description().name == name) return tool.get();
  return nullptr;
}

}  // namespace crucible
