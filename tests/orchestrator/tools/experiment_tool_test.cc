// log_experiment: numbers of the harness, words of the agent, and no experiment twice.
#include "mission_fixture.h"
#include "results_log/case_text.h"

namespace crucible {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class ExperimentTool : public MissionFixture {
 protected:
  json Words(const std::string& mechanism, const json& params = json::object()) {
    return {{"mechanism", mechanism}, {"hypothesis", "it helps"}, {"params", params}};
  }
  std::vector<Entry> Entries() {
    Store store = OpenLog();
    return store.QueryEntries({}).value();
  }
};

TEST_F(ExperimentTool, TheNumbersAreTheHarnesss) {
  Edit("speed = 1", "speed = 2");
  EXPECT_ANSWER(Call("compare", json::object()), "accepted");
  EXPECT_ANSWER(Call("log_experiment", Words("speed", {{"speed", {1, 2}}})),
                "logged as [e1]: win speed: n32 100 us -> 90.0 us (-10.0 %");
  const Entry entry = Entries().at(0);
  EXPECT_EQ(entry.key, "c0.m1.1");
  EXPECT_EQ(entry.author, "agent:toy-model");
  EXPECT_EQ(entry.flavour, "kernel");
  EXPECT_EQ(entry.cases.at(0).after_us, 90.0);
  EXPECT_EQ(entry.margins.at("eigen"), 0.5);
  EXPECT_EQ(MarginText(entry.margins.at("eigen")), "0.5 (quick n=3, matrix 2, seed 77)");
  EXPECT_EQ(entry.conditions.at("compiler"), "gcc 12");
  EXPECT_EQ(json::parse(entry.change)["params"]["speed"], (json{1, 2}));
  EXPECT_EQ(entry.evidence.at(0).kind, "report");
  std::string diff;
  for (const Evidence& evidence : entry.evidence)
    if (evidence.kind == "file") diff = ReadFile(order().workspace.home / evidence.ref).value();
  EXPECT_THAT(diff, HasSubstr("+int speed = 2;"));
}

TEST_F(ExperimentTool, NothingMeasuredNothingLogged) {
  EXPECT_REFUSED(Call("log_experiment", Words("speed")), "nothing was measured yet");
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_ANSWER(Call("log_experiment", Words("speed")), "logged");
  EXPECT_REFUSED(Call("log_experiment", Words("again")), "is in the log as [e1]");
  EXPECT_EQ(Entries().size(), 1u);
}

TEST_F(ExperimentTool, AnAgentsOwnNumbersHaveNoPlace) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  json words = Words("speed");
  words["ratio"] = 0.1;
  const ToolAnswer answer = Call("log_experiment", words);
  EXPECT_TRUE(answer.bad_arguments);
  EXPECT_THAT(answer.text, HasSubstr("no argument \"ratio\""));
}

TEST_F(ExperimentTool, TheLogTakesNoBooks) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  json words = Words("speed", {{"speed", std::string(3000, 'x')}});
  EXPECT_REFUSED(Call("log_experiment", words), "params");
  words = Words("speed");
  words["description"] = std::string(5000, 'x');
  EXPECT_REFUSED(Call("log_experiment", words), "description");
  EXPECT_TRUE(Entries().empty());
}

TEST_F(ExperimentTool, AScreenThatPassedIsNoWin) {
  Edit("speed = 1", "speed = 2");
  Call("compare", {{"rule", "screen"}});
  EXPECT_ANSWER(Call("log_experiment", Words("speed")), "inconclusive");
}

TEST_F(ExperimentTool, ARejectionIsLoggedOnceAndItsRepetitionRefusedByName) {
  Judge("rejected", 1.1);
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_ANSWER(Call("log_experiment", Words("speed", {{"speed", 2}})), "loss");
  Edit("more = 2", "more = 3");  // other files, the same idea
  Call("compare", json::object());
  EXPECT_REFUSED(Call("log_experiment", Words("Speed", {{"speed", {1, 2}}})), "[e1] speed: loss");
  EXPECT_EQ(Entries().size(), 1u);
  // It may go on, and end, without that entry.
  EXPECT_ANSWER(Call("report", {{"outcome", "no_change"}, {"report", "known"}}), "ends");
}

