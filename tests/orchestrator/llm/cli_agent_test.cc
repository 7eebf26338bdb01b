// A command-line agent comes to a defined end, whatever it does. Shell scripts stand in for it.
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <fstream>
#include <thread>

#include "base/files.h"
#include "base/json.h"
#include "orchestrator/agents/cli/run_cli_agent.h"
#include "orchestrator/agents/llm/api_key.h"

namespace crucible {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using Kind = CliAgentOutcome::Kind;

constexpr const char* kInit = R"({"type":"system","subtype":"init","model":"m"})";
constexpr const char* kResult =
    R"({"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"Done.",)"
    R"("total_cost_usd":0.5,"usage":{"input_tokens":100,"output_tokens":10}})";

std::string Assistant(int number) {
  return R"({"type":"assistant","message":{"id":"a)" + std::to_string(number) +
         R"(","content":[{"type":"text","text":"turn )" + std::to_string(number) +
         R"("}],"usage":{"input_tokens":1000,"output_tokens":100}}})";
}

std::string Print(const std::string& line) { return "printf '%s\\n' '" + line + "'\n"; }

class CliAgent : public testing::Test {
 protected:
  CliAgent() : folder(*MakeTemporaryDirectory("crucible-cli")) {
    for (const std::string& name : KeyVariables()) ::unsetenv(name.c_str());
    spec.profile = *FindCliProfile("claude");
    spec.directory = folder;
    spec.transcript = folder / "transcript.jsonl";
    spec.mission = "Make it faster.";
    spec.limits.goodbye_ms = 3000;
    spec.limits.wall_ms = 60'000;  // a test that goes wrong ends
  }
  ~CliAgent() override { (void)RemoveTree(folder); }

  Result<CliAgentOutcome> Play(const std::string& script) {
    const auto path = folder / "agent.sh";
    EXPECT_TRUE(WriteFileAtomically(path, script));
    spec.profile.argv = {"sh", path.string()};
    return RunCliAgent(spec);
  }
  // The transcript's rows; each is whole JSON, or the test fails.
  std::vector<json> Rows() {
    std::ifstream file(spec.transcript);
    std::vector<json> rows;
    for (std::string line; std::getline(file, line);) {
      rows.push_back(json::parse(line, nullptr, false));
      EXPECT_TRUE(rows.back().is_object()) << line;
    }
    return rows;
  }
  std::filesystem::path folder;
  CliAgentSpec spec;
};

// Gone, or dead and waiting for whoever reaps orphans here.
bool IsDead(pid_t pid) {
  const auto stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  return !stat || stat->find(") Z ") != std::string::npos;
}

void ExpectDiesSoon(pid_t pid) {
  ASSERT_GT(pid, 1);
  const std::int64_t limit = SystemClock().MonotonicNs() + 20'000'000'000;
  while (!IsDead(pid) && SystemClock().MonotonicNs() < limit) std::this_thread::yield();
  EXPECT_TRUE(IsDead(pid)) << pid;
}

TEST_F(CliAgent, AWholeRun) {
  std::vector<CliEvent> events;
  spec.on_event = [&](const CliEvent& event) { events.push_back(event); };
  const auto outcome = Play("cat > got.txt\n" + Print(kInit) + Print(Assistant(1)) +
                            "echo notice >&2\n" + Print(Assistant(2)) + Print(kResult));
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kEnded) << outcome->detail;
  EXPECT_EQ(outcome->turns, 2);
  EXPECT_EQ(outcome->usage.input, 100);
  EXPECT_EQ(outcome->usd, 0.5);
  EXPECT_EQ(outcome->last_text, "Done.");
  EXPECT_EQ(*ReadFile(folder / "got.txt"), "Make it faster.");
  EXPECT_FALSE(events.empty());
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 7u);
  EXPECT_EQ(rows.front().at("kind"), "start");
  EXPECT_EQ(rows.back().at("kind"), "end");
  EXPECT_EQ(rows.back().at("outcome"), "ended");
  EXPECT_EQ(rows[1].at("line").at("subtype"), "init");
}

TEST_F(CliAgent, TheTranscriptIsWrittenAsItHappens) {
  // The agent reads its own transcript: what it printed before is there while it runs.
  const auto outcome =
      Play(Print(kInit) + "until grep -q init transcript.jsonl; do :; done\n" + Print(kResult));
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kEnded) << outcome->detail;
}

TEST_F(CliAgent, SilenceIsEndedWithEverythingItStarted) {
  spec.limits.silence_ms = 1500;
  spec.limits.goodbye_ms = 200;
  const auto outcome = Play(Print(Assistant(1)) +
                            "trap '' TERM\nsleep 1000 &\necho $! > child.txt\n"
                            "echo $$ > self.txt\nwhile :; do wait; done\n");
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kHung);
  EXPECT_THAT(outcome->detail, HasSubstr("silent"));
  EXPECT_EQ(outcome->turns, 1);
  EXPECT_EQ(outcome->status.signal, SIGKILL) << "it ignored SIGTERM";
  ExpectDiesSoon(std::stoi(*ReadFile(folder / "child.txt")));
}

