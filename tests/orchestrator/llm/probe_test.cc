// What `crucible doctor` says of an endpoint: whether it answers, and what is wrong if not.
#include "orchestrator/agents/llm/probe.h"

#include <gmock/gmock.h>

#include "tests/orchestrator/llm/provider_fixture.h"

namespace crucible {
namespace {

using State = EndpointReport::State;
using testing::HasSubstr;

class Probe : public testing::TestWithParam<ProviderKind> {
 protected:
  Probe() {
    ClearProviderEnvironment();
    settings.kind = GetParam();
    settings.name = "scripted-1";
    settings.key_variable = "CRUCIBLE_TEST_KEY";
  }
  void Serve(const std::string& fields) {
    auto started = ScriptedServer::Start("{\"conversations\":[]," + fields + "}");
    ASSERT_TRUE(started) << started.error().text;
    server = std::move(*started);
    settings.base_url = server->base_url();
  }
  EndpointReport Ask() {
    const EndpointReport report = ProbeEndpoint(settings);
    EXPECT_EQ((report.found + report.next).find(kTestKey), std::string::npos);
    EXPECT_EQ(report.next.empty(), report.state == State::kReady) << report.next;
    return report;
  }
  ModelSettings settings;
  std::unique_ptr<ScriptedServer> server;
};
INSTANTIATE_TEST_SUITE_P(Kinds, Probe,
                         testing::Values(ProviderKind::kAnthropic, ProviderKind::kOpenAi),
                         [](const auto& info) { return ToString(info.param); });

TEST_P(Probe, AnEndpointThatIsReady) {
  Serve(R"("models":["other","scripted-1"],"require_key":")" + std::string(kTestKey) + "\"");
  const auto report = Ask();
  EXPECT_EQ(report.state, State::kReady) << report.found;
  EXPECT_THAT(report.found, HasSubstr("scripted-1"));
}

TEST_P(Probe, AModelThatIsNotThere) {
  Serve(R"("models":["other-1","other-2"])");
  const auto report = Ask();
  EXPECT_EQ(report.state, State::kUnusable);
  EXPECT_THAT(report.next, HasSubstr("other-1, other-2"));
}

TEST_P(Probe, AKeyThatIsRefused) {
  Serve(R"("models":["scripted-1"],"require_key":"another")");
  const auto report = Ask();
  EXPECT_EQ(report.state, State::kUnusable);
  EXPECT_THAT(report.found, HasSubstr("401"));
  EXPECT_THAT(report.next, HasSubstr("CRUCIBLE_TEST_KEY"));
}

TEST_P(Probe, AKeyThatIsMissing) {
  ::unsetenv("CRUCIBLE_TEST_KEY");
  Serve(R"("models":["scripted-1"])");
  const auto report = Ask();
  EXPECT_EQ(report.state, State::kUnusable);
  EXPECT_THAT(report.found, HasSubstr("CRUCIBLE_TEST_KEY is not set"));
  EXPECT_TRUE(server->requests().empty());
}

TEST_P(Probe, AServerThatListsNoModelsIsNotCondemned) {
  Serve(R"("quirks":["no_models"])");
  EXPECT_EQ(Ask().state, State::kUnsure);
}

TEST_P(Probe, NobodyListens) {
  Serve(R"("models":["scripted-1"])");
  server.reset();
  const auto report = Ask();
  EXPECT_EQ(report.state, State::kUnusable);
  EXPECT_THAT(report.next, HasSubstr("start the server"));
  EXPECT_THAT(report.next, HasSubstr(AddressVariable(settings))) << "the address is set there";
}

// The failures that need a network, from a client that makes them up.
class FailingHttp final : public HttpClient {
 public:
  explicit FailingHttp(HttpFailure failure) : failure_(failure) {}
  HttpReply Send(const HttpRequest&, const std::function<bool(std::string_view)>&) override {
    HttpReply reply;
    reply.failure = failure_;
    reply.cause = "made up";
    return reply;
  }

 private:
  HttpFailure failure_;
};

TEST_P(Probe, EachFailureHasItsOwnAdvice) {
  settings.base_url = "https://models.example";
  const auto advice = [&](HttpFailure failure) {
    FailingHttp http(failure);
    const EndpointReport report = ProbeEndpoint(settings, http);
    EXPECT_EQ(report.state, State::kUnusable);
    EXPECT_THAT(report.found, HasSubstr("https://models.example: made up"));
    return report.next;
  };
  for (const HttpFailure failure : {HttpFailure::kDns, HttpFailure::kTls, HttpFailure::kUrl})
    EXPECT_THAT(advice(failure), HasSubstr(AddressVariable(settings)));
  EXPECT_THAT(advice(HttpFailure::kDns), HasSubstr("name"));
  EXPECT_THAT(advice(HttpFailure::kTls), HasSubstr("certificates"));
  EXPECT_THAT(advice(HttpFailure::kTimeout), HasSubstr("network"));
  EXPECT_THAT(advice(HttpFailure::kUrl), HasSubstr("https://"));
}

}  // namespace
}  // namespace crucible
