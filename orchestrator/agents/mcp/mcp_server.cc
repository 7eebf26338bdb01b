#include "orchestrator/agents/mcp/mcp_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "orchestrator/agents/mcp/call_queue.h"
#include "orchestrator/agents/mcp/json_rpc.h"
#include "orchestrator/agents/tools/bounded.h"
#include "orchestrator/agents/tools/function_tool.h"

namespace crucible {
namespace {

using json_rpc::Incoming;
using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

// Newest first. 2025-03-26 is left out: it asks for batches.
constexpr const char* kVersions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};
constexpr std::size_t kLongestLine = std::size_t{16} << 20;
constexpr int kLookEveryMs = 200;

class Server {
 public:
  explicit Server(const McpSpec& spec)
      : spec_(spec),
        calls_(spec.stop_call,
               [this](const QueuedCall& call, const ToolAnswer& answer) { Done(call, answer); }) {}

  Result<> Run() {
    while (!Interrupted() && Readable()) {
      if (!ReadSome()) break;
      for (std::size_t end; (end = buffer_.find('\n')) != std::string::npos;) {
        const std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        if (line.find_first_not_of(" \t\r") != std::string::npos) Handle(json_rpc::Read(line));
      }
      if (buffer_.size() > kLongestLine)
        return Fail(ErrorKind::kUsage, "read", "the client's message", "it is longer than 16 MiB",
                    "send one message a line");
    }
    if (!broken_.empty())
      return Fail(ErrorKind::kIo, "write to", "the MCP client", broken_, "start it again");
    return {};
  }

 private:
  bool Interrupted() const { return spec_.interrupted && spec_.interrupted(); }

  // Waits for input, and tells of the running call meanwhile; false when that is over.
  bool Readable() {
    for (;;) {
      pollfd item{spec_.in, POLLIN, 0};
      const int ready = ::poll(&item, 1, kLookEveryMs);
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
      if (Interrupted()) return false;
      TellProgress();
      const std::lock_guard lock(write_mutex_);
      if (!broken_.empty()) return false;
    }
  }

  bool ReadSome() {
    char bytes[1 << 16];
    const ssize_t count = ::read(spec_.in, bytes, sizeof bytes);
    if (count < 0) return errno == EINTR;
    buffer_.append(bytes, static_cast<std::size_t>(count));
    return count > 0;
  }

  void Write(std::string line) {
    line += '\n';
    const std::lock_guard lock(write_mutex_);
    for (std::size_t done = 0; done < line.size() && broken_.empty();) {
      const ssize_t count = ::write(spec_.out, line.data() + done, line.size() - done);
      if (count < 0 && errno != EINTR) broken_ = std::strerror(errno);
      if (count > 0) done += static_cast<std::size_t>(count);
    }
  }

  void Handle(const Incoming& message) {
    switch (message.kind) {
      case Incoming::Kind::kMalformed:
        return Write(json_rpc::Failure(message.id, message.code, message.why));
      case Incoming::Kind::kResponse:
        return;  // nothing is asked of the client
      case Incoming::Kind::kNotification:
        if (message.method == "notifications/cancelled")
          calls_.Cancel(message.params.value("requestId", json()));
        return;
      case Incoming::Kind::kRequest:
        return Request(message);
    }
  }

  void Request(const Incoming& message) {
    if (message.method == "initialize") return Initialize(message);
    if (message.method == "ping") return Write(json_rpc::Answer(message.id, json::object()));
    if (message.method != "tools/list" && message.method != "tools/call")
      return Write(json_rpc::Failure(message.id, json_rpc::kMethodNotFound,
                                     "there is no method " + message.method));
    if (!initialized_)
      return Write(
          json_rpc::Failure(message.id, json_rpc::kInvalidRequest, "initialize comes first"));
    message.method == "tools/list" ? List(message) : Call(message);
  }

  void Initialize(const Incoming& message) {
    const auto asked = message.params.find("protocolVersion");
    if (asked == message.params.end() || !asked->is_string())
      return Write(
          json_rpc::Failure(message.id, json_rpc::kInvalidParams, "protocolVersion is missing"));
    const std::string wanted = asked->get<std::string>();
    const bool known =
        std::find(std::begin(kVersions), std::end(kVersions), wanted) != std::end(kVersions);
    initialized_ = true;
    Write(json_rpc::Answer(message.id,
                           {{"protocolVersion", known ? wanted : kVersions[0]},
                            {"capabilities", {{"tools", json::object()}}},
                            {"serverInfo", {{"name", "crucible"}, {"version", spec_.version}}},
                            {"instructions", spec_.instructions}}));
  }

  void List(const Incoming& message) {
    json tools = json::array();
    for (const auto& tool : *spec_.tools) {
      const ToolDescription& description = tool->description();
      tools.push_back({{"name", description.name},
                       {"description", description.description},
                       {"inputSchema", json::parse(description.schema)}});
    }
    Write(json_rpc::Answer(message.id, {{"tools", tools}}));
  }

  void Call(const Incoming& message) {
    const auto invalid = [&](const std::string& why) {
      Write(json_rpc::Failure(message.id, json_rpc::kInvalidParams, why));
    };
    const json name = message.params.value("name", json());
    if (!name.is_string()) return invalid("name is missing");
    const json arguments = message.params.value("arguments", json::object());
    if (!arguments.is_object()) return invalid("arguments is no object");
    Tool* tool = FindTool(*spec_.tools, name.get<std::string>());
    if (tool == nullptr) return invalid("there is no tool " + name.get<std::string>());
    QueuedCall call;
    call.id = message.id;
    const json meta = message.params.value("_meta", json::object());
    if (meta.is_object()) call.progress_token = meta.value("progressToken", json());
    call.tool = tool;
    call.arguments = JsonText(arguments);
    if (!calls_.Add(std::move(call)))
      Write(json_rpc::Failure(
          message.id, json_rpc::kInvalidRequest,
          fmt::format("{} calls wait already: wait for their answers", CallQueue::kMostWaiting)));
  }

  void TellProgress() {
    const auto now = SteadyClock::now();
    const auto running = calls_.Running();
    if (!running || running->progress_token.is_null() || running->id != told_id_) {
      told_id_ = running ? running->id : json();
      told_at_ = now;
      told_ = 0;
      return;
    }
    if (now - told_at_ < spec_.progress_every) return;
    told_at_ = now;
    Write(json_rpc::Notification("notifications/progress",
                                 {{"progressToken", running->progress_token},
                                  {"progress", ++told_},
                                  {"message", running->tool->description().name + " still runs"}}));
  }

  // On the queue's thread.
  void Done(const QueuedCall& call, const ToolAnswer& answer) {
    if (call.cancelled) return;  // nobody waits for it
    Write(json_rpc::Answer(call.id,
                           {{"content", {{{"type", "text"}, {"text", ValidUtf8(answer.text)}}}},
                            {"isError", answer.is_error}}));
  }

  const McpSpec& spec_;
  std::string buffer_;
  bool initialized_ = false;
  std::mutex write_mutex_;
  std::string broken_;
  json told_id_;
  SteadyClock::time_point told_at_;
  int told_ = 0;
  CallQueue calls_;  // last: its thread uses the rest, and ends first
};

}  // namespace

Result<> ServeMcp(const McpSpec& spec) {
  CRUCIBLE_CHECK(spec.tools != nullptr, "a server has tools");
  return Server(spec).Run();
}

}  // namespace crucible
