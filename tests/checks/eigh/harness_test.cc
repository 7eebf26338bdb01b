// eigh_harness as a process: the contract of docs/target_protocol.md with an honest library.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>

#include "checks/eigh/families.h"
#include "tests/checks/eigh/harness_client.h"

namespace crucible::eigh {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const Json kSmall = {{"name", "small"}, {"kind", "dense"}, {"n", 12}, {"batch", 3}, {"cond", 1}};

class Harness : public ::testing::Test {
 protected:
  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }
};

TEST_F(Harness, AnswersTheFiveRequests) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  const Json hello = client.Hello();
  ASSERT_EQ(hello["ok"], true) << hello;
  EXPECT_EQ(hello["protocol"], 1);
  EXPECT_EQ(hello["target"], "eigh_cpu");
  EXPECT_EQ(hello["configuration"]["name"], "fixture");
  EXPECT_EQ(hello["library_sha256"].get<std::string>().size(), 64u);
  for (const char* field :
       {"compiler", "cpu", "kernel", "governor", "threads", "blas", "harness_sha256", "protocol"})
    EXPECT_TRUE(hello["conditions"][field].is_string()) << field;

  const Json check = client.Check(kSmall);
  ASSERT_EQ(check["pass"], true) << check;
  for (const char* gate : {"ascending", "eigen", "orthogonal", "reconstruction"})
    EXPECT_LE(check["margins"][gate].get<double>(), check["limits"][gate].get<double>());
  EXPECT_GT(check["margins"]["eigen"].get<double>(), 0);

  const Json prepare = client.Prepare(kSmall);
  ASSERT_EQ(prepare["ok"], true) << prepare;
  EXPECT_EQ(prepare["inputs"], 8);
  EXPECT_EQ(prepare["bytes"], 3 * 12 * 12 * 4);

  const Json slot = client.Slot(30, 3, 500);
  ASSERT_EQ(slot["verified"], true) << slot;
  EXPECT_GE(slot["calls"].get<int>(), 3);
  EXPECT_LE(slot["calls"].get<int>(), 500);
  EXPECT_GT(slot["min_us"].get<double>(), 0);
  EXPECT_LE(slot["min_us"].get<double>(), slot["median_us"].get<double>());
  EXPECT_LE(slot["sum_us"].get<double>(), slot["wall_us"].get<double>());
  EXPECT_TRUE(slot["throttled"].is_boolean());
  EXPECT_TRUE(slot["clock"].is_string());

  EXPECT_EQ(client.Ask({{"op", "bye"}})["ok"], true);
  const auto status = client.Wait();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->ok()) << status->Describe();
}

TEST_F(Harness, ChecksEveryFamilyAtSmallAndOddOrders) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  for (const Family& family : Families())
    for (const int n : {1, 2, 3, 17}) {
      const Json reply = client.Check({{"kind", family.name}, {"n", n}, {"batch", 2}});
      EXPECT_EQ(reply.value("pass", false), true) << family.name << " n=" << n << " " << reply;
    }
}

TEST_F(Harness, SameSeedGivesTheSameMarginsAndAnotherSeedOthers) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  const Json first = client.Check(kSmall, 1), again = client.Check(kSmall, 1);
  EXPECT_EQ(first["margins"], again["margins"]);
  EXPECT_NE(first["margins"], client.Check(kSmall, 2)["margins"]);
}

TEST_F(Harness, SaysWhichMatrixOfTheBatchIsTheWorstByEachGate) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  for (const char* kind : {"dense", "nan_inf"}) {
    const Json reply = client.Check({{"kind", kind}, {"n", 17}, {"batch", 3}, {"cond", 1}});
    ASSERT_TRUE(reply.value("pass", false)) << reply;
    for (const auto& [gate, margin] : reply["margins"].items()) {
      const std::int64_t matrix = reply["worst"].value(gate, std::int64_t{-1});
      EXPECT_TRUE(matrix >= 0 && matrix < 3) << gate << " " << reply;
    }
  }
}

