// merge_fixture.h: a repository whose "kernel" is one number, with a harness that takes so long.
//
// What runs is real: git, the build, gpu_run, the judge and its statistics, the log. Only the
// harness makes its times up (tests/support/fake_harness), from kTimeUs of tuning.h, so that a
// merge takes a second and its verdict does not depend on the machine. Each test chooses how long
// the judge may measure: a millisecond ends every comparison undecided.
#pragma once

#include <fmt/format.h>

#include <cstdlib>

#include "orchestrator/agents/mission_folder.h"
#include "orchestrator/integrate.h"
#include "results_log/store.h"
#include "tests/orchestrator/git_fixture.h"

namespace crucible {

class MergeFixture : public GitFixture {
 protected:
  void SetUp() override {
    GitFixture::SetUp();
    came_from_ = std::filesystem::current_path();
    std::filesystem::current_path(repo_);
    ::setenv("CRUCIBLE_LOCK_DIR", (root_ / "locks").c_str(), 1);
    for (const char* name : {"CRUCIBLE_HOME", "CRUCIBLE_GPU_TOKEN", "CRUCIBLE_MISSION"})
      ::unsetenv(name);
    Write("knobs.toml",
          "[[knob]]\nname = \"time\"\nfile = \"tuning.h\"\nconstant = \"kTimeUs\"\n"
          "values = [90, 100]\nmechanism = \"how long it takes\"\n");
    Write(".gitignore", ".crucible/\n");
    workspace_.home = repo_ / ".crucible";
    workspace_.programs = CRUCIBLE_BIN_DIR;
    ASSERT_OK(PrepareHome(workspace_));
    main_ = CommitTime("100");
  }
  void TearDown() override {
    std::filesystem::current_path(came_from_);
    GitFixture::TearDown();
  }

  // Sets the kernel's time on the branch that is checked out.
  std::string CommitTime(const std::string& us) {
    Write("tuning.h", "constexpr int kTimeUs = " + us + ";\n");
    return GitCommit("takes " + us + " us");
  }

  // `limits`: lines of the target's [limits]; `plan`: lines for the harness of every arm.
  std::filesystem::path WriteTarget(const std::string& limits, const std::string& plan = "") {
    const std::filesystem::path file = root_ / "fake.toml";
    const std::string build = fmt::format(
        "case \"{{build}}\" in *build-merged) [ ! -e '{0}/kill' ] || kill -9 $PPID;; esac; "
        "sed -n 's/.*kTimeUs = \\(.*\\);/time_us \\1/p' tuning.h >\"{{build}}/plan\"; "
        "printf 'noise 0.0003\\n{1}' >>\"{{build}}/plan\"",
        root_.string(), plan);
    EXPECT_TRUE(WriteFileAtomically(
        file,
        "name = \"fake\"\ndevice = \"cpu\"\n[paths]\neditable = [\"tuning.h\"]\n"
        "[build]\ncommands = [[\"sh\", \"-c\", '''" +
            build +
            "''']]\n[harness]\ncommand = [\"" CRUCIBLE_FAKE_HARNESS
            "\", \"{build}/plan\"]\n[[case]]\nname = \"small\"\nparams = { n = 1 }\n"
            "[[check]]\nparams = { n = 1 }\nlevel = \"quick\"\n[knobs]\nfile = "
            "\"knobs.toml\"\n[limits]\nslot = \"1ms\"\n" +
            limits));
    return file;
  }

  Store Log() {
    auto store = Store::Open(workspace_.LogFile());
    EXPECT_TRUE(store) << store.error().text;
    return std::move(*store);
  }

  // A mission that has ended with a commit in which the kernel takes `us`.
  MissionOrder Ended(const std::string& id, const std::string& us,
                     const std::filesystem::path& target) {
    MissionOrder order = Order(id, target);
    order.base_commit = Git({"rev-parse", "main"});
    Git({"checkout", "-q", "-b", "work-" + id});
    MissionRow row{.id = id, .campaign = "c", .target = "fake", .flavour = "kernel"};
    row.cases = order.cases;
    row.state = "ended";
    row.outcome = "candidate";
    row.base_commit = order.base_commit;
    row.best_commit = CommitTime(us);
    Git({"checkout", "-q", "main"});
    EXPECT_TRUE(Log().PutMission(row));
    return order;
  }
  MissionOrder Order(const std::string& id, const std::filesystem::path& target) {
    MissionOrder order{.id = id, .campaign = "c", .flavour = "kernel", .key_prefix = "c." + id};
    order.cases = {"small"};
    order.workspace = workspace_;
    order.target_file = target;
    EXPECT_TRUE(MakeDirectories(workspace_.Mission(id)));
    return order;
  }

  std::vector<Entry> Entries() { return Log().QueryEntries({}).value(); }
  std::string Tip() { return Git({"rev-parse", "main"}); }

  // The commit and time of every point of main that was a record when it was set, oldest first.
  std::vector<std::pair<std::string, double>> Records() {
    std::vector<std::pair<std::string, double>> records;
    const std::vector<Point> points = Log().Points("fake").value();
    for (const Point& point : points)
      if (point.kind == "main" && point.record) records.emplace_back(point.name, point.median_us);
    return records;
  }
  void SetRecord(const std::string& commit, double us) {
    Point point{.target = "fake", .case_name = "small", .kind = "main", .name = commit};
    point.time_ms = 1;
    point.median_us = us;
    point.record = true;
    ASSERT_OK(Log().AddPoints({point}));
  }

  std::filesystem::path came_from_;
  Workspace workspace_;
  std::string main_;  // the commit that takes 100 us
};

}  // namespace crucible