TEST_F(ExperimentTool, ARejectionOfOtherConditionsDoesNotStandInTheWay) {
  {
    Store store = OpenLog();
    Entry old;
    old.key = "old.1";
    old.kind = EntryKind::kNull;
    old.target = "toy";
    old.mechanism = "speed";
    old.change = R"({"params":{}})";
    old.cases = {{.name = "n32"}};
    old.conditions = {{"compiler", "gcc 11"}};
    ASSERT_TRUE(store.AddEntry(old));
  }
  Judge("no_difference", 1.0);
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_ANSWER(Call("log_experiment", Words("speed")), "logged as [e2]: null");
}

TEST_F(ExperimentTool, AConfirmedGainReplacesTheRejectionItContradicts) {
  {
    Store store = OpenLog();
    Entry old;
    old.key = "old.1";
    old.kind = EntryKind::kLoss;
    old.target = "toy";
    old.mechanism = "speed";
    old.cases = {{.name = "n32"}};
    old.conditions = order().now;
    ASSERT_TRUE(store.AddEntry(old));
  }
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  EXPECT_ANSWER(Call("log_experiment", Words("speed")), "it replaces old.1");
  EXPECT_EQ(Entries().at(1).supersedes, "old.1");
}

TEST_F(ExperimentTool, WhatWasMeasuredIsLoggedAfterARestart) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  Remake();
  EXPECT_ANSWER(Call("log_experiment", Words("speed")), "logged as [e1]: win");
  EXPECT_EQ(Entries().at(0).cases.at(0).ratio, 0.9);
}

TEST_F(ExperimentTool, TheLogCanBeAsked) {
  Edit("speed = 1", "speed = 2");
  Call("compare", json::object());
  Call("log_experiment", Words("speed"));
  EXPECT_ANSWER(Call("log_query", {{"kinds", {"win"}}}), "[e1]");
  EXPECT_ANSWER(Call("log_query", {{"kinds", {"loss"}}}), "no entry matches");
  EXPECT_ANSWER(Call("log_query", {{"entry", "e1"}}), "\"hypothesis\": \"it helps\"");
  EXPECT_REFUSED(Call("log_query", {{"entry", "e99"}}), "e99");
  EXPECT_ANSWER(Call("brief", json::object()), "[e1] speed");
}

TEST_F(ExperimentTool, ALongLogIsReadPageByPage) {
  {
    Store store = OpenLog();
    for (int i = 1; i <= 5; ++i) {
      Entry entry;
      entry.key = fmt::format("old.{}", i);
      entry.kind = EntryKind::kLoss;
      entry.target = "toy";
      entry.mechanism = fmt::format("idea {}", i);
      entry.time_ms = 1000 * i;
      ASSERT_TRUE(store.AddEntry(entry));
    }
  }
  const ToolAnswer first = Call("log_query", {{"limit", 2}});
  EXPECT_ANSWER(first, "[1 to 2, newest first; older ones: offset 2]");
  EXPECT_THAT(first.text, testing::HasSubstr("idea 5"));
  EXPECT_ANSWER(Call("log_query", {{"limit", 2}, {"offset", 2}}), "older ones: offset 4");
  const ToolAnswer last = Call("log_query", {{"limit", 2}, {"offset", 4}});
  EXPECT_ANSWER(last, "[5 to 5, newest first; there are no older ones]");
  EXPECT_THAT(last.text, testing::HasSubstr("idea 1"));
  EXPECT_ANSWER(Call("log_query", {{"offset", 5}}), "there are 5");
  EXPECT_THAT(Call("log_query", json::object()).text, testing::Not(testing::HasSubstr("offset")));
}

TEST_F(ExperimentTool, AVerdictsNameDoesNotHideThatItWasSlower) {
  // One round and 81 % slower: no gain is excluded with certainty, a loss is not yet shown.
  Judge("no_difference", 1.81);
  Edit("speed = 1", "speed = 2");
  EXPECT_ANSWER(Call("compare", json::object()), "it was SLOWER, n32 +81.00 %");
}

}  // namespace
}  // namespace crucible
