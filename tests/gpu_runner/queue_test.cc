// Whose turn it is, what the words mean, and what the clocks say: the parts without a process.
#include "gpu_runner/queue.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/subprocess.h"
#include "gpu_runner/clocks.h"
#include "gpu_runner/survivors.h"
#include "gpu_runner/token.h"

namespace crucible {
namespace {

std::vector<std::uint64_t> Order(std::vector<Ticket> tickets, std::int64_t now_ms) {
  SortByTurn(&tickets, now_ms);
  std::vector<std::uint64_t> order;
  for (const Ticket& ticket : tickets) order.push_back(ticket.sequence);
  return order;
}

Ticket Of(std::uint64_t sequence, Priority priority, std::int64_t queued_ms = 0,
          std::int64_t limit_ms = 0, bool yields = false) {
  return {sequence, priority, queued_ms, 1, limit_ms, yields, "j"};
}

TEST(Turns, AreFirstComeFirstServedWithinAClass) {
  const std::vector<Ticket> tickets = {Of(7, Priority::kNormal), Of(3, Priority::kNormal),
                                       Of(5, Priority::kHigh), Of(1, Priority::kLow)};
  EXPECT_EQ(Order(tickets, 1000), (std::vector<std::uint64_t>{5, 3, 7, 1}));
}

TEST(Turns, NobodyIsOvertakenAfterTenMinutes) {
  const std::vector<Ticket> tickets = {Of(1, Priority::kLow),
                                       Of(9, Priority::kHigh, kOvertakeLimitMs - 1)};
  EXPECT_EQ(Order(tickets, kOvertakeLimitMs - 1), (std::vector<std::uint64_t>{9, 1}));
  EXPECT_EQ(Order(tickets, kOvertakeLimitMs), (std::vector<std::uint64_t>{1, 9}));
}

TEST(Turns, AShorterCallPassesOnlyThoseThatYield) {
  constexpr auto kNormal = Priority::kNormal;
  // Without --yield a declared limit changes nothing.
  EXPECT_EQ(Order({Of(1, kNormal), Of(2, kNormal, 0, 900), Of(3, kNormal, 0, 5)}, 0),
            (std::vector<std::uint64_t>{1, 2, 3}));
  // All yield: shortest first, no limit last, equal ones in order of arrival.
  EXPECT_EQ(Order({Of(1, kNormal, 0, 0, true), Of(2, kNormal, 0, 900, true),
                   Of(3, kNormal, 0, 5, true), Of(4, kNormal, 0, 900, true)},
                  0),
            (std::vector<std::uint64_t>{3, 2, 4, 1}));
  // 2 does not yield: nobody passes it, and behind it 5 cannot reach 1.
  EXPECT_EQ(Order({Of(1, kNormal, 0, 900, true), Of(2, kNormal, 0, 0), Of(4, kNormal, 0, 50, true),
                   Of(5, kNormal, 0, 5)},
                  0),
            (std::vector<std::uint64_t>{1, 2, 5, 4}));
  // Another class is another queue.
  EXPECT_EQ(Order({Of(1, kNormal, 0, 900, true), Of(2, Priority::kLow, 0, 5)}, 0),
            (std::vector<std::uint64_t>{1, 2}));
}

TEST(Turns, AYieldingCallIsPassedForTenMinutesAtMost) {
  const std::vector<Ticket> tickets = {Of(1, Priority::kNormal, 0, 900, true),
                                       Of(2, Priority::kNormal, kOvertakeLimitMs - 1, 5)};
  EXPECT_EQ(Order(tickets, kOvertakeLimitMs - 1), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(Order(tickets, kOvertakeLimitMs), (std::vector<std::uint64_t>{1, 2}));
}

TEST(TicketNames, RoundTripAndRefuseOtherFiles) {
  const Ticket ticket{42, Priority::kLow, 123456, 77, 9000, true, "jabc"};
  const auto parsed = ParseTicketName(TicketName(ticket));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(TicketName(*parsed), TicketName(ticket));
  for (const char* name : {".", "..", "1.2.3", "1.9.3.4.0.0.j", "x.1.2.3.0.0.j", "1.1.2.3.0.0.",
                           "1.1.2.3.0.2.j", "1.1.2.3.j"})
    EXPECT_FALSE(ParseTicketName(name)) << name;
}

TEST(Durations, NeedAUnit) {
  EXPECT_EQ(ParseDurationMs("500ms").value_or(0), 500);
  EXPECT_EQ(ParseDurationMs("10s").value_or(0), 10'000);
  EXPECT_EQ(ParseDurationMs("1.5m").value_or(0), 90'000);
  EXPECT_EQ(ParseDurationMs("1h").value_or(0), 3'600'000);
  for (const char* text : {"10", "", "s", "-1s", "0s", "1d", "1 s", "nanms", "infs"})
    EXPECT_FALSE(ParseDurationMs(text)) << text;
}

TEST(Options, EndAtTheCommandAndKeepItsWords) {
  const auto options = ParseRunOptions(
      {"--device=cpu", "--limit", "2s", "--priority", "high", "--", "ls", "--help"});
  ASSERT_TRUE(options) << options.error().text;
  EXPECT_EQ(options->limit_ms, 2000);
  EXPECT_EQ(options->priority, Priority::kHigh);
  EXPECT_EQ(options->command, (std::vector<std::string>{"ls", "--help"}));
}

TEST(Options, AGpuIsADevice) {
  EXPECT_EQ(ParseRunOptions({"--gpu", "1", "--", "ls"})->device, "1");
  EXPECT_EQ(ParseRunOptions({"--gpu=any", "ls"})->device, "any");
}

TEST(Options, NameTheWordThatIsWrong) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--priority", "urgent", "--", "ls"},
        {"--limit", "5", "--", "ls"},
        {"--nonsense", "x", "ls"},
        {"--device", "cpu"},
        {}}) {
    const auto options = ParseRunOptions(words);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().kind, ErrorKind::kUsage);
  }
  EXPECT_NE(ParseRunOptions({"--bogus"}).error().text.find("no such option"), std::string::npos);
  for (const char* option : {"--limit", "--device", "--toolchain", "--priority", "--clock-mhz"})
    EXPECT_NE(ParseRunOptions({option}).error().text.find("needs a value"), std::string::npos)
        << option;
}

TEST(Tokens, LeaveOutWhatIsMalformed) {
  const auto tokens = ParseTokens("cpu:ab:12:34,../x:ab:12:34,GPU-1:cd:5:6,cpu:ab:x:1,cpu:ab:1");
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(ToText(tokens), "cpu:ab:12:34,GPU-1:cd:5:6");
}

ClockReport Report(std::vector<int> mhz, int pinned = 0, std::uint64_t reasons = 0) {
  ClockReport report;
  report.pinned_mhz = pinned;
  for (const int value : mhz) report.during.push_back({value, 40, 100, -1, reasons});
  return report;
}

TEST(Drift, IsToldFromTheSamples) {
  EXPECT_EQ(DriftVerdict(Report({1500, 1500, 1490})), "steady");
  EXPECT_EQ(DriftVerdict(Report({1500, 1300})), "drifted");
  EXPECT_EQ(DriftVerdict(Report({1500, 1300}, 0, kReasonPowerCap)), "power_capped");
  EXPECT_EQ(DriftVerdict(Report({1500, 1500}, 0, kReasonHwThermal)), "throttled");
  EXPECT_EQ(DriftVerdict(Report({1500})), "unknown");
  EXPECT_EQ(DriftVerdict(Report({1500}, 1500)), "steady");
  EXPECT_EQ(DriftVerdict(Report({1400}, 1500)), "drifted");
  ClockReport refused = Report({1500, 1500});
  refused.pin_refused = true;
  EXPECT_EQ(DriftVerdict(refused), "unlocked");
}

TEST(Drift, AnIdleGpuClocksDownByItselfAndThatIsNoDrift) {
  ClockReport report = Report({1500, 1500, 1490});
  report.during.insert(report.during.begin(), {345, 30, 70, -1, kReasonIdle});
  EXPECT_EQ(DriftVerdict(report), "steady") << "the job began on the CPU";
  report.during.push_back({1300, 40, 100, -1, 0});
  EXPECT_EQ(DriftVerdict(report), "drifted");
  ClockReport pinned = Report({345}, 1500, kReasonIdle);
  EXPECT_EQ(DriftVerdict(pinned), "unknown") << "nothing was computed while it was looked at";
  pinned.repinned = {345, 30, 70, -1, kReasonIdle};
  EXPECT_NE(DescribeAfter(pinned).find("nothing to do"), std::string::npos);
  pinned.repinned.reasons = 0;
  EXPECT_NE(DescribeAfter(pinned).find("does not hold"), std::string::npos);
}

// The lock directory is open to every user of the machine, so its files prove little.
class SharedFolder : public ::testing::Test {
 protected:
  void SetUp() override { folder_ = *MakeTemporaryDirectory("shared-folder-test"); }
  void TearDown() override { (void)RemoveTree(folder_); }

