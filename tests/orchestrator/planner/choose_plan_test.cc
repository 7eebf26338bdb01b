// A model's choice among the planner's candidates: taken when it is one of them, else the policy's
// first with the cause. Both wire formats, streaming and not.
#include "orchestrator/agents/planner/choose_plan.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/spend.h"
#include "tests/orchestrator/llm/provider_fixture.h"

namespace crucible {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

std::string Choose(const std::string& arguments) {
  return R"({"text":"I compare.","tools":[{"name":"choose","arguments":)" + arguments +
         R"(}],"usage":{"input":1000,"output":200}})";
}

constexpr char kSecond[] = R"({"candidate":2,"why":"n160 has the most room."})";

class ChoosesPlan : public ProviderTest {
 protected:
  ChoosesPlan() {
    const auto made = MakeTemporaryDirectory("choose-plan");
    CRUCIBLE_CHECK(made.has_value(), "a folder for the test");
    folder = *made;
    question.planner.model.name = "scripted-1";
    for (const char* name : {"n128", "n160", "n192"}) {
      MissionPlan plan;
      plan.cases = {name};
      plan.flavour = "kernel";
      plan.goal = std::string("Make ") + name + " faster";
      plan.why = std::string(name) + " has the largest score";
      question.candidates.push_back(plan);
    }
    question.context = "# Missions of this campaign\n\nnone yet\n";
  }
  ~ChoosesPlan() override { (void)RemoveTree(folder); }

  PlanChoice Ask() {
    if (!provider) Connect();
    ChoosePlanSpec spec;
    spec.provider = provider.get();
    spec.transcript = folder / "transcript.jsonl";
    spec.spend = folder / "spend.json";
    spec.secrets = {kTestKey};
    spec.clock = real_clock ? nullptr : &clock;
    PlanChoice choice = ChoosePlan(question, spec);
    ExpectNoKey(ToText(choice, question.candidates));
    ExpectNoKey(Transcript());
    return choice;
  }

  void ExpectThePolicysFirst(const PlanChoice& choice, const std::string& cause) {
    EXPECT_EQ(choice.index, 0u);
    EXPECT_FALSE(choice.by_model());
    EXPECT_THAT(choice.fallback, HasSubstr(cause));
    EXPECT_THAT(ToText(choice, question.candidates), HasSubstr("the policy's first of 3"));
  }

  std::string Transcript() { return ReadFile(folder / "transcript.jsonl").value_or(""); }
  Spend Spent(const PlanChoice& choice) { return SpendIn(json::parse(choice.spend)); }

  std::filesystem::path folder;
  PlanQuestion question;
};
INSTANTIATE_TEST_SUITE_P(Wires, ChoosesPlan, kEveryWire,
                         [](const auto& info) { return NameOf(info.param); });

TEST_P(ChoosesPlan, AValidChoiceIsTakenWithItsReasonAndItsCost) {
  Serve(Choose(kSecond));
  const PlanChoice choice = Ask();
  EXPECT_TRUE(choice.by_model()) << choice.fallback;
  EXPECT_EQ(choice.index, 1u);
  EXPECT_EQ(choice.why, "n160 has the most room.");
  EXPECT_EQ(ToText(choice, question.candidates),
            "scripted-1 chose 2 of 3 candidates (n160, kernel): n160 has the most room.");
  EXPECT_EQ(Spent(choice).tokens, 1200);
  EXPECT_NEAR(Spent(choice).usd, 0.003 + 0.003, 1e-9);
  EXPECT_THAT(Transcript(), HasSubstr("n160 has the most room."));
  EXPECT_EQ(SpendIn(AgentSpend(folder)).tokens, 1200) << "on disk, should nobody take the choice";
}

TEST_P(ChoosesPlan, TheModelIsShownTheCandidatesAndTheLogAndOneTool) {
  Serve(Choose(kSecond));
  Ask();
  ASSERT_EQ(server->requests().size(), 1u);
  const std::string body = server->requests().front().body;
  for (const char* shown : {"1. n128 (kernel)", "3. n192 (kernel)", "n160 has the largest score",
                            "Missions of this campaign"})
    EXPECT_THAT(body, HasSubstr(shown));
  EXPECT_EQ(json::parse(body)["tools"].size(), 1u);
}

TEST_P(ChoosesPlan, ANumberThatIsNoneOfThemIsThePolicysFirst) {
  for (const char* arguments : {R"({"candidate":4,"why":"w"})", R"({"candidate":0,"why":"w"})",
                                R"({"candidate":-1,"why":"w"})"}) {
    Serve(Choose(arguments));
    ExpectThePolicysFirst(Ask(), "an integer from 1 to 3");
  }
}

TEST_P(ChoosesPlan, AMalformedAnswerIsThePolicysFirst) {
  const std::pair<std::string, std::string> answers[] = {
      {R"({"tools":[{"name":"choose","arguments":{}}],"malformed_arguments":true})", "JSON"},
      {Choose(R"({"candidate":"n160","why":"w"})"), "candidate"},
      {Choose(R"({"candidate":2})"), "why"},
      {R"({"text":"The second one."})", "0 calls"},
      {R"({"tools":[{"name":"run_command","arguments":{"command":"ls"}}]})", "no tool"},
      {R"({"tools":[{"name":"choose","arguments":{"candidate":2,"why":"w"}},
                    {"name":"choose","arguments":{"candidate":3,"why":"w"}}]})",
       "2 calls"}};
  for (const auto& [answer, cause] : answers) {
    Serve(answer);
    const PlanChoice choice = Ask();
    ExpectThePolicysFirst(choice, cause);
    EXPECT_GT(Spent(choice).tokens, 0) << "an answer of no use is paid for, too";
  }
}

