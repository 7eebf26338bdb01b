// broker_message.h: what a gpu_run in a sandbox and its broker say to each other.
//
// Over a Unix socket of whole messages (SOCK_SEQPACKET): one request with the caller's stdin,
// stdout and stderr beside it, then single replies and notes. A request is NUL-terminated fields
// after a first one that names the version: C directory, O option, A word of the command, E
// NAME=VALUE; so every byte a file name can have comes through. Nothing here trusts the other side.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace crucible {

inline constexpr char kBrokerVariable[] = "CRUCIBLE_BROKER";
inline constexpr std::size_t kMaxBrokerMessage = 128 * 1024;
inline constexpr std::size_t kMaxBrokerFields = 8192;

struct BrokerRequest {
  std::string directory;
  std::vector<std::string> options;  // words of gpu_run before the command
  std::vector<std::string> command;
  std::vector<std::string> environment;  // NAME=VALUE
};

std::string Encode(const BrokerRequest& request);
// kUsage names what is malformed.
Result<BrokerRequest> DecodeRequest(std::string_view message);

// From the broker: kExit and kRefused end the talk; kRunHere: the caller is inside a job already.
// From the caller: kSignal.
enum class BrokerNote : char { kExit = 'X', kRefused = 'F', kRunHere = 'H', kSignal = 'S' };

struct BrokerReply {
  BrokerNote note = BrokerNote::kRefused;
  int number = 0;    // the exit code or the signal
  std::string text;  // why it was refused
};

std::string Encode(const BrokerReply& reply);
std::optional<BrokerReply> DecodeReply(std::string_view message);

// A variable that may cross into a job: how many threads, which locale, what to print. Nothing that
// names code to load.
bool MayCrossToJob(std::string_view name);

using Streams = std::array<UniqueFd, 3>;

// One message, with the three descriptors when `streams` is given. Never blocks and never raises
// SIGPIPE.
Result<> SendMessage(int socket, std::string_view message, const std::array<int, 3>* streams);

// The next message; empty: the other side has closed. kUsage: it is too long, or what came with it
// is not exactly three descriptors (every one is closed). `streams` null: none may come.
Result<std::optional<std::string>> ReceiveMessage(int socket, Streams* streams);

// Bound and listening, mode 0600, in its folder, which is made with mode 0700 or must be so
// already. kConflict: the folder is open to others, or a broker lives there. A dead one's socket is
// replaced.
Result<UniqueFd> ListenForJobs(const std::filesystem::path& socket);
Result<UniqueFd> ConnectToBroker(const std::filesystem::path& socket);

}  // namespace crucible