TEST_F(CliAgent, WhatItLeavesBehindDiesWithIt) {
  const auto outcome = Play("sleep 1000 &\necho $! > child.txt\n" + Print(kInit) + Print(kResult));
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kEnded) << outcome->detail;
  ExpectDiesSoon(std::stoi(*ReadFile(folder / "child.txt")));
}

TEST_F(CliAgent, DyingInTheMiddleOfALine) {
  const auto outcome = Play(Print(Assistant(1)) +
                            "echo 'out of memory' >&2\nprintf '{\"type\":\"assis'\nkill -9 $$\n");
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kCrashed);
  EXPECT_THAT(outcome->detail, HasSubstr("signal 9"));
  EXPECT_THAT(outcome->detail, HasSubstr("out of memory"));
  EXPECT_EQ(outcome->turns, 1);
  EXPECT_EQ(outcome->usage.input, 1000) << "what was used is counted";
  bool kept = false;
  for (const json& row : Rows()) kept = kept || row.value("line", json()) == "{\"type\":\"assis";
  EXPECT_TRUE(kept);
}

TEST_F(CliAgent, EndingWithoutAResultIsACrashWhereOneIsPromised) {
  const auto silent = Play(Print(kInit));
  ASSERT_TRUE(silent);
  EXPECT_EQ(silent->kind, Kind::kCrashed);
  EXPECT_THAT(silent->detail, HasSubstr("before its result"));
  spec.profile = CommandProfile({});
  const auto plain = Play("cat\necho; echo 'I made it faster.'\n");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->kind, Kind::kEnded) << plain->detail;
  EXPECT_EQ(plain->last_text, "I made it faster.");
  const auto failed = Play("exit 3\n");
  EXPECT_EQ(failed->kind, Kind::kCrashed);
  EXPECT_THAT(failed->detail, HasSubstr("exit code 3"));
}

TEST_F(CliAgent, ItsOwnWordOnItsEndCounts) {
  const auto error = Play(
      Print(R"({"type":"result","subtype":"success","is_error":true,"result":"Not logged in"})"));
  EXPECT_EQ(error->kind, Kind::kCrashed);
  EXPECT_THAT(error->detail, HasSubstr("Not logged in"));
  const auto turns =
      Play(Print(R"({"type":"result","subtype":"error_max_turns","is_error":true})") + "exit 1\n");
  EXPECT_EQ(turns->kind, Kind::kBudget);
}

TEST_F(CliAgent, AFloodOfLinesFillsNeitherDiskNorMemory) {
  spec.limits.output_bytes = 8 << 20;
  spec.transcript_bytes = 100'000;
  const auto outcome = Play("yes '{\"type\":\"noise\"}'\n");
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kBudget);
  EXPECT_THAT(outcome->detail, HasSubstr("printed"));
  EXPECT_LT(std::filesystem::file_size(spec.transcript), 2'000'000u);
  const auto rows = Rows();
  EXPECT_EQ(rows.back().at("kind"), "end") << "the end is written all the same";
  EXPECT_EQ(rows.at(rows.size() - 2).at("kind"), "full");
}

TEST_F(CliAgent, AFloodWithoutLineEndsIsCut) {
  spec.line_bytes = 1000;
  const auto outcome = Play("head -c 3000000 /dev/zero | tr '\\0' x\necho\n" + Print(kResult));
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kEnded) << outcome->detail;
  const auto rows = Rows();
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].at("line").get<std::string>().size(), 1000u);
  EXPECT_EQ(rows[1].at("cut"), true);
}

TEST_F(CliAgent, EachBudgetEndsIt) {
  const std::string endless =
      Print(Assistant(1)) + Print(Assistant(2)) + Print(Assistant(3)) + "sleep 1000\n";
  const auto ended_by = [&](const CliLimits& limits) {
    spec.limits = limits;
    spec.limits.goodbye_ms = 3000;
    const auto outcome = Play(endless);
    EXPECT_TRUE(outcome);
    EXPECT_EQ(outcome->kind, Kind::kBudget);
    return outcome->detail;
  };
  EXPECT_THAT(ended_by({.turns = 2}), HasSubstr("2 turns"));
  EXPECT_THAT(ended_by({.tokens = 3000}), HasSubstr("3300 of 3000 tokens"));
  EXPECT_THAT(ended_by({.wall_ms = 300}), HasSubstr("300 ms"));
  spec.prices = {.input = 1000};
  EXPECT_THAT(ended_by({.usd = 2.5}), HasSubstr("$3.00 of $2.50"));
}

