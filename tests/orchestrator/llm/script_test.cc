// A scripted model answers by the place of the conversation, fills in what it was told, and refuses
// a scenario with a mistake.
#include "tests/support/scripted_server/script.h"

#include <gmock/gmock.h>

namespace crucible {
namespace {

using testing::HasSubstr;

Script Read(const std::string& text) {
  auto scenario = ParseScenario(text);
  EXPECT_TRUE(scenario) << scenario.error().text;
  return Script(std::move(*scenario));
}

Asked Place(const std::string& first, int assistant_messages,
            std::vector<std::string> results = {}) {
  Asked asked;
  asked.first_user_text = first;
  asked.assistant_messages = assistant_messages;
  asked.tool_results = std::move(results);
  return asked;
}

TEST(Script, AMissionThatAsksAgainGetsTheSameTurn) {
  Script script = Read(R"({"conversations":[{"steps":[{"text":"a"},{"text":"b"}]}]})");
  EXPECT_EQ(script.Next(Place("m", 0))->step.text, "a");
  EXPECT_EQ(script.Next(Place("m", 1))->step.text, "b");
  EXPECT_EQ(script.Next(Place("m", 0))->step.text, "a");
  const auto over = script.Next(Place("m", 2));
  ASSERT_FALSE(over);
  EXPECT_THAT(over.error().text, HasSubstr("over"));
}

TEST(Script, ASequentialOneGoesOnWhateverTheHistory) {
  Script script =
      Read(R"({"conversations":[{"sequential":true,"steps":[{"text":"a"},{"text":"b"}]}]})");
  EXPECT_EQ(script.Next(Place("m", 0))->step.text, "a");
  EXPECT_EQ(script.Next(Place("m", 0))->step.text, "b");
}

TEST(Script, FaultsComeFirstAndForEachMission) {
  Script script =
      Read(R"({"conversations":[{"steps":[{"text":"a"},{"fault":529,"times":2},{"text":"b"}]}]})");
  for (const char* mission : {"m1", "m2"}) {
    EXPECT_EQ(script.Next(Place(mission, 0))->step.text, "a");
    EXPECT_EQ(script.Next(Place(mission, 1))->step.status, 529);
    EXPECT_EQ(script.Next(Place(mission, 1))->step.status, 529);
    EXPECT_EQ(script.Next(Place(mission, 1))->step.text, "b");
  }
}

TEST(Script, WordsChooseAndALimitPassesOn) {
  Script script = Read(R"({"conversations":[
      {"match":["n32","kernel"],"limit":1,"steps":[{"text":"first"}]},
      {"match":"n32","steps":[{"text":"second"}]}]})");
  EXPECT_EQ(script.Next(Place("a kernel for n32, m1", 0))->step.text, "first");
  EXPECT_EQ(script.Next(Place("a kernel for n32, m2", 0))->step.text, "second");
  EXPECT_EQ(script.Next(Place("a kernel for n32, m1", 0))->step.text, "first");
  EXPECT_FALSE(script.Next(Place("n64", 0)));
}

TEST(Script, FillsInTheLatestOfWhatItWasTold) {
  Script script = Read(R"x({"conversations":[{"captures":{"id":"mission (m[0-9]+)"},"steps":[
      {"text":"${id} ${job} $${HOME}","captures":{"job":"job ([0-9]+)"},
       "tools":[{"name":"wait","arguments":{"jobs":["${job}","say \"${job}\""]}}]}]}]})x");
  const auto due = script.Next(Place("mission m17", 0, {"job 1", "x\njob 2\njob 3"}));
  ASSERT_TRUE(due) << due.error().text;
  EXPECT_EQ(due->step.text, "m17 2 ${HOME}");
  EXPECT_EQ(due->step.calls.at(0).arguments, R"({"jobs":["2","say \"2\""]})");
  const auto nothing = script.Next(Place("mission m18", 0));
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().text, HasSubstr("${job}"));
}

TEST(Script, ReadsBothFormatsAlike) {
  const auto messages = ReadAsked(true, R"({"model":"m","stream":true,"messages":[
      {"role":"user","content":[{"type":"text","text":"go"}]},
      {"role":"assistant","content":[{"type":"tool_use","id":"1","name":"a","input":{}}]},
      {"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"told"}]}]})");
  const auto chat = ReadAsked(false, R"({"model":"m","stream":true,"messages":[
      {"role":"system","content":"s"},{"role":"user","content":"go"},
      {"role":"assistant","content":null},{"role":"tool","tool_call_id":"1","content":"told"}]})");
  ASSERT_TRUE(messages && chat);
  for (const Asked& asked : {*messages, *chat}) {
    EXPECT_EQ(asked.first_user_text, "go");
    EXPECT_EQ(asked.tool_results, std::vector<std::string>{"told"});
    EXPECT_EQ(asked.assistant_messages, 1);
    EXPECT_TRUE(asked.stream);
  }
  EXPECT_FALSE(ReadAsked(true, "{}"));
  EXPECT_FALSE(ReadAsked(true, "no json"));
}

TEST(Scenario, AMistakeIsAnErrorWithItsPlace) {
  const auto error = [](const std::string& text) {
    const auto scenario = ParseScenario(text);
    return scenario ? std::string() : scenario.error().text;
  };
  EXPECT_THAT(error("{"), HasSubstr("no JSON"));
  EXPECT_THAT(error(R"({"conversation":[]})"), HasSubstr("\"conversation\""));
  EXPECT_THAT(error(R"({"conversations":[],"quirks":["no_dnoe"]})"), HasSubstr("no_dnoe"));
  const auto step = [&](const std::string& text) {
    return error(R"({"conversations":[{"steps":[{"text":"a"},)" + text + "]}]}");
  };
  EXPECT_THAT(step(R"({"txt":"b"})"), HasSubstr("conversation 0, step 1"));
  EXPECT_THAT(step(R"({"fault":"explode"})"), HasSubstr("no such fault"));
  EXPECT_THAT(step(R"({"fault":42})"), HasSubstr("between 200 and 599"));
  EXPECT_THAT(step(R"({"text":"b","stop":"whenever"})"), HasSubstr("no such stop"));
  EXPECT_THAT(step(R"x({"text":"b","captures":{"c":"("}})x"), HasSubstr("regular expression"));
  EXPECT_THAT(step(R"({"tools":[{"arguments":{}}]})"), HasSubstr("no name"));
  EXPECT_EQ(step(R"({"text":"b"})"), "");
}

}  // namespace
}  // namespace crucible
