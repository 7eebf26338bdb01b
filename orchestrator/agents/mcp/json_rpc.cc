#include "orchestrator/agents/mcp/json_rpc.h"

namespace crucible::json_rpc {
namespace {

using nlohmann::json;

std::string Line(json message) {
  message["jsonrpc"] = "2.0";
  return JsonText(message);
}

Incoming Malformed(const json& id, int code, const std::string& why) {
  Incoming incoming;
  incoming.id = id;
  incoming.code = code;
  incoming.why = why;
  return incoming;
}

}  // namespace

Incoming Read(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (message.is_discarded()) return Malformed(nullptr, kParseError, "it is not JSON");
  if (message.is_array())
    return Malformed(nullptr, kInvalidRequest, "batches are not part of this protocol version");
  if (!message.is_object()) return Malformed(nullptr, kInvalidRequest, "it is no object");
  const auto id = message.find("id");
  const bool has_id = id != message.end();
  if (has_id && !id->is_string() && !id->is_number_integer())
    return Malformed(nullptr, kInvalidRequest, "an id is text or an integer");
  const json known_id = has_id ? *id : json(nullptr);
  if (message.value("jsonrpc", json()) != "2.0")
    return Malformed(known_id, kInvalidRequest, "jsonrpc is not \"2.0\"");
  Incoming incoming;
  incoming.id = known_id;
  const auto method = message.find("method");
  if (method == message.end()) {
    if (!message.contains("result") && !message.contains("error"))
      return Malformed(known_id, kInvalidRequest, "it has no method");
    incoming.kind = Incoming::Kind::kResponse;
    return incoming;
  }
  if (!method->is_string()) return Malformed(known_id, kInvalidRequest, "method is no text");
  incoming.method = method->get<std::string>();
  incoming.params = message.value("params", json::object());
  if (!incoming.params.is_object())
    return Malformed(known_id, kInvalidParams, "params is no object");
  incoming.kind = has_id ? Incoming::Kind::kRequest : Incoming::Kind::kNotification;
  return incoming;
}

std::string Answer(const json& id, const json& result) {
  return Line({{"id", id}, {"result", result}});
}

std::string Failure(const json& id, int code, const std::string& message) {
  return Line({{"id", id}, {"error", {{"code", code}, {"message", message}}}});
}

std::string Notification(const std::string& method, const json& params) {
  return Line({{"method", method}, {"params", params}});
}

}  // namespace crucible::json_rpc