TEST_F(CliAgent, WhatItUsesIsToldAsItHappens) {
  spec.prices = {.input = 1000, .output = 10'000};
  std::vector<std::pair<int, double>> told;
  spec.on_spend = [&](const CliAgentOutcome& used) {
    told.emplace_back(used.turns, used.usd);
    EXPECT_TRUE(WriteFileAtomically(folder / ("told" + std::to_string(used.turns)), ""));
  };
  // It says the second only once the first was told.
  const auto outcome =
      Play(Print(Assistant(1)) + "until [ -e told1 ]; do :; done\n" + Print("{\"type\":\"user\"}") +
           Print(Assistant(2)) + "until [ -e told2 ]; do :; done\n" + Print(kResult));
  ASSERT_TRUE(outcome) << outcome.error().text;
  ASSERT_EQ(told.size(), 3u) << "and not for a line that cost nothing";
  EXPECT_EQ(told[0], std::make_pair(1, 2.0));
  EXPECT_EQ(told[1], std::make_pair(2, 4.0));
  EXPECT_EQ(told[2], std::make_pair(2, 0.5)) << "its own word on the money in the end";
}

TEST_F(CliAgent, ABudgetThatTheStreamDoesNotShowEndsIt) {
  spec.used_up = [] { return std::string("6 of 5 s of device time are used"); };
  const auto outcome = Play(Print(Assistant(1)) + "sleep 1000\n");
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kBudget);
  EXPECT_THAT(outcome->detail, HasSubstr("device time"));
}

TEST_F(CliAgent, OneThatSaysItIsDoneButDoesNotGoIsSentAway) {
  spec.limits.goodbye_ms = 300;
  const auto outcome = Play(Print(kResult) + "sleep 1000\n");
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kEnded) << outcome->detail;
  EXPECT_EQ(outcome->last_text, "Done.");
}

TEST_F(CliAgent, AStopRequest) {
  std::stop_source source;
  spec.stop = source.get_token();
  spec.on_event = [&](const CliEvent&) { source.request_stop(); };
  const auto outcome = Play(Print(kInit) + "sleep 1000\n");
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(outcome->kind, Kind::kStopped);
}

TEST_F(CliAgent, OnlyItsOwnKeysAndNoneInTheTranscript) {
  const std::string own = "sk-own-0123456789", other = "sk-other-0123456789";
  ::setenv("ANTHROPIC_API_KEY", own.c_str(), 1);
  ::setenv("OPENAI_API_KEY", other.c_str(), 1);
  ::setenv("CRUCIBLE_KEY_FILE", "/some/file", 1);
  std::string told;
  spec.profile.says_when_done = false;
  spec.profile.format = CliFormat::kPlain;
  spec.on_event = [&](const CliEvent& event) { told += event.text; };
  const auto outcome = Play(
      "printf %s \"$ANTHROPIC_API_KEY\" > own.txt\n"
      "printf %s \"$OPENAI_API_KEY$CRUCIBLE_KEY_FILE\" > other.txt\n"
      "echo \"my key is $ANTHROPIC_API_KEY\"\necho \"$ANTHROPIC_API_KEY\" >&2\nexit 1\n");
  for (const char* name : {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CRUCIBLE_KEY_FILE"})
    ::unsetenv(name);
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(*ReadFile(folder / "own.txt"), own);
  EXPECT_EQ(*ReadFile(folder / "other.txt"), "");
  EXPECT_EQ(told, "my key is [key]");
  EXPECT_THAT(outcome->last_text + outcome->detail, Not(HasSubstr(own)));
  EXPECT_THAT(*ReadFile(spec.transcript), Not(HasSubstr(own)));
}

TEST_F(CliAgent, AProgramThatIsNotThereIsAnError) {
  spec.profile.argv = {"no-such-agent-program"};
  const auto outcome = RunCliAgent(spec);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::kNotFound);
}

TEST_F(CliAgent, ItsCommandGoesThroughTheWrapper) {
  spec.model = "model-1";
  spec.sandboxed = true;
  std::vector<std::string> argv;
  spec.wrap = [&](SubprocessSpec command) -> Result<SubprocessSpec> {
    argv = command.argv;
    command.argv.insert(command.argv.begin(), {"env", "WRAPPED=yes"});
    return command;
  };
  const auto outcome =
      Play("printf %s \"$WRAPPED\" > wrapped.txt\ncat > got.txt\n" + Print(kResult));
  ASSERT_TRUE(outcome) << outcome.error().text;
  EXPECT_EQ(*ReadFile(folder / "wrapped.txt"), "yes");
  EXPECT_EQ(*ReadFile(folder / "got.txt"), "Make it faster.");
  EXPECT_THAT(argv,
              testing::IsSupersetOf({"--model", "model-1", "--dangerously-skip-permissions"}));
}

TEST(CliProfile, EachIsKnownByNameAndReadsStdin) {
  for (const char* name : {"claude", "codex", "opencode", "gemini"}) {
    const auto profile = FindCliProfile(name);
    ASSERT_TRUE(profile);
    EXPECT_EQ(profile->argv.front(), name);
    EXPECT_NE(profile->format, CliFormat::kPlain);
  }
  const auto none = FindCliProfile("cursor");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().text, HasSubstr("claude, codex, opencode, gemini"));
}

}  // namespace
}  // namespace crucible
