#include "checks/harness/protocol_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/json.h"

namespace crucible {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongestLine = 1u << 20;  // a request is a few hundred bytes

std::string Refusal(const std::string& error) {
  // Text may hold bytes of a broken request: replace what is not UTF-8 instead of throwing.
  return Json{{"ok", false}, {"error", error}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<int> DescriptorFromEnvironment(const char* name, int access) {
  const char* text = std::getenv(name);
  const std::string why = text == nullptr ? "is not set" : fmt::format("is \"{}\"", text);
  int fd = -1;
  if (text != nullptr) {
    const char* end = text + std::strlen(text);
    if (std::from_chars(text, end, fd).ptr != end) fd = -1;
  }
  const int flags = fd < 0 ? -1 : ::fcntl(fd, F_GETFL);
  const int mode = flags & O_ACCMODE;
  if (flags >= 0 && (mode == access || mode == O_RDWR)) return fd;
  return Fail(ErrorKind::kUsage, "serve the harness protocol", name,
              why + (text == nullptr ? "" : ", which is no descriptor open for it"),
              "start it by hand as: CRUCIBLE_REQUEST_FD=0 CRUCIBLE_REPLY_FD=1 PROGRAM …");
}

}  // namespace

std::string ProtocolServer::Answer(const std::string& line, bool* bye) {
  const Json request = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (request.is_discarded())
    return Refusal(fmt::format("read a request: \"{}\" is not JSON", line.substr(0, 80)));
  if (!request.is_object() || !request.contains("op") || !request["op"].is_string())
    return Refusal("read a request: it is no object with a string \"op\"");
  const std::string op = request["op"].get<std::string>();
  if (op == "bye") {
    *bye = true;
    return Json{{"ok", true}}.dump();
  }
  const auto found = ops_.find(op);
  if (found == ops_.end()) {
    std::string known;
    for (const auto& [name, unused] : ops_) known += name + ", ";
    return Refusal(fmt::format("op \"{}\": unknown; this harness answers {}bye", op, known));
  }
  try {
    Result<Json> reply = found->second(request);
    if (!reply.has_value()) return Refusal(reply.error().text);
    (*reply)["ok"] = true;
    return reply->dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const std::exception& error) {
    return Refusal(fmt::format("op \"{}\": {}", op, error.what()));
  }
}

Result<bool> ProtocolServer::Serve(int request_fd, int reply_fd) {
  std::string pending;
  char buffer[4096];
  bool skipping = false;  // inside a line that was too long and has been refused
  for (;;) {
    const ssize_t count = ::read(request_fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrorKind::kIo, "read requests", "", std::strerror(errno));
    if (count == 0) return false;
    pending.append(buffer, static_cast<std::size_t>(count));
    for (std::size_t end; (end = pending.find('\n')) != std::string::npos;) {
      const std::string line = pending.substr(0, end);
      pending.erase(0, end + 1);
      if (std::exchange(skipping, false) || line.empty()) continue;
      bool bye = false;
      if (!WriteAll(reply_fd, Answer(line, &bye) + "\n")) return false;
      if (bye) return true;
    }
    if (pending.size() > kLongestLine) {
      pending.clear();
      if (!std::exchange(skipping, true) &&
          !WriteAll(reply_fd, Refusal("read a request: the line is longer than 1 MiB") + "\n"))
        return false;
    }
  }
}

Result<HarnessDescriptors> HarnessDescriptorsFromEnvironment() {
  HarnessDescriptors descriptors;
  CRUCIBLE_ASSIGN(descriptors.request, DescriptorFromEnvironment("CRUCIBLE_REQUEST_FD", O_RDONLY));
  CRUCIBLE_ASSIGN(descriptors.reply, DescriptorFromEnvironment("CRUCIBLE_REPLY_FD", O_WRONLY));
  return descriptors;
}

Result<std::int64_t> IntegerField(const Json& object, const char* field, std::int64_t low,
                                  std::int64_t high) {
  const auto found = object.find(field);
  const std::string want = fmt::format("want an integer from {} to {}", low, high);
  if (found == object.end())
    return Fail(ErrorKind::kUsage, "read", fmt::format("\"{}\"", field), "it is missing", want);
  // A value beyond int64 is unsigned in this library: refuse it before the conversion wraps.
  const bool fits = found->is_number_integer() &&
                    !(found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX);
  if (!fits || found->get<std::int64_t>() < low || found->get<std::int64_t>() > high)
    return Fail(ErrorKind::kUsage, "read", fmt::format("\"{}\"", field),
                fmt::format("it is {}", found->dump().substr(0, 80)), want);
  return found->get<std::int64_t>();
}

Result<std::int64_t> IntegerField(const Json& object, const char* field, std::int64_t low,
                                  std::int64_t high, std::int64_t fallback) {
  if (!object.contains(field)) return fallback;
  return IntegerField(object, field, low, high);
}

Result<double> NumberField(const Json& object, const char* field, double low, double high) {
  const auto found = object.find(field);
  if (found != object.end() && found->is_number() && found->get<double>() >= low &&
      found->get<double>() <= high)
    return found->get<double>();
  return Fail(ErrorKind::kUsage, "read", fmt::format("\"{}\"", field),
              found == object.end() ? "it is missing"
                                    : fmt::format("it is {}", found->dump().substr(0, 80)),
              fmt::format("want a number from {} to {}", low, high));
}

Result<std::uint64_t> SeedField(const Json& request) {
  const auto found = request.find("seed");
  if (found == request.end() || !found->is_number_integer())
    return Fail(ErrorKind::kUsage, "read", "\"seed\"", "it is missing or no integer",
                "choose one at random for each request and keep it from the candidate");
  return found->is_number_unsigned() ? found->get<std::uint64_t>()
                                     : static_cast<std::uint64_t>(found->get<std::int64_t>());
}

}  // namespace crucible