  // A process that carries `nonce`, as one of a job's would.
  static Subprocess Carrier(const std::string& nonce) {
    auto child =
        Subprocess::Start({.argv = {"sleep", "1000"}, .environment = {{kNonceVariable, nonce}}});
    CRUCIBLE_CHECK(child.has_value(), child ? "" : child.error().text);
    return std::move(*child);
  }
  std::filesystem::path folder_;
};

TEST_F(SharedFolder, ARecordEndsOnlyProcessesOfWhoWroteIt) {
  const std::string nonce = "f00d" + std::to_string(::getpid());
  Subprocess mine = Carrier(nonce);
  HolderRecord record;
  record.nonce = nonce;
  record.job = "j1";
  record.owner = ::geteuid() + 1;
  EXPECT_TRUE(KillSurvivors(record, 1000).empty());
  EXPECT_FALSE(mine.Wait(std::chrono::milliseconds(50))) << "another user's record ended it";
  record.owner = ::geteuid();
  EXPECT_TRUE(KillSurvivors(record, 5000).empty());
  EXPECT_EQ(mine.Wait()->signal, 9);
}

TEST_F(SharedFolder, ARecordWithoutANonceEndsNothing) {
  Subprocess mine = Carrier("");
  HolderRecord record;
  record.owner = ::geteuid();
  EXPECT_TRUE(KillSurvivors(record, 1000).empty());
  EXPECT_FALSE(mine.Wait(std::chrono::milliseconds(50)));
  mine.Signal(SIGKILL);
  (void)mine.Wait();
}

TEST_F(SharedFolder, ARecordNamesNoCgroupButTheOneOfItsJob) {
  std::filesystem::create_directory(folder_ / "system");
  ASSERT_TRUE(WriteFileAtomically(folder_ / "system" / "cgroup.kill", ""));
  HolderRecord record;
  record.job = "j1";
  record.cgroup = (folder_ / "system").string();
  EXPECT_TRUE(KillSurvivors(record, 100).empty());
  EXPECT_EQ(ReadFile(folder_ / "system" / "cgroup.kill").value(), "");
}

TEST(LockDirectories, OfSeveralMachinesAreRefusedAndLocalOnesAreNot) {
  for (const std::uint32_t type : {0x6969u, 0xFF534D42u, 0x0BD00BD0u, 0x47504653u})
    EXPECT_TRUE(IsNetworkFileSystem(type)) << type;
  for (const std::uint32_t type : {0xEF53u, 0x01021994u, 0x58465342u, 0x9123683Eu, 0x794C7630u})
    EXPECT_FALSE(IsNetworkFileSystem(type)) << "ext4, tmpfs, xfs, btrfs, overlayfs: " << type;
}

TEST_F(SharedFolder, ALinkInPlaceOfALockIsNotFollowed) {
  const auto device = DeviceFolder::Open(folder_, "cpu");
  ASSERT_TRUE(device) << device.error().text;
  ASSERT_TRUE(WriteFileAtomically(folder_ / "precious", "kept"));
  ::chmod((folder_ / "precious").c_str(), 0600);
  for (const char* name : {"mutex", "cpu/lock", "cpu/holder"})
    std::filesystem::create_symlink(folder_ / "precious", folder_ / name);
  EXPECT_FALSE(LockQueueMutex(folder_));
  EXPECT_FALSE(device->TryLock());
  EXPECT_FALSE(device->ReadHolder());
  struct stat file {};
  ASSERT_EQ(::stat((folder_ / "precious").c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace crucible
