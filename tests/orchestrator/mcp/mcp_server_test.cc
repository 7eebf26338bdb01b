// The server over pipes: the protocol's order, errors, cancelling and progress.
#include "orchestrator/agents/mcp/mcp_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"
#include "base/json.h"
#include "orchestrator/agents/tools/function_tool.h"

namespace crucible {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class McpServer : public ::testing::Test {
 protected:
  void SetUp() override {
    int request[2], reply[2];
    ASSERT_EQ(::pipe2(request, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(reply, O_CLOEXEC), 0);
    server_in_ = UniqueFd(request[0]);
    to_server_ = UniqueFd(request[1]);
    from_server_ = UniqueFd(reply[0]);
    server_out_ = UniqueFd(reply[1]);
    tools_.push_back(MakeFunctionTool({"echo",
                                       "says it again",
                                       {{.name = "text", .help = "words", .required = true}},
                                       [](const json& arguments) -> Result<ToolAnswer> {
                                         return ToolAnswer{.text = arguments["text"]};
                                       }}));
    tools_.push_back(MakeFunctionTool({"wait", "until it is stopped", {}, [this](const json&) {
                                         while (!stop_) std::this_thread::yield();
                                         ++stopped_;
                                         return Result<ToolAnswer>(ToolAnswer{.text = "stopped"});
                                       }}));
    spec_.tools = &tools_;
    spec_.version = "1.2";
    spec_.instructions = "how to work";
    spec_.in = server_in_.get();
    spec_.out = server_out_.get();
    spec_.stop_call = &stop_;
    spec_.progress_every = std::chrono::milliseconds(1);
    server_ = std::thread([this] { result_ = ServeMcp(spec_); });
  }
  void TearDown() override { End(); }

  void End() {
    to_server_.Reset();
    if (server_.joinable()) server_.join();
    EXPECT_TRUE(result_) << result_.error().text;
  }
  void SendText(const std::string& text) {
    ASSERT_EQ(::write(to_server_.get(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  void Send(json message) {
    message["jsonrpc"] = "2.0";
    SendText(message.dump() + "\n");
  }
  json Receive() {
    std::size_t end;
    while ((end = buffer_.find('\n')) == std::string::npos) {
      pollfd item{from_server_.get(), POLLIN, 0};
      if (::poll(&item, 1, 20'000) <= 0) {
        ADD_FAILURE() << "no answer in 20 s";
        return json();
      }
      char bytes[4096];
      const ssize_t count = ::read(from_server_.get(), bytes, sizeof bytes);
      if (count <= 0) return json();
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
    const json message = json::parse(buffer_.substr(0, end));
    buffer_.erase(0, end + 1);
    return message;
  }
  json Ask(json message) {
    Send(std::move(message));
    return Receive();
  }
  void Initialize() {
    Ask({{"id", 0}, {"method", "initialize"}, {"params", {{"protocolVersion", "2025-06-18"}}}});
    Send({{"method", "notifications/initialized"}});
  }
  static json CallOf(const json& id, const std::string& tool, const json& arguments) {
    return {{"id", id},
            {"method", "tools/call"},
            {"params", {{"name", tool}, {"arguments", arguments}}}};
  }

  UniqueFd server_in_, server_out_, to_server_, from_server_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> stopped_ = 0;
  ToolSet tools_;
  McpSpec spec_;
  Result<> result_;
  std::thread server_;
  std::string buffer_;
};

TEST_F(McpServer, InitializeNegotiatesTheVersion) {
  const auto version = [&](const char* asked) {
    return Ask({{"id", 1},
                {"method", "initialize"},
                {"params", {{"protocolVersion", asked}}}})["result"]["protocolVersion"];
  };
  EXPECT_EQ(version("2024-11-05"), "2024-11-05");
  EXPECT_EQ(version("2025-06-18"), "2025-06-18");
  EXPECT_EQ(version("1999-01-01"), "2025-11-25");
  const json answer =
      Ask({{"id", 2}, {"method", "initialize"}, {"params", {{"protocolVersion", "2025-06-18"}}}});
  EXPECT_EQ(answer["result"]["serverInfo"]["version"], "1.2");
  EXPECT_EQ(answer["result"]["instructions"], "how to work");
  EXPECT_TRUE(answer["result"]["capabilities"].contains("tools"));
}

TEST_F(McpServer, ToolsComeAfterInitializeAndPingsAlways) {
  EXPECT_EQ(Ask({{"id", "p"}, {"method", "ping"}})["result"], json::object());
  EXPECT_THAT(Ask({{"id", 1}, {"method", "tools/list"}}).dump(),
              HasSubstr("initialize comes first"));
}

TEST_F(McpServer, ToolsAreListedAndCalled) {
  Initialize();
  const json list = Ask({{"id", 1}, {"method", "tools/list"}})["result"]["tools"];
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["name"], "echo");
  EXPECT_EQ(list[0]["inputSchema"]["required"], json::array({"text"}));
  const json answer = Ask(CallOf("x", "echo", {{"text", "größe\n"}}));
  EXPECT_EQ(answer["id"], "x");
  EXPECT_EQ(answer["result"]["content"][0]["text"], "größe\n");
  EXPECT_EQ(answer["result"]["isError"], false);
}

TEST_F(McpServer, AToolsErrorIsAResultAndACallersMistakeIsAnError) {
  Initialize();
  EXPECT_EQ(Ask(CallOf(1, "echo", json::object()))["result"]["isError"], true);
  EXPECT_EQ(Ask(CallOf(2, "none", json::object()))["error"]["code"], -32602);
  EXPECT_EQ(Ask(CallOf(3, "echo", 7))["error"]["code"], -32602);
  EXPECT_EQ(Ask({{"id", 4}, {"method", "resources/list"}})["error"]["code"], -32601);
  SendText("{nonsense\n");
  EXPECT_EQ(Receive()["error"]["code"], -32700);
  EXPECT_EQ(Ask(CallOf(5, "echo", {{"text", "still here"}}))["id"], 5);
}

TEST_F(McpServer, AMessageMayComeInPieces) {
  Initialize();
  SendText("\n  \n{\"jsonrpc\":\"2.0\",\"id\":1,");
  SendText("\"method\":\"ping\"}\n");
  EXPECT_EQ(Receive()["id"], 1);
}

TEST_F(McpServer, ACancelledCallIsStoppedAndNotAnswered) {
  Initialize();
  Send(CallOf(1, "wait", json::object()));
  Send(CallOf(2, "echo", {{"text", "next"}}));
  EXPECT_EQ(Ask({{"id", 3}, {"method", "ping"}})["id"], 3);  // meanwhile
  Send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}});
  EXPECT_EQ(Receive()["id"], 2);
}

TEST_F(McpServer, ACallThatWaitsIsCancelledBeforeItBegins) {
  Initialize();
  Send(CallOf(1, "wait", json::object()));
  Send(CallOf(2, "wait", json::object()));
  Send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 2}}}});
  Send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}});
  EXPECT_EQ(Ask(CallOf(3, "echo", {{"text", "next"}}))["id"], 3);
  EXPECT_LE(stopped_, 1);
}