TEST_F(Harness, SlotKeepsItsCallLimits) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  ASSERT_EQ(client.Prepare(kSmall)["ok"], true);
  EXPECT_EQ(client.Slot(10'000, 1, 4)["calls"], 4);  // the maximum before the budget
  EXPECT_EQ(client.Slot(0, 6, 500)["calls"], 6);     // the minimum after it
  EXPECT_EQ(client.Slot(0, 1, 1)["calls"], 1);
}

TEST_F(Harness, RefusesBadRequestsWithAReasonAndGoesOn) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  const std::pair<const char*, const char*> cases[] = {
      {R"({"op":"dance"})", "unknown"},
      {R"({"op":"check")", "not JSON"},
      {R"({"op":"hello","protocol":2})", "\"protocol\": it is 2"},
      {R"({"op":"check","seed":1})", "\"case\""},
      {R"({"op":"check","seed":1,"case":[]})", "\"case\""},
      {R"({"op":"check","case":{"n":4}})", "\"seed\""},
      {R"({"op":"check","seed":1,"case":{"batch":4}})", "\"n\": it is missing"},
      {R"({"op":"check","seed":1,"case":{"n":0}})", "\"n\": it is 0"},
      {R"({"op":"check","seed":1,"case":{"n":-3}})", "\"n\": it is -3"},
      {R"({"op":"check","seed":1,"case":{"n":4,"batch":0}})", "\"batch\": it is 0"},
      {R"({"op":"check","seed":1,"case":{"n":8192,"batch":5}})", "more than 1 GiB"},
      {R"({"op":"check","seed":1,"case":{"n":4,"cond":-1}})", "\"cond\": it is -1"},
      {R"({"op":"check","seed":1,"case":{"n":4,"cond":"big"}})", "\"cond\""},
      {R"({"op":"check","seed":1,"case":{"n":4,"kind":7}})", "\"kind\": it is no string"},
      {R"({"op":"check","seed":1,"case":{"n":4,"kind":"dens"}})", "there are dense spectrum"},
      {R"({"op":"check","seed":1,"case":{"n":4,"size":4}})", "no such field"},
      {R"({"op":"prepare","seed":1,"case":{"n":4,"kind":"nan_inf"}})", "checked, not timed"},
      {R"({"op":"slot","budget_ms":10,"min_calls":1,"max_calls":5})", "no case is prepared"},
      {R"({"op":"slot","budget_ms":10,"min_calls":0,"max_calls":5})", "\"min_calls\": it is 0"},
      {R"({"op":"slot","budget_ms":10,"min_calls":9,"max_calls":5})", "\"max_calls\": it is 5"},
      {R"({"op":"slot","budget_ms":"x","min_calls":9,"max_calls":5})", "\"budget_ms\""},
  };
  for (const auto& [line, want] : cases) {
    const Json reply = client.AskText(line);
    EXPECT_EQ(reply["ok"], false) << line;
    EXPECT_THAT(reply.value("error", ""), HasSubstr(want)) << line;
  }
  EXPECT_EQ(client.Hello()["ok"], true);
}

TEST_F(Harness, MissingOrBrokenLibraryIsAReplyNotACrash) {
  for (const auto& [path, want] :
       {std::pair<std::string, const char*>{"/nonexistent/lib.so", "there is no such file"},
        {CRUCIBLE_SOURCE_DIR "/CMakeLists.txt", "no 64-bit ELF shared library"},
        {CRUCIBLE_BIN_DIR "/eigh_harness", "it needs"}}) {
    HarnessClient client(path);
    for (const Json& reply : {client.Hello(), client.Check(kSmall), client.Prepare(kSmall)}) {
      EXPECT_EQ(reply["ok"], false) << path;
      EXPECT_THAT(reply.value("error", ""), HasSubstr(want)) << path;
    }
    EXPECT_EQ(client.Ask({{"op", "bye"}})["ok"], true);
  }
}

TEST_F(Harness, UnderAProfilerTimesAndChecksNothing) {
  ::setenv("CRUCIBLE_PROFILED", "1", 1);
  HarnessClient client(HarnessClient::Fixture("honest"));
  ::unsetenv("CRUCIBLE_PROFILED");
  EXPECT_EQ(client.Hello()["conditions"]["isolation"], "process");
  const Json check = client.Check(kSmall);
  EXPECT_EQ(check["ok"], false);
  EXPECT_THAT(check.value("error", ""), HasSubstr("CRUCIBLE_PROFILED is set"));
  EXPECT_EQ(client.Prepare(kSmall)["ok"], true);
  EXPECT_EQ(client.Slot(1, 1, 1)["ok"], true);
}

// The other arm may be timed then: nothing that a library leaves running must run.
TEST_F(Harness, StopsTheLibrarysProcessBetweenRequests) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  const auto state = [&] {
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", client.pid()));
    pid_t worker = 0;
    EXPECT_TRUE(children >> worker);
    std::ifstream stat(fmt::format("/proc/{}/stat", worker));
    std::string number, name, state;
    stat >> number >> name >> state;
    return name + " " + state;
  };
  ASSERT_EQ(client.Hello()["ok"], true);
  EXPECT_EQ(state(), "(eigh_worker) T");
  ASSERT_EQ(client.Check(kSmall)["pass"], true);
  EXPECT_EQ(state(), "(eigh_worker) T");
  ASSERT_EQ(client.Prepare(kSmall)["ok"], true);
  EXPECT_EQ(state(), "(eigh_worker) T");
  ASSERT_EQ(client.Slot(1, 2, 2)["ok"], true);
  EXPECT_EQ(state(), "(eigh_worker) T");
}

TEST_F(Harness, EndsWhenTheOtherSideIsGone) {
  HarnessClient client(HarnessClient::Fixture("honest"));
  ASSERT_EQ(client.Hello()["ok"], true);
  client.CloseRequests();
  const auto status = client.Wait();
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 1);
}

TEST_F(Harness, WrongArgumentsAreUsageErrors) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{},
                                               {"--frobnicate"},
                                               {"--library", "x", "--threads", "0"},
                                               {"--library", "x"}}) {  // the last: no descriptors
    SubprocessSpec spec;
    spec.argv = {CRUCIBLE_BIN_DIR "/eigh_harness"};
    spec.argv.insert(spec.argv.end(), more.begin(), more.end());
    spec.unset = {"CRUCIBLE_REQUEST_FD", "CRUCIBLE_REPLY_FD"};
    const auto run = RunCaptured(spec, std::chrono::seconds(20));
    ASSERT_TRUE(run.has_value());
    EXPECT_EQ(run->status.code, 2) << run->err;
    EXPECT_FALSE(run->err.empty());
  }
}

}  // namespace
}  // namespace crucible::eigh
