// A target file: what is understood, and how each mistake is told.
#include "checks/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/json.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;

const char kWhole[] = R"(name = "eigh_cpu"
description = "batched eigh"
device = "cpu"
[paths]
editable = ["kernels/eigh/cpu/", "one.h"]
protected = ["kernels/eigh/cpu/eigh_cpu.h"]
[build]
commands = [["cmake", "-S", "{source}/kernels", "-B", "{build}"], ["cmake", "--build", "{build}"]]
on_device = true
limit = "3m"
[harness]
command = ["{bin}/eigh_harness", "--library", "{build}/libeigh_cpu.so"]
[[peer]]
name = "openblas"
command = ["{bin}/eigh_harness", "--library", "{lib}/libpeer.so"]
[[case]]
name = "n32"
params = { batch = 20, n = 32, cond = 1.5, kind = "dense" }
floor_us = 12.0
floor_why = "flops"
[[case]]
name = "n176"
[[check]]
params = { kind = ["dense", "spectrum"], n = [1, 32], batch = 3 }
level = "full"
[[check]]
params = { kind = "dense", n = 5 }
level = "quick"
[[exploit]]
name = "caches"
command = ["{bin}/eigh_harness", "--library", "{lib}/libcaches.so"]
expects = "stale"
case = "n176"
[limits]
ratchet = 0.03
job_limit = "5m"
slot = "50ms"
[knobs]
file = "kernels/eigh/cpu/knobs.toml"
)";

