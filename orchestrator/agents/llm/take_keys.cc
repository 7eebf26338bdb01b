#include "orchestrator/agents/llm/take_keys.h"

#include <cstdlib>

#include "orchestrator/agents/llm/api_key.h"

namespace crucible {

std::map<std::string, std::string> TakeKeysFromEnvironment(const std::vector<std::string>& more) {
  std::vector<std::string> names = KeyVariables();
  names.insert(names.end(), more.begin(), more.end());
  std::map<std::string, std::string> taken;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    if (const char* value = std::getenv(name.c_str())) taken.emplace(name, value);
    ::unsetenv(name.c_str());
  }
  return taken;
}

}  // namespace crucible
