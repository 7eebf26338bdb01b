// Messages of JSON-RPC: what each is, and what is answered to one that is none.
#include "orchestrator/agents/mcp/json_rpc.h"

#include <gtest/gtest.h>

namespace crucible {
namespace {

using json_rpc::Incoming;
using nlohmann::json;
using Kind = Incoming::Kind;

TEST(JsonRpc, KindsAreToldApart) {
  EXPECT_EQ(json_rpc::Read(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").kind, Kind::kRequest);
  EXPECT_EQ(json_rpc::Read(R"({"jsonrpc":"2.0","method":"x"})").kind, Kind::kNotification);
  EXPECT_EQ(json_rpc::Read(R"({"jsonrpc":"2.0","id":"a","result":{}})").kind, Kind::kResponse);
}

TEST(JsonRpc, AMalformedMessageHasItsCodeAndItsIdWhereItHasOne) {
  const auto code = [](const char* text) { return json_rpc::Read(text).code; };
  EXPECT_EQ(code("{"), json_rpc::kParseError);
  EXPECT_EQ(code("[]"), json_rpc::kInvalidRequest);
  EXPECT_EQ(code("7"), json_rpc::kInvalidRequest);
  EXPECT_EQ(code(R"({"id":1,"method":"x"})"), json_rpc::kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":{},"method":"x"})"), json_rpc::kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1})"), json_rpc::kInvalidRequest);
  EXPECT_EQ(code(R"({"jsonrpc":"2.0","id":1,"method":"x","params":[]})"), json_rpc::kInvalidParams);
  EXPECT_EQ(json_rpc::Read(R"({"jsonrpc":"2.0","id":"a"})").id, "a");
}

TEST(JsonRpc, AnswersAreOneLine) {
  const std::string line = json_rpc::Answer("a", {{"text", "two\nlines"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(json::parse(line)["result"]["text"], "two\nlines");
  EXPECT_EQ(json::parse(json_rpc::Failure(nullptr, -32700, "why"))["error"]["code"], -32700);
}

}  // namespace
}  // namespace crucible
