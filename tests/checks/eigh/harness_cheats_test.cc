// Every cheating library is refused, by the request that meets it first and for its own reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "tests/checks/eigh/harness_client.h"

namespace crucible::eigh {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

struct Cheat {
  const char* name;
  const char* caught_by;  // hello, check, nan_inf, prepare or slot
  const char* reason;     // part of the text
  // Its file alone would be refused: here it is let past that, to see what meets it at run time.
  bool admit_any = false;
};

void PrintTo(const Cheat& cheat, std::ostream* out) { *out << cheat.name; }

constexpr Cheat kCheats[] = {
    {"wrong_abi", "hello", "its ABI is 2"},
    {"calls_blas", "hello", "it calls cblas_sscal"},
    {"loads_code", "hello", "it calls dlsym"},
    {"reads_clock", "hello", "it calls clock_gettime"},
    {"reads_files", "hello", "it calls fclose, fopen"},
    {"opens_socket", "hello", "it calls socket"},
    {"starts_threads", "hello", "it calls pthread_create"},
    {"brings_libraries", "hello", "it has its libraries searched in $ORIGIN/own"},
    {"hides_call", "hello", "it jumps into the middle of the instruction"},
    {"reads_counter", "hello", "it reads the processor's counter"},
    {"chooses_at_load", "hello", "its own code runs while it is loaded"},
    {"writable_code", "hello", "both written and executed"},
    {"relocates_code", "hello", "its code is written to while it is loaded"},
    {"unwritten_output", "check", "never written"},
    {"writes_input", "check", "changed its input"},
    {"writes_past_end", "check", "past the end of the eigenvectors"},
    {"overruns_workspace", "check", "past the end of the workspace"},
    {"values_only", "check", "eigen equation"},
    {"unsorted", "check", "ascending"},
    {"nan_output", "check", "are NaN or infinite"},
    {"not_orthogonal", "check", "orthogonality"},
    {"skips_last_matrix", "check", "matrix 2 of 3: eigen equation"},
    {"returns_error", "check", "eigh_cpu_solve returned 7"},
    {"returns_early", "check", "works on after returning", true},
    {"flushes_subnormals", "check", "floating-point mode"},
    {"moves_to_one_cpu", "check", "CPU set", true},
    {"lower_precision", "check", "eigen equation"},
    {"writes_results", "check", "tried to write to descriptor 3", true},
    {"opens_results", "check", "tried to open a file for writing", true},
    {"starts_process", "check", "tried to start a process", true},
    {"signals_others", "check", "tried to send a signal to another process", true},
    {"spreads_nan", "nan_inf", "beside a NaN or infinite matrix"},
    {"hides_nan", "nan_inf", "its info is 0"},
    {"leaks_threads", "prepare", "left threads behind", true},
    {"stale_output", "prepare", "eigen equation"},
    {"caches_by_pointer", "slot", "probe"},
    {"caches_by_invariants", "slot", "probe"},
    {"fast_when_timed", "slot", "probe"},
    {"takes_over", "slot", "shorter than what was seen", true},
    {"waits", "slot", "shorter than what was seen", true},
    {"before_ready", "slot", "it computes before it says that it is ready", true},
    {"burns_others", "slot", "it works while it is not called", true},
};

class HarnessCheats : public ::testing::TestWithParam<Cheat> {
 protected:
  void SetUp() override { std::signal(SIGPIPE, SIG_IGN); }
};

// Where the library was refused and why: requests are made in the order of a campaign.
std::pair<std::string, std::string> FirstRefusal(HarnessClient* client, std::string_view until) {
  const auto text = [](const Json& reply) {
    return reply.value("ok", false) ? reply.value("reason", "") : reply.value("error", "");
  };
  const Json parameters = {{"name", "c"}, {"kind", "dense"}, {"n", 16}, {"batch", 3}, {"cond", 1}};
  Json poisoned = parameters;
  poisoned["kind"] = "nan_inf";
  if (std::string why = text(client->Hello()); !why.empty()) return {"hello", why};
  if (until != "prepare") {  // else a cheat that the first two calls already give away
    if (std::string why = text(client->Check(parameters)); !why.empty()) return {"check", why};
    if (until != "check" && until != "slot")
      if (std::string why = text(client->Check(poisoned)); !why.empty()) return {"nan_inf", why};
  }
  Json timed = parameters;  // long enough for its time to be seen
  timed["n"] = 32, timed["batch"] = 6;
  if (std::string why = text(client->Prepare(timed)); !why.empty()) return {"prepare", why};
  // Times are in doubt three slots long, then a reason; on a busy machine the doubt may remain.
  std::string doubt;
  int doubted = 0;
  for (int slot = 0; slot < 3; ++slot) {
    const Json reply = client->Slot(1, 60, 60);
    if (std::string why = text(reply); !why.empty()) return {"slot", why};
    if (std::string why = reply.value("doubt", ""); !why.empty()) doubt = why, ++doubted;
  }
  if (doubted > 1 && until == "slot") return {"slot", doubt};
  return {"", ""};
}

TEST_P(HarnessCheats, IsRefusedForItsOwnReason) {
  const Cheat& cheat = GetParam();
#if defined(__SANITIZE_THREAD__)
  if (cheat.caught_by == std::string_view("slot") ||
      cheat.name == std::string_view("returns_early"))
    GTEST_SKIP() << "caught by times, and under the thread sanitizer they are not the library's";
#endif
  std::vector<std::string> more;
  if (cheat.admit_any) more = {"--admit-any"};
  HarnessClient client(HarnessClient::Fixture(cheat.name), more);
  const auto [where, why] = FirstRefusal(&client, cheat.caught_by);
  EXPECT_EQ(where, cheat.caught_by) << why;
  EXPECT_THAT(why, HasSubstr(cheat.reason));
}

INSTANTIATE_TEST_SUITE_P(All, HarnessCheats, ::testing::ValuesIn(kCheats),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HarnessHonest, IsLetThroughByEveryRequest) {
  for (const char* name : {"honest", "honest_constant"}) {
    HarnessClient client(HarnessClient::Fixture(name));
    const auto [where, why] = FirstRefusal(&client, "");
    EXPECT_EQ(where, "") << name << ": " << why;
  }
}

TEST(HarnessAdmission, WhatWasLetPastItIsSaidInTheConditions) {
  HarnessClient usual(HarnessClient::Fixture("honest"));
  EXPECT_FALSE(usual.Hello()["conditions"].contains("admission"));
  HarnessClient past(HarnessClient::Fixture("reads_clock"), {"--admit-any"});
  EXPECT_EQ(past.Hello()["conditions"].value("admission", ""), "any");
}

TEST(HarnessPeer, MayCallWhatItLikes) {
  HarnessClient client(HarnessClient::Fixture("loads_code"), {"--peer"});
  const auto [where, why] = FirstRefusal(&client, "");
  EXPECT_EQ(where, "") << why;
}

}  // namespace
}  // namespace crucible::eigh
