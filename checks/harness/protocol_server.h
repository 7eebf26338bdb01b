// protocol_server.h: a harness's side of docs/target_protocol.md: JSON Lines over two descriptors.
//
// A harness gives one function per request; this reads, dispatches, and answers every line exactly
// once. A request that is malformed, unknown or refused gets {"ok":false,"error":…} and the next
// one is read: only "bye", the end of the input or a broken reply descriptor end the loop.
// Single-threaded. Nothing but replies is ever written to the reply descriptor.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace crucible {

inline constexpr int kHarnessProtocol = 1;

// Fills the reply; "ok" is added by the server.
using HarnessOp = std::function<Result<nlohmann::json>(const nlohmann::json& request)>;

class ProtocolServer {
 public:
  // The ops "hello", "check", "prepare", "slot"; "bye" is the server's own.
  explicit ProtocolServer(std::map<std::string, HarnessOp> ops) : ops_(std::move(ops)) {}

  // Serves until "bye" (true) or until the other side is gone (false).
  Result<bool> Serve(int request_fd, int reply_fd);

  // The reply to one line, without its newline; sets `bye` when it was the last.
  std::string Answer(const std::string& line, bool* bye);

 private:
  std::map<std::string, HarnessOp> ops_;
};

// CRUCIBLE_REQUEST_FD and CRUCIBLE_REPLY_FD as open descriptors; kUsage says how to start a harness
// by hand where they are missing.
struct HarnessDescriptors {
  int request = -1, reply = -1;
};
Result<HarnessDescriptors> HarnessDescriptorsFromEnvironment();

// Field readers with errors that name the field; `fallback` where it is absent.
Result<std::int64_t> IntegerField(const nlohmann::json& object, const char* field, std::int64_t low,
                                  std::int64_t high);
Result<std::int64_t> IntegerField(const nlohmann::json& object, const char* field, std::int64_t low,
                                  std::int64_t high, std::int64_t fallback);
// Any number of the range, whole or not.
Result<double> NumberField(const nlohmann::json& object, const char* field, double low,
                           double high);
// Any integer JSON can hold, as 64 bits.
Result<std::uint64_t> SeedField(const nlohmann::json& request);

}  // namespace crucible
