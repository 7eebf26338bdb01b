#include "orchestrator/agents/llm/make_provider.h"

#include <cstdlib>
#include <random>

#include "orchestrator/agents/llm/http_provider.h"

namespace crucible {
namespace {

std::string OwnAddress(ProviderKind kind) {
  return kind == ProviderKind::kAnthropic ? "https://api.anthropic.com" : "https://api.openai.com";
}

}  // namespace

std::string BaseUrl(const ModelSettings& settings) {
  if (!settings.base_url.empty()) return settings.base_url;
  const std::string variable = AddressVariable(settings);
  if (const char* value = std::getenv(variable.c_str()); value != nullptr && *value != '\0')
    return value;
  return OwnAddress(settings.kind);
}

std::string AddressVariable(const ModelSettings& settings) {
  return settings.kind == ProviderKind::kAnthropic ? "ANTHROPIC_BASE_URL" : "OPENAI_BASE_URL";
}

std::string KeyVariable(const ModelSettings& settings) {
  if (!settings.key_variable.empty()) return settings.key_variable;
  return settings.kind == ProviderKind::kAnthropic ? "ANTHROPIC_API_KEY" : "OPENAI_API_KEY";
}

Result<ApiKey> KeyFor(const ModelSettings& settings) {
  const std::string variable = KeyVariable(settings);
  CRUCIBLE_ASSIGN(ApiKey key, FindKey(variable));
  const bool needed =
      !settings.key_variable.empty() || BaseUrl(settings).starts_with(OwnAddress(settings.kind));
  if (key.empty() && needed)
    return Fail(ErrorKind::kUsage, "find key for", settings.name, variable + " is not set",
                "set it, or put " + variable +
                    "=KEY into a file of mode 600 and name that file in "
                    "CRUCIBLE_KEY_FILE");
  return key;
}

Result<std::unique_ptr<Provider>> MakeProvider(const ModelSettings& settings, ProviderSeams seams) {
  if (settings.name.empty())
    return Fail(ErrorKind::kUsage, "use", "a model", "it has no name", "set the model's name");
  CRUCIBLE_ASSIGN(ApiKey key, KeyFor(settings));
  if (!seams.http) seams.http = MakeCurlHttp();
  if (seams.clock == nullptr) seams.clock = &SystemClock();
  if (seams.seed == 0) seams.seed = std::random_device{}();
  return std::make_unique<HttpProvider>(settings, std::move(key), std::move(seams));
}

}  // namespace crucible
