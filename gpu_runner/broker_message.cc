#include "gpu_runner/broker_message.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace crucible {
namespace {

constexpr std::string_view kVersion = "crucible-broker 1";
constexpr std::size_t kMaxDescriptors = 16;  // room for too many, so that they can be counted

void Put(char kind, std::string_view text, std::string* message) {
  message->push_back(kind);
  message->append(text);
  message->push_back('\0');
}

tl::unexpected<Error> Malformed(std::string_view cause) {
  return Fail(ErrorKind::kUsage, "read request", "", cause, "use the gpu_run of the same build");
}

// Everything that came beside a message, owned.
std::vector<UniqueFd> TakeDescriptors(msghdr* header) {
  std::vector<UniqueFd> taken;
  for (cmsghdr* item = CMSG_FIRSTHDR(header); item != nullptr; item = CMSG_NXTHDR(header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof fd, sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

}  // namespace

std::string Encode(const BrokerRequest& request) {
  std::string message(kVersion);
  message.push_back('\0');
  Put('C', request.directory, &message);
  for (const std::string& word : request.options) Put('O', word, &message);
  for (const std::string& word : request.command) Put('A', word, &message);
  for (const std::string& item : request.environment) Put('E', item, &message);
  return message;
}

Result<BrokerRequest> DecodeRequest(std::string_view message) {
  BrokerRequest request;
  if (message.empty() || message.back() != '\0') return Malformed("its last field has no end");
  const std::size_t version = message.find('\0');
  if (message.substr(0, version) != kVersion) return Malformed("it is of another version");
  message.remove_prefix(version + 1);
  for (std::size_t fields = 0; !message.empty(); ++fields) {
    if (fields >= kMaxBrokerFields) return Malformed("it has too many fields");
    const std::size_t end = message.find('\0');
    const std::string_view field = message.substr(0, end);
    message.remove_prefix(end + 1);
    if (field.empty()) return Malformed("a field has no kind");
    std::string text(field.substr(1));
    switch (field[0]) {
      case 'C':
        if (!request.directory.empty()) return Malformed("it has two directories");
        request.directory = std::move(text);
        break;
      case 'O':
        request.options.push_back(std::move(text));
        break;
      case 'A':
        request.command.push_back(std::move(text));
        break;
      case 'E':
        request.environment.push_back(std::move(text));
        break;
      default:
        return Malformed("a field is of no known kind");
    }
  }
  if (!request.directory.starts_with('/')) return Malformed("its directory is not a full path");
  if (request.command.empty() || request.command.front().empty())
    return Malformed("it has no command");
  return request;
}

std::string Encode(const BrokerReply& reply) {
  return fmt::format("{}{} {}", static_cast<char>(reply.note), reply.number, reply.text);
}

std::optional<BrokerReply> DecodeReply(std::string_view message) {
  if (message.empty()) return std::nullopt;
  BrokerReply reply;
  reply.note = static_cast<BrokerNote>(message[0]);
  switch (reply.note) {
    case BrokerNote::kExit:
    case BrokerNote::kRefused:
    case BrokerNote::kRunHere:
    case BrokerNote::kSignal:
      break;
    default:
      return std::nullopt;
  }
  const char* end = message.data() + message.size();
  const auto parsed = std::from_chars(message.data() + 1, end, reply.number);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ' ') return std::nullopt;
  reply.text.assign(parsed.ptr + 1, end);
  return reply;
}

bool MayCrossToJob(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "LANG", "LC_ALL", "LC_NUMERIC", "TERM", "TZ", "CUDA_LAUNCH_BLOCKING", "COLUMNS", "NO_COLOR"};
  static constexpr std::string_view kBeginnings[] = {"OMP_NUM_", "OMP_PROC_", "OPENBLAS_NUM_",
                                                     "MKL_NUM_", "CRUCIBLE_TARGET_"};
  const auto begins = [&](std::string_view beginning) { return name.starts_with(beginning); };
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kBeginnings), std::end(kBeginnings), begins);
}

Result<> SendMessage(int socket, std::string_view message, const std::array<int, 3>* streams) {
  iovec part{const_cast<char*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char space[CMSG_SPACE(3 * sizeof(int))] = {};
  if (streams != nullptr) {
    header.msg_control = space;
    header.msg_controllen = sizeof space;
    cmsghdr* item = CMSG_FIRSTHDR(&header);
    item->cmsg_level = SOL_SOCKET;
    item->cmsg_type = SCM_RIGHTS;
    item->cmsg_len = CMSG_LEN(3 * sizeof(int));
    std::memcpy(CMSG_DATA(item), streams->data(), 3 * sizeof(int));
  }
  if (::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    return Fail(ErrorKind::kIo, "send", "message", std::strerror(errno));
  return {};
}

Result<std::optional<std::string>> ReceiveMessage(int socket, Streams* streams) {
  std::string text(kMaxBrokerMessage, '\0');
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) char space[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = space;
  header.msg_controllen = sizeof space;
  ssize_t count = 0;
  bool reset = false;
  do {
    count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    // A side that hangs up on an unread message resets the other, once; its own last words, sent
    // before that, can still be read after it.
  } while (count < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true))));
  if (count < 0) {
    if (errno == ECONNRESET) return std::nullopt;
    return Fail(ErrorKind::kIo, "receive", "message", std::strerror(errno));
  }
  std::vector<UniqueFd> taken = TakeDescriptors(&header);
  if (count == 0 && taken.empty()) return std::nullopt;
  if ((header.msg_flags & MSG_TRUNC) != 0)
    return Malformed(fmt::format("it is longer than {} bytes", kMaxBrokerMessage));
  const std::size_t wanted = streams != nullptr ? 3 : 0;
  if ((header.msg_flags & MSG_CTRUNC) != 0 || taken.size() != wanted)
    return Malformed(fmt::format("{} descriptors came with it, not {}", taken.size(), wanted));
  for (std::size_t i = 0; i < wanted; ++i) (*streams)[i] = std::move(taken[i]);
  text.resize(static_cast<std::size_t>(count));
  return text;
}

}  // namespace crucible
