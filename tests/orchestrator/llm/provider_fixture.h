// provider_fixture.h: a real provider against a scripted server, with a clock that does not wait.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/agents/llm/make_provider.h"
#include "tests/support/scripted_server/scripted_server.h"

namespace crucible {

inline constexpr const char* kTestKey = "sk-test-0123456789abcdef0123456789";

// Sleeping moves it on at once.
class TickingClock final : public Clock {
 public:
  std::int64_t UnixMs() override { return unix_ms; }
  std::int64_t MonotonicNs() override { return unix_ms * 1'000'000; }
  void SleepFor(std::chrono::nanoseconds duration) override {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
    unix_ms += ms;
    slept_ms += ms;
    if (on_sleep) on_sleep();
  }
  std::int64_t unix_ms = 1'800'000'000'000;
  std::int64_t slept_ms = 0;
  std::function<void()> on_sleep;
};

struct Wire {
  ProviderKind kind;
  bool stream;
};

inline std::string NameOf(const Wire& wire) {
  return ToString(wire.kind) + (wire.stream ? "_stream" : "_whole");
}

// Nothing of this machine's own accounts may reach a test.
inline void ClearProviderEnvironment() {
  for (const std::string& name : KeyVariables()) ::unsetenv(name.c_str());
  for (const char* name : {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "http_proxy", "https_proxy",
                           "all_proxy", "HTTPS_PROXY", "ALL_PROXY"})
    ::unsetenv(name);
  ::setenv("CRUCIBLE_TEST_KEY", kTestKey, 1);
}

class ProviderTest : public testing::TestWithParam<Wire> {
 protected:
  ProviderTest() {
    ClearProviderEnvironment();
    settings.name = "scripted-1";
    settings.kind = GetParam().kind;
    settings.stream = GetParam().stream;
    settings.key_variable = "CRUCIBLE_TEST_KEY";
    settings.prices = {.input = 3, .output = 15, .cache_read = 0.3, .cache_write = 3.75};
    settings.idle_timeout_ms = 10'000;
    request.messages = {{Role::kUser, {{.text = "mission eigh_n32"}}}};
    request.deadline_ms = clock.unix_ms + 3'600'000;
    events.on_text = [this](const std::string& text) { told += text; };
    events.on_retry = [this](const std::string& what) { retries.push_back(what); };
    events.on_billed = [this](const Usage& usage, double usd) {
      billed.push_back(usage);
      billed_usd += usd;
    };
  }

  // A server whose only conversation has these steps; `extra`: more fields of the scenario.
  void Serve(const std::string& steps, const std::string& extra = "") {
    provider.reset();
    auto started = ScriptedServer::Start(R"({"conversations":[{"steps":[)" + steps + "]}]" +
                                         (extra.empty() ? "" : "," + extra) + "}");
    ASSERT_TRUE(started) << started.error().text;
    server = std::move(*started);
    settings.base_url = server->base_url();
  }

  void Connect() {
    ProviderSeams seams;
    seams.clock = real_clock ? &SystemClock() : &clock;
    seams.retry = retry;
    seams.seed = 42;
    auto made = MakeProvider(settings, std::move(seams));
    ASSERT_TRUE(made) << made.error().text;
    provider = std::move(*made);
  }

  Result<Completion> Ask() {
    if (!provider) Connect();
    Result<Completion> reply = provider->Complete(request, events);
    if (!reply) ExpectNoKey(reply.error().text);
    for (const std::string& what : retries) ExpectNoKey(what);
    return reply;
  }

  static void ExpectNoKey(const std::string& text) {
    for (std::size_t size = 12; size <= std::string(kTestKey).size(); ++size)
      EXPECT_EQ(text.find(std::string(kTestKey).substr(0, size)), std::string::npos) << text;
  }

  TickingClock clock;
  bool real_clock = false;
  RetryPolicy retry;
  ModelSettings settings;
  CompletionRequest request;
  CompletionEvents events;
  std::unique_ptr<ScriptedServer> server;
  std::unique_ptr<Provider> provider;
  std::string told;
  std::vector<std::string> retries;
  std::vector<Usage> billed;
  double billed_usd = 0;
};

inline const auto kEveryWire =
    testing::Values(Wire{ProviderKind::kAnthropic, false}, Wire{ProviderKind::kAnthropic, true},
                    Wire{ProviderKind::kOpenAi, false}, Wire{ProviderKind::kOpenAi, true});

}  // namespace crucible
