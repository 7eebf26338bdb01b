#include "tests/support/scripted_server/speak.h"

#include "orchestrator/agents/llm/wire_json.h"

namespace crucible {
namespace {

constexpr std::size_t kPieceBytes = 16;

// Pieces of about kPieceBytes, never within a UTF-8 character.
std::vector<std::string> Pieces(const std::string& text) {
  std::vector<std::string> pieces;
  for (const char c : text) {
    const bool continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (pieces.empty() || (pieces.back().size() >= kPieceBytes && !continues))
      pieces.emplace_back();
    pieces.back().push_back(c);
  }
  return pieces;
}

std::string Arguments(const Spoken& spoken, const ScriptStep::Call& call) {
  if (!spoken.malformed_arguments) return call.arguments;
  return call.arguments.substr(0, call.arguments.size() - 1);
}

std::string CallId(const Spoken& spoken, std::size_t index) {
  return spoken.id + "_call" + std::to_string(index);
}

std::string AnthropicStop(const Spoken& spoken) {
  if (spoken.stop == "paused") return "pause_turn";
  if (spoken.stop == "context_full") return "model_context_window_exceeded";
  if (!spoken.stop.empty()) return spoken.stop;
  return spoken.calls.empty() ? "end_turn" : "tool_use";
}

std::string OpenAiStop(const Spoken& spoken) {
  if (spoken.stop == "max_tokens" || spoken.stop == "context_full") return "length";
  if (spoken.stop == "refusal") return "content_filter";
  return spoken.calls.empty() ? "stop" : "tool_calls";
}

Json AnthropicUsage(const Usage& usage) {
  return {{"input_tokens", usage.input},
          {"output_tokens", usage.output},
          {"cache_read_input_tokens", usage.cache_read},
          {"cache_creation_input_tokens", usage.cache_write}};
}

Json OpenAiUsage(const Usage& usage) {
  const std::int64_t prompt = usage.input + usage.cache_read;
  return {{"prompt_tokens", prompt},
          {"completion_tokens", usage.output},
          {"total_tokens", prompt + usage.output},
          {"prompt_tokens_details", {{"cached_tokens", usage.cache_read}}}};
}

std::string Event(const std::string& name, const Json& data) {
  return "event: " + name + "\ndata: " + Dump(data) + "\n\n";
}

std::string Data(const Json& data) { return "data: " + Dump(data) + "\n\n"; }

void AppendBlock(int index, const Json& start, const std::vector<Json>& deltas,
                 std::vector<std::string>* events) {
  events->push_back(
      Event("content_block_start",
            {{"type", "content_block_start"}, {"index", index}, {"content_block", start}}));
  for (const Json& delta : deltas)
    events->push_back(Event("content_block_delta",
                            {{"type", "content_block_delta"}, {"index", index}, {"delta", delta}}));
  events->push_back(
      Event("content_block_stop", {{"type", "content_block_stop"}, {"index", index}}));
}

}  // namespace

std::string ErrorBody(bool anthropic, const std::string& type, const std::string& message) {
  if (anthropic)
    return Dump({{"type", "error"}, {"error", {{"type", type}, {"message", message}}}});
  return Dump({{"error", {{"type", type}, {"code", type}, {"message", message}}}});
}

std::string AnthropicBody(const Spoken& spoken) {
  Json content = Json::array();
  if (!spoken.text.empty()) content.push_back({{"type", "text"}, {"text", spoken.text}});
  for (std::size_t i = 0; i < spoken.calls.size(); ++i) {
    const std::string arguments = Arguments(spoken, spoken.calls[i]);
    Json input = ParseJson(arguments);
    if (input.is_discarded()) input = arguments;
    content.push_back({{"type", "tool_use"},
                       {"id", CallId(spoken, i)},
                       {"name", spoken.calls[i].name},
                       {"input", input}});
  }
  Json body = {{"id", spoken.id},     {"type", "message"},
               {"role", "assistant"}, {"model", spoken.model},
               {"content", content},  {"stop_reason", AnthropicStop(spoken)}};
  if (spoken.usage) body["usage"] = AnthropicUsage(*spoken.usage);
  return Dump(body);
}

std::vector<std::string> AnthropicEvents(const Spoken& spoken, const Scenario& quirks) {
  Json message = {{"id", spoken.id},       {"type", "message"},        {"role", "assistant"},
                  {"model", spoken.model}, {"content", Json::array()}, {"stop_reason", nullptr}};
  if (spoken.usage) {
    message["usage"] = AnthropicUsage(*spoken.usage);
    message["usage"]["output_tokens"] = 1;  // the true figure comes last
  }
  std::vector<std::string> events = {
      Event("message_start", {{"type", "message_start"}, {"message", message}}),
      Event("ping", {{"type", "ping"}})};
  int index = 0;
  if (!spoken.text.empty()) {
    std::vector<Json> deltas;
    for (const std::string& piece : Pieces(spoken.text))
      deltas.push_back({{"type", "text_delta"}, {"text", piece}});
    AppendBlock(index++, {{"type", "text"}, {"text", ""}}, deltas, &events);
  }
  for (std::size_t i = 0; i < spoken.calls.size(); ++i) {
    std::vector<Json> deltas;
    for (const std::string& piece : Pieces(Arguments(spoken, spoken.calls[i])))
      deltas.push_back({{"type", "input_json_delta"}, {"partial_json", piece}});
    AppendBlock(index++,
                {{"type", "tool_use"},
                 {"id", CallId(spoken, i)},
                 {"name", spoken.calls[i].name},
                 {"input", Json::object()}},
                deltas, &events);
  }
  Json delta = {{"type", "message_delta"},
                {"delta", {{"stop_reason", AnthropicStop(spoken)}, {"stop_sequence", nullptr}}}};
  if (spoken.usage) delta["usage"] = {{"output_tokens", spoken.usage->output}};
  events.push_back(Event("message_delta", delta));
  if (!quirks.HasQuirk("no_done"))
    events.push_back(Event("message_stop", {{"type", "message_stop"}}));
  return events;
}

std::string OpenAiBody(const Spoken& spoken, const Scenario& quirks) {
  Json message = {{"role", "assistant"}, {"content", nullptr}};
  if (!spoken.text.empty()) message["content"] = spoken.text;
  for (std::size_t i = 0; i < spoken.calls.size(); ++i) {
    Json call = {
        {"id", CallId(spoken, i)},
        {"type", "function"},
        {"function",
         {{"name", spoken.calls[i].name}, {"arguments", Arguments(spoken, spoken.calls[i])}}}};
    if (quirks.HasQuirk("no_ids")) call.erase("id");
    message["tool_calls"].push_back(std::move(call));
  }
  Json body = {
      {"id", spoken.id},
      {"object", "chat.completion"},
      {"model", spoken.model},
      {"choices",
       Json::array({{{"index", 0}, {"message", message}, {"finish_reason", OpenAiStop(spoken)}}})}};
  if (spoken.usage) body["usage"] = OpenAiUsage(*spoken.usage);
  return Dump(body);
}

std::vector<std::string> OpenAiEvents(const Spoken& spoken, const Scenario& quirks) {
  std::vector<std::string> events;
  const auto say = [&](const Json& delta, const Json& finish) {
    events.push_back(Data(
        {{"id", spoken.id},
         {"object", "chat.completion.chunk"},
         {"model", spoken.model},
         {"choices", Json::array({{{"index", 0}, {"delta", delta}, {"finish_reason", finish}}})}}));
  };
  say({{"role", "assistant"}, {"content", ""}}, nullptr);
  for (const std::string& piece : Pieces(spoken.text)) say({{"content", piece}}, nullptr);
  for (std::size_t i = 0; i < spoken.calls.size(); ++i) {
    bool first = true;
    for (const std::string& piece : Pieces(Arguments(spoken, spoken.calls[i]))) {
      Json call = {{"index", i}, {"function", {{"arguments", piece}}}};
      if (first) {
        call["id"] = CallId(spoken, i);
        call["type"] = "function";
        call["function"]["name"] = spoken.calls[i].name;
      }
      if (quirks.HasQuirk("no_ids")) call.erase("id");
      if (quirks.HasQuirk("no_index")) call.erase("index");
      say({{"tool_calls", Json::array({call})}}, nullptr);
      first = false;
    }
  }
  say(Json::object(), OpenAiStop(spoken));
  if (spoken.usage)
    events.push_back(Data({{"id", spoken.id},
                           {"model", spoken.model},
                           {"choices", Json::array()},
                           {"usage", OpenAiUsage(*spoken.usage)}}));
  if (!quirks.HasQuirk("no_done")) events.push_back("data: [DONE]\n\n");
  return events;
}

}  // namespace crucible