TEST_P(ChoosesPlan, ABusyProviderIsAskedAgainWithinTheWallTime) {
  Serve(R"({"fault":529,"retry_after_ms":"50"},)" + Choose(kSecond));
  const PlanChoice choice = Ask();
  EXPECT_EQ(choice.index, 1u) << choice.fallback;
  EXPECT_THAT(Transcript(), HasSubstr("529"));
  EXPECT_EQ(json::parse(choice.spend)["retries"], 1);
}

TEST_P(ChoosesPlan, AProviderThatStaysBusyIsThePolicysFirstWhenTheWallTimeIsOver) {
  Serve(R"({"fault":529,"times":100},)" + Choose(kSecond));
  question.planner.wall_ms = 5'000;
  ExpectThePolicysFirst(Ask(), "529");
  EXPECT_LE(clock.slept_ms, 5'000);
}

TEST_P(ChoosesPlan, ASilentProviderIsThePolicysFirstWhenTheWallTimeIsOver) {
  Serve(R"({"fault":"silent"})");
  real_clock = true;
  question.planner.wall_ms = 400;
  ExpectThePolicysFirst(Ask(), "deadline");
}

TEST_P(ChoosesPlan, AnUnreachableProviderIsThePolicysFirst) {
  Serve(Choose(kSecond));
  server.reset();  // its port answers nobody any more
  question.planner.wall_ms = 3'000;
  ExpectThePolicysFirst(Ask(), "scripted-1 at http://127.0.0.1");
}

TEST_P(ChoosesPlan, AModelThatRefusesIsThePolicysFirst) {
  Serve(R"({"text":"I will not.","stop":"refusal"})");
  ExpectThePolicysFirst(Ask(), "would not answer");
}

TEST_P(ChoosesPlan, AUsedUpBudgetAsksNobody) {
  Serve(Choose(kSecond));
  question.planner.usd = 0.5;
  question.usd_spent = 0.5;
  ExpectThePolicysFirst(Ask(), "0.5 USD are spent");
  question.usd_spent = 0;
  question.planner.tokens = 1000;
  question.tokens_spent = 1200;
  ExpectThePolicysFirst(Ask(), "1000 tokens are used up");
  EXPECT_TRUE(server->requests().empty());
}

TEST_P(ChoosesPlan, AsItsOwnProcessItLeavesAChoiceEvenWithoutAKey) {
  question.planner.model.provider = ToString(settings.kind);
  question.planner.model.key_variable = "CRUCIBLE_NO_SUCH_KEY";
  ASSERT_TRUE(WritePlanQuestion(folder, question));
  const auto chosen = RunPlanner(folder, {});
  ASSERT_TRUE(chosen) << chosen.error().text;
  ExpectThePolicysFirst(*chosen, "CRUCIBLE_NO_SUCH_KEY");

  Serve(Choose(kSecond));
  ::setenv(settings.kind == ProviderKind::kAnthropic ? "ANTHROPIC_BASE_URL" : "OPENAI_BASE_URL",
           server->base_url().c_str(), 1);
  question.planner.model.key_variable = settings.key_variable;
  ASSERT_TRUE(WritePlanQuestion(folder, question));
  ASSERT_TRUE(RunPlanner(folder, {}));
  const auto read = ReadPlanChoice(folder, question.candidates.size());
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_EQ(read->index, 1u) << read->fallback;
  ExpectNoKey(ReadFile(folder / "choice.json").value_or(""));
  EXPECT_FALSE(ReadPlanChoice(folder, 1)) << "it names none of a shorter list";
  ClearProviderEnvironment();
}

}  // namespace
}  // namespace crucible
