#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "orchestrator/agents/tools/tool_context.h"
#include "orchestrator/agents/tools/tool_lists.h"

namespace crucible {

Result<ToolSet> MakeTools(const ToolContext& context) {
  CRUCIBLE_ASSIGN(Session opened, Session::Open(context));
  const auto session = std::make_shared<Session>(std::move(opened));
  ToolSet tools;
  AddReadTools(session, &tools);
  AddSearchTool(session, &tools);
  AddEditTools(session, &tools);
  AddCommandTool(session, &tools);
  AddMeasureTools(session, &tools);
  AddLogTools(session, &tools);
  AddExperimentTool(session, &tools);
  AddEndTools(session, &tools);
  return tools;
}

void DropSecretsFromEnvironment() {
  std::vector<std::string> names;
  for (char** item = environ; *item != nullptr; ++item) {
    const std::string_view text = *item;
    std::string name(text.substr(0, text.find('=')));
    std::string upper;
    for (const char c : name)
      upper.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    if (upper == "CRUCIBLE_GPU_TOKEN") continue;  // the queue's own, no secret
    for (const char* word : {"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"})
      if (upper.find(word) != std::string::npos) {
        // Overwritten, too: /proc/PID/environ shows this memory to every process of the user.
        if (text.size() > name.size() + 1)
          std::memset(*item + name.size() + 1, '*', text.size() - name.size() - 1);
        names.push_back(std::move(name));
        break;
      }
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
}

}  // namespace crucible