TEST_F(McpServer, AFloodOfCallsIsRefusedAndTheServerGoesOn) {
  Initialize();
  Send(CallOf(1, "wait", json::object()));
  int refused = 0;
  for (int id = 2; id < 102; ++id) Send(CallOf(id, "wait", json::object()));
  EXPECT_EQ(Ask({{"id", 200}, {"method", "tools/list"}})["error"].is_null(), false)
      << "the first answers are the refusals";
  for (refused = 1; Receive()["id"] != 200; ++refused) {
  }
  EXPECT_GE(refused, 100 - 33);
  EXPECT_LE(refused, 100 - 31);
  Send({{"method", "notifications/cancelled"}, {"params", {{"requestId", 1}}}});
}

TEST_F(McpServer, ALongCallTellsOfItselfWhenAsked) {
  Initialize();
  json call = CallOf(1, "wait", json::object());
  call["params"]["_meta"] = {{"progressToken", "t"}};
  Send(call);
  const json first = Receive(), second = Receive();
  EXPECT_EQ(first["method"], "notifications/progress");
  EXPECT_EQ(first["params"]["progressToken"], "t");
  EXPECT_LT(first["params"]["progress"], second["params"]["progress"]);
}

TEST_F(McpServer, TheEndOfTheInputEndsTheRunningCall) {
  Initialize();
  Send(CallOf(1, "wait", json::object()));
  EXPECT_EQ(Ask({{"id", 2}, {"method", "ping"}})["id"], 2);
  End();
}

}  // namespace
}  // namespace crucible
