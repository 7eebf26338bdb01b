// The program as the demo uses it: started with a scenario, asked by real providers at once, ended.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "base/subprocess.h"
#include "orchestrator/agents/llm/make_provider.h"

namespace crucible {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr const char* kScenario = R"x({"models":["scripted-1"],"conversations":[
  {"match":"n32","captures":{"id":"mission (m[0-9]+)"},"steps":[
    {"tools":[{"name":"bash","arguments":{"command":"git log"}}]},
    {"fault":529,"retry_after_ms":"1"},
    {"tools":[{"name":"report","arguments":{"mission":"${id}","commit":"${commit}"}}],
     "captures":{"commit":"commit ([0-9a-f]+)"}}]},
  {"steps":[{"text":"Nothing to do."}]}]})x";

class ScriptedServerProgram : public testing::Test {
 protected:
  ScriptedServerProgram() : folder(*MakeTemporaryDirectory("crucible-scripted")) {
    ::unsetenv("CRUCIBLE_KEY_FILE");
    ::setenv("CRUCIBLE_TEST_KEY", "sk-test-0123456789", 1);
  }
  ~ScriptedServerProgram() override { (void)RemoveTree(folder); }
  std::string Program() const { return std::string(CRUCIBLE_BIN_DIR) + "/scripted_server"; }
  std::filesystem::path Write(const std::string& scenario) {
    EXPECT_TRUE(WriteFileAtomically(folder / "scenario.json", scenario));
    return folder / "scenario.json";
  }
  std::filesystem::path folder;
};

// One mission as the tool loop would carry it; returns the last tool call's arguments.
std::string Carry(const std::string& base_url, ProviderKind kind, const std::string& mission) {
  ModelSettings settings;
  settings.name = "scripted-1";
  settings.kind = kind;
  settings.base_url = base_url;
  settings.key_variable = "CRUCIBLE_TEST_KEY";
  auto provider = MakeProvider(settings);
  if (!provider) return provider.error().text;
  CompletionRequest request;
  request.messages = {{Role::kUser, {{.text = mission}}}};
  const auto first = (*provider)->Complete(request, {});
  if (!first) return first.error().text;
  request.messages.push_back(first->message);
  Block result;
  result.kind = Block::Kind::kToolResult;
  result.id = first->message.blocks.at(0).id;
  result.text = "commit abc123\nAuthor: somebody";
  request.messages.push_back({Role::kUser, {result}});
  const auto second = (*provider)->Complete(request, {});
  if (!second) return second.error().text;
  return second->message.blocks.at(0).arguments;
}

TEST_F(ScriptedServerProgram, ServesManyMissionsAtOnceAndShowsWhatItWasAsked) {
  const auto port_file = folder / "port";
  auto server = Subprocess::Start(
      {.argv = {Program(), Write(kScenario).string(), "--port-file", port_file.string()},
       .out = Stdio::kPipe});
  ASSERT_TRUE(server) << server.error().text;
  const UniqueFd out = server->TakeStdout();
  char line[32] = {};
  ASSERT_GT(::read(out.get(), line, sizeof line - 1), 1);
  const std::string base_url = "http://127.0.0.1:" + std::to_string(std::atoi(line));

  std::vector<std::string> told(6);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < told.size(); ++i)
      threads.emplace_back([&, i] {
        told[i] = Carry(base_url, i % 2 == 0 ? ProviderKind::kAnthropic : ProviderKind::kOpenAi,
                        "mission m" + std::to_string(i) + ": improve n32");
      });
  }
  for (std::size_t i = 0; i < told.size(); ++i)
    EXPECT_EQ(told[i], R"({"commit":"abc123","mission":"m)" + std::to_string(i) + "\"}");
  EXPECT_EQ(std::stoi(*ReadFile(port_file)), std::atoi(line));

  HttpRequest show;
  show.method = "GET";
  show.url = base_url + "/requests";
  const HttpReply shown = MakeCurlHttp()->Send(show, {});
  ASSERT_EQ(shown.status, 200);
  const json requests = json::parse(shown.body).at("requests");
  EXPECT_EQ(requests.size(), told.size() * 3) << "two turns and a fault for each mission";
  for (const json& request : requests) {
    const json& headers = request.at("headers");
    EXPECT_EQ(headers.contains("x-api-key"), request.at("path") == "/v1/messages");
  }
  server->Signal(SIGTERM);
  const auto status = server->Wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->ok()) << status->Describe();
}

TEST_F(ScriptedServerProgram, AScenarioWithAMistakeDoesNotStart) {
  const auto run = RunCaptured({.argv = {Program(), Write(R"({"conversations":7})").string()}});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->status.code, 2);
  EXPECT_THAT(run->err, HasSubstr("no conversations"));
  EXPECT_EQ(RunCaptured({.argv = {Program()}})->status.code, 2);
  EXPECT_EQ(RunCaptured({.argv = {Program(), "a", "--bogus"}})->status.code, 2);
}

}  // namespace
}  // namespace crucible