std::string ErrorOf(const std::string& toml) {
  const auto target = ParseTarget(toml, "t.toml");
  return target ? "(no error)" : target.error().text;
}

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kWhole;
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Target, ReadsEverythingTheFormatHas) {
  const auto target = ParseTarget(kWhole, "t.toml");
  ASSERT_TRUE(target) << target.error().text;
  EXPECT_EQ(target->name, "eigh_cpu");
  EXPECT_EQ(target->build_commands.size(), 2u);
  EXPECT_TRUE(target->build_on_device);
  EXPECT_EQ(target->build_limit_ms, 180'000);
  EXPECT_EQ(target->peers.at(0).name, "openblas");
  ASSERT_EQ(target->cases.size(), 2u);
  EXPECT_EQ(nlohmann::json::parse(target->cases[0].params),
            nlohmann::json::parse(R"({"batch":20,"n":32,"cond":1.5,"kind":"dense"})"));
  EXPECT_EQ(target->cases[0].floor_us, 12.0);
  EXPECT_FALSE(target->cases[1].floor_us.has_value());
  EXPECT_EQ(target->limits.ratchet, 0.03);
  EXPECT_EQ(target->limits.ratchet_short, 0.04);
  EXPECT_EQ(target->limits.job_limit_ms, 300'000);
  EXPECT_EQ(target->limits.slot_ms, 50);
  ASSERT_EQ(target->exploits.size(), 1u);
  EXPECT_EQ(target->exploits[0].expects, std::vector<std::string>{"stale"});
  EXPECT_EQ(target->knobs_file, "kernels/eigh/cpu/knobs.toml");
}

TEST(Target, ChecksAreTheProductOfTheListsNamedInTheFilesOrder) {
  const auto target = ParseTarget(kWhole, "t.toml");
  ASSERT_TRUE(target) << target.error().text;
  std::vector<std::string> names;
  for (const CheckCase& check : target->checks) names.push_back(check.name);
  EXPECT_THAT(names,
              ::testing::ElementsAre("dense n=1 batch=3", "dense n=32 batch=3",
                                     "spectrum n=1 batch=3", "spectrum n=32 batch=3", "dense n=5"));
  EXPECT_EQ(target->checks[0].level, CheckLevel::kFull);
  EXPECT_EQ(target->checks[4].level, CheckLevel::kQuick);
  EXPECT_EQ(nlohmann::json::parse(target->checks[3].params),
            nlohmann::json::parse(R"({"kind":"spectrum","n":32,"batch":3})"));
}

struct Mistake {
  std::string from, to, line, says;
};

TEST(Target, TellsEachMistakeWithFileAndLine) {
  const std::vector<Mistake> mistakes = {
      {"ratchet = 0.03", "rachet = 0.03", "35", "unknown key 'rachet' in [limits]"},
      {"floor_why = \"flops\"", "", "16", "floor_us without floor_why"},
      {"job_limit = \"5m\"", "job_limit = \"5 minutes\"", "36", "not a duration"},
      {"job_limit = \"5m\"", "job_limit = \"0s\"", "36", "not a duration"},
      {"name = \"n176\"", "name = \"n32\"", "21", "a second case is named 'n32'"},
      {"name = \"n176\"", "name = \"N 176\"", "21", "not [a-z0-9_]+"},
      {"n = 5", "n = [5, 5]", "26", "comes twice"},
      {"level = \"quick\"", "level = \"fast\"", "28", "level \"fast\" is unknown"},
      {"ratchet = 0.03", "ratchet = \"2 %\"", "35", "'ratchet' is not a number above 0"},
      {"ratchet = 0.03", "ratchet = -0.1", "35", "'ratchet' is not a number above 0"},
      {"case = \"n176\"", "case = \"n1\"", "29", "names case 'n1'"},
      {"on_device = true", "on_device = 1", "9", "not a boolean"},
      {"\"one.h\"", "\"../one.h\"", "4", "leaves the repository"},
      {"device = \"cpu\"", "", "1", "'device' is missing"},
      {"cond = 1.5", "cond = [1, 2]", "18", "neither a text, a number nor a boolean"},
      {"device = \"cpu\"", "device = \"tpu\"", "3", "device \"tpu\" is unknown"},
      {"\"{build}/libeigh_cpu.so\"", "\"{biuld}/libeigh_cpu.so\"", "12",
       "unknown placeholder {biuld}; it takes {source}, {build}"},
      {"\"{build}/libeigh_cpu.so\"", "\"{build\"", "12", "a '{' without its '}'"},
      {"name = \"eigh_cpu\"", "name = eigh", "1", ""},
      {"command = [\"{bin}/eigh_harness\", \"--library\", \"{build}/libeigh_cpu.so\"]",
       "command = [\"{bin}/eigh_harness\", \"--admit-any\"]", "11",
       "the command of [harness] has --admit-any"},
      {"command = [\"{bin}/eigh_harness\", \"--library\", \"{build}/libeigh_cpu.so\"]",
       "command = [\"sh\", \"-c\", \"eigh_harness --admit-any=true\"]", "11",
       "the command of [harness] has --admit-any"},
      {"command = [\"{bin}/eigh_harness\", \"--library\", \"{lib}/libpeer.so\"]",
       "command = [\"{bin}/eigh_harness\", \"--admit-any\"]", "13",
       "the command of [[peer]] has --admit-any"},
      {"command = [\"{bin}/eigh_harness\", \"--library\", \"{build}/libeigh_cpu.so\"]",
       "command = \"run me\"", "12", "not a list of texts"},
      {"command = [\"{bin}/eigh_harness\", \"--library\", \"{build}/libeigh_cpu.so\"]",
       "command = []", "12", "'command' is an empty list"},
      {"device = \"cpu\"", "device = \"\"", "3", "'device' is empty; write a text between"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string error = ErrorOf(Replaced(mistake.from, mistake.to));
    EXPECT_THAT(error, HasSubstr("t.toml:" + mistake.line + ":")) << mistake.to;
    EXPECT_THAT(error, HasSubstr(mistake.says)) << mistake.to;
  }
}

TEST(Target, MissingFileNamesItself) {
  const auto target = LoadTarget("/no/such/target.toml");
  ASSERT_FALSE(target);
  EXPECT_THAT(target.error().text, HasSubstr("/no/such/target.toml"));
}

TEST(Target, UnknownCaseListsWhatThereIs) {
  const auto target = ParseTarget(kWhole, "t.toml");
  ASSERT_TRUE(target);
  EXPECT_EQ(SelectCases(*target, {})->size(), 2u);
  EXPECT_EQ(SelectCases(*target, {"n176", "n176"})->size(), 1u);
  const auto wrong = SelectCases(*target, {"n33"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(wrong.error().text, HasSubstr("n32, n176"));
}

TEST(Target, OnlyEditablePathsThatAreNotProtectedMayChange) {
  const auto target = ParseTarget(kWhole, "t.toml");
  ASSERT_TRUE(target);
  EXPECT_TRUE(IsEditable(*target, "kernels/eigh/cpu/tuning/small.h"));
  EXPECT_TRUE(IsEditable(*target, "one.h"));
  EXPECT_FALSE(IsEditable(*target, "one.hpp"));
  EXPECT_FALSE(IsEditable(*target, "kernels/eigh/cpu/eigh_cpu.h"));
  EXPECT_FALSE(IsEditable(*target, "kernels/eigh/cpu_other/a.h"));
  EXPECT_FALSE(IsEditable(*target, "kernels/eigh/cpu/../harness.cc"));
  EXPECT_FALSE(IsEditable(*target, "/etc/passwd"));
  EXPECT_FALSE(IsEditable(*target, ""));
}

TEST(Target, SubstitutesPlaceholders) {
  ::setenv("CRUCIBLE_BIN_DIR", "/opt/bin", 1);
  const Arm arm{.name = "a", .source = "/s", .build = "/b", .main = "", .source_hash = "h"};
  const auto words = Substitute({"{bin}/x", "--l={build}/{source}", "plain", "{lib}"}, arm);
  ::unsetenv("CRUCIBLE_BIN_DIR");
  ASSERT_TRUE(words) << words.error().text;
  EXPECT_THAT(*words, ::testing::ElementsAre("/opt/bin/x", "--l=/b//s", "plain", "/opt/lib"));
  EXPECT_THAT(Substitute({"{buidl}"}, arm).error().text, HasSubstr("unknown placeholder {buidl}"));
  EXPECT_THAT(Substitute({"{main}/h"}, arm).error().text, HasSubstr("names no main"));
  EXPECT_THAT(Substitute({"{main"}, arm).error().text, HasSubstr("without its '}'"));
}

TEST(Target, ArmSurvivesJson) {
  const Arm arm{.name = "m1", .source = "/s", .build = "/b", .main = "/m", .source_hash = "abc"};
  const auto back = ArmFromJson(ToJson(arm));
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_EQ(ToJson(*back), ToJson(arm));
  EXPECT_FALSE(ArmFromJson(nlohmann::json{{"name", "x"}}));
  EXPECT_FALSE(ArmFromJson(nlohmann::json::array()));
}

TEST(Target, ReadsDurations) {
  EXPECT_EQ(*ParseDuration("500ms"), 500);
  EXPECT_EQ(*ParseDuration("10s"), 10'000);
  EXPECT_EQ(*ParseDuration("3m"), 180'000);
  EXPECT_EQ(*ParseDuration("1h"), 3'600'000);
  for (const char* bad : {"", "10", "s", "-1s", "1.5s", "10 s", "99999999999999h", "1d"})
    EXPECT_FALSE(ParseDuration(bad)) << bad;
}

}  // namespace
}  // namespace crucible
