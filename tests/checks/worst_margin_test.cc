// The worst margin of a check: kept with the matrix that it is of, and shown to people.
#include <gmock/gmock.h>

#include "base/json.h"
#include "checks/report.h"
#include "tests/checks/judge_fixture.h"

namespace crucible::judge {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Judge, EachCheckKeepsItsMarginsTheirMatricesAndTheSeedOfItsInputs) {
  const auto report = RunCheck(With("time_us 90\n"));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->ExitCode(), 0) << report->reason;
  const nlohmann::json json = ToJson(*report);
  std::set<std::uint64_t> seeds;
  for (const nlohmann::json& check : json["checks"]) {
    EXPECT_EQ(check["worst"]["eigen"], 1) << check;
    seeds.insert(check["seed"].get<std::uint64_t>());
  }
  EXPECT_EQ(seeds.size(), json["checks"].size()) << "each has inputs of its own";
}

TEST_F(Judge, TheWorstMarginOfAReportIsThatOfOneCheckAndOneMatrix) {
  const auto report = RunCheck(With("mode wrong_check\nonly zero n=8\n"));
  ASSERT_TRUE(report);
  nlohmann::json json = ToJson(*report);
  json["checks"][1]["margins"]["eigen"] = 812;
  json["checks"][1]["worst"]["eigen"] = 2;
  const auto worst = WorstMargins(json);
  ASSERT_TRUE(worst.contains("eigen"));
  EXPECT_EQ(worst.at("eigen").value, 812);
  EXPECT_EQ(worst.at("eigen").limit, 200);
  EXPECT_EQ(worst.at("eigen").check, json["checks"][1]["case"]);
  EXPECT_EQ(worst.at("eigen").matrix, 2);
  EXPECT_EQ(worst.at("eigen").seed, report->checks[1].result.seed);
  EXPECT_THAT(RenderReport(json), HasSubstr("worst margin"));
  EXPECT_THAT(RenderReport(json), HasSubstr(std::to_string(report->checks[1].result.seed)));
}

TEST(RenderReport, FailedChecksWithTheSameWordsAreCountedNotRepeated) {
  nlohmann::json json = {{"op", "check"}, {"verdict", "crashed"}, {"reason", "r"}};
  json["checks"] = nlohmann::json::array();
  for (const auto& [name, why] : {std::pair("a", "it died"), std::pair("b", "not run"),
                                  std::pair("c", "not run"), std::pair("d", "not run")})
    json["checks"].push_back({{"case", name}, {"pass", false}, {"reason", why}});
  json["checks"].push_back({{"case", "e"}, {"pass", true}});
  EXPECT_THAT(RenderReport(json), HasSubstr("1 of 5 checks pass\n"
                                            "failed check  why\n"
                                            "a             it died\n"
                                            "b             not run\n"
                                            "… and 2 more  the same"));
}

// A harness need not say which matrix, and a stored report of an earlier judge does not.
TEST_F(Judge, AMarginWithoutItsMatrixIsStillAMargin) {
  const nlohmann::json earlier = {
      {"op", "check"},
      {"verdict", "accepted"},
      {"checks", {{{"case", "dense n=3"}, {"pass", true}, {"margins", {{"eigen", 0.5}}}}}}};
  const auto worst = WorstMargins(earlier);
  EXPECT_EQ(worst.at("eigen").value, 0.5);
  EXPECT_EQ(worst.at("eigen").matrix, -1);
  EXPECT_THAT(RenderReport(earlier), HasSubstr("dense n=3"));
  EXPECT_THAT(RenderReport(nlohmann::json::object()), Not(HasSubstr("margin")));
}

}  // namespace
}  // namespace crucible::judge
