// `crucible profile CASE` with a harness without a kernel and an ncu without a GPU.
#include "base/hash.h"
#include "base/json.h"
#include "results_log/store.h"
#include "tests/orchestrator/git_fixture.h"

namespace crucible {
namespace {

namespace fs = std::filesystem;

class ProfileCommand : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    fs::create_directory(root_ / "bin");
    fs::create_symlink(fs::path(CRUCIBLE_SOURCE_DIR) / "tests/support/fake_ncu.sh",
                       root_ / "bin" / "ncu");
    ASSERT_TRUE(WriteFileAtomically(root_ / "plan", "time_us 50\n"));
    ASSERT_TRUE(WriteFileAtomically(
        root_ / "fake.toml",
        "name = \"fake\"\ndevice = \"cpu\"\n[paths]\neditable = [\"kernel.txt\"]\n"
        "[build]\ncommands = [[\"true\"]]\n"
        "[harness]\ncommand = [\"" +
            std::string(CRUCIBLE_FAKE_HARNESS) + "\", \"" + (root_ / "plan").string() +
            "\"]\n"
            "[[case]]\nname = \"n32\"\nparams = { n = 32 }\n"
            "[[check]]\nparams = { n = 4 }\nlevel = \"full\"\n"));
  }

  Captured Crucible(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(CRUCIBLE_BIN_DIR) + "/crucible");
    SubprocessSpec spec{
        .argv = std::move(words),
        .directory = repo_,
        .environment = {{"PATH", (root_ / "bin").string() + ":/usr/bin:/bin"},
                        {"CRUCIBLE_HOME", Home().string()},
                        {"CRUCIBLE_LOCK_DIR", (root_ / "locks").string()},
                        {"FAKE_NCU", trouble_},
                        {"FAKE_NVML_CALLS", "/dev/null"},
                        {"FAKE_NCU_PAGES", CRUCIBLE_SOURCE_DIR "/tests/gpu_runner/ncu"},
                        {"FAKE_NCU_CALLS", (root_ / "ncu.calls").string()}},
        .unset = {"CRUCIBLE_GPU_TOKEN", "CRUCIBLE_JOB_NONCE", "CRUCIBLE_JOB_ID", "CRUCIBLE_BROKER",
                  "CRUCIBLE_MISSION", "CRUCIBLE_MISSION_DIR"}};
    auto run = RunCaptured(spec, std::chrono::seconds(100));
    EXPECT_TRUE(run) << run.error().text;
    if (!run) return {};
    EXPECT_FALSE(run->timed_out) << run->err;
    return *run;
  }
  fs::path Home() const { return root_ / "state"; }
  std::vector<Entry> Entries() {
    auto store = Store::Open(Home() / "log.sqlite");
    EXPECT_TRUE(store) << store.error().text;
    auto entries = store->QueryEntries({});
    EXPECT_TRUE(entries) << entries.error().text;
    return entries ? *entries : std::vector<Entry>{};
  }
  std::string File() const { return (root_ / "fake.toml").string(); }

  std::string trouble_;
};

TEST_F(ProfileCommand, KeepsReportAndSummaryAsEvidenceOfANote) {
  ASSERT_TRUE(Crucible({"log", "add", "--kind", "win", "--mechanism", "panel width", "--target",
                        "fake", "--case", "n32"})
                  .status.ok());
  const Captured run = Crucible({"profile", "n32", "--target", File(), "--kernel", "gather",
                                 "--launches", "7", "--entry", "e1", "--json"});
  ASSERT_TRUE(run.status.ok()) << run.err;
  const auto answer = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << run.out;
  EXPECT_EQ(answer["entry"], "e2");
  const auto entries = Entries();
  ASSERT_EQ(entries.size(), 2u);
  const Entry& note = entries[1];
  EXPECT_EQ(note.kind, EntryKind::kNote);
  EXPECT_EQ(note.mechanism, "profile");
  EXPECT_EQ(note.target, "fake");
  EXPECT_EQ(note.cases.at(0).name, "n32");
  EXPECT_NE(note.reason.find("profiles e1 (" + entries[0].key), std::string::npos) << note.reason;
  EXPECT_NE(note.summary.find("gather("), std::string::npos) << note.summary;
  EXPECT_FALSE(note.conditions.empty());
  ASSERT_EQ(note.evidence.size(), 2u);
  EXPECT_EQ(note.evidence[0].kind, "profile");
  for (const Evidence& item : note.evidence) {
    const auto text = ReadFile(Home() / item.ref);
    ASSERT_TRUE(text) << text.error().text;
    EXPECT_EQ(Sha256Hex(*text), item.sha256);
  }
  const std::string calls = ReadFile(root_ / "ncu.calls").value_or("");
  for (const char* words : {"--clock-control none", "--launch-count 7", "regex:gather"})
    EXPECT_NE(calls.find(words), std::string::npos) << calls;
}

TEST_F(ProfileCommand, AddsNothingWhenThereIsNoProfile) {
  trouble_ = "permission";
  Captured run = Crucible({"profile", "n32", "--target", File()});
  EXPECT_EQ(run.status.code, 1);
  EXPECT_NE(run.err.find("ERR_NVGPUCTRPERM"), std::string::npos) << run.err;
  trouble_ = "";
  ASSERT_TRUE(WriteFileAtomically(root_ / "plan", "mode refuse_prepare\n"));
  run = Crucible({"profile", "n32", "--target", File()});
  EXPECT_EQ(run.status.code, 1);
  EXPECT_NE(run.err.find("harness request prepare"), std::string::npos) << run.err;
  EXPECT_EQ(Crucible({"profile", "n99", "--target", File()}).status.code, 2);
  EXPECT_EQ(Crucible({"profile", "n32", "--target", File(), "--entry", "e9"}).status.code, 1);
  EXPECT_TRUE(Entries().empty());
}

}  // namespace
}  // namespace crucible
