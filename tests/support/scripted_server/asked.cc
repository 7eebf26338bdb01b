#include "tests/support/scripted_server/asked.h"

#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

std::string TextOf(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  std::string text;
  if (content.is_array())
    for (const Json& part : content)
      if (StringOf(part, "type") == "text") text += StringOf(part, "text");
  return text;
}

}  // namespace

Result<Asked> ReadAsked(bool anthropic, const std::string& body) {
  const Json json = ParseJson(body);
  const Json& messages = Member(json, "messages");
  if (!messages.is_array() || messages.empty())
    return Fail(ErrorKind::kUsage, "read", "the request", "it has no messages");
  Asked asked;
  asked.anthropic = anthropic;
  asked.bytes = body.size();
  asked.stream = Member(json, "stream") == Json(true);
  asked.model = StringOf(json, "model");
  for (const auto& [name, value] : json.items()) asked.parameters.push_back(name);
  bool first = true;
  for (const Json& message : messages) {
    const std::string role = StringOf(message, "role");
    const Json& content = Member(message, "content");
    if (role == "assistant") ++asked.assistant_messages;
    if (role == "tool") asked.tool_results.push_back(TextOf(content));
    if (role != "user") continue;
    if (first) asked.first_user_text = TextOf(content);
    first = false;
    if (!content.is_array()) continue;
    for (const Json& part : content)
      if (StringOf(part, "type") == "tool_result")
        asked.tool_results.push_back(TextOf(Member(part, "content")));
  }
  return asked;
}

}  // namespace crucible
