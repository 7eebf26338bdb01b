// json_rpc.h: the messages of JSON-RPC 2.0 as the Model Context Protocol uses them. Pure.
#pragma once

#include <string>

#include "base/json.h"

namespace crucible::json_rpc {

inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601,
                     kInvalidParams = -32602;

// A message from the other side, read and sorted.
struct Incoming {
  enum class Kind { kRequest, kNotification, kResponse, kMalformed };
  Kind kind = Kind::kMalformed;
  nlohmann::json id;  // of a request: text or an integer; null where it could not be read
  std::string method;
  nlohmann::json params;  // an object
  int code = 0;           // kMalformed: what to answer, and why
  std::string why;
};

Incoming Read(const std::string& line);

// Each is one line without its end.
std::string Answer(const nlohmann::json& id, const nlohmann::json& result);
std::string Failure(const nlohmann::json& id, int code, const std::string& message);
std::string Notification(const std::string& method, const nlohmann::json& params);

}  // namespace crucible::json_rpc
