// The commands over the log, and the page they write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "orchestrator/cli/brief_command.h"
#include "orchestrator/cli/dashboard_command.h"
#include "orchestrator/cli/log_command.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogCommands, APersonsEntryIsFoundCitedAndEscaped) {
  const auto root = MakeTemporaryDirectory("log_commands_test").value();
  const std::string log = (root / "log.sqlite").string();
  std::ostringstream out, err;
  ASSERT_EQ(LogCommand({"add", "--log", log, "--kind", "loss", "--case", "n32", "--target", "eigh",
                        "--mechanism", "<script>alert(1)</script>", "--before", "10", "--after", "11",
                        "--condition", "compiler=gcc 12"}, out, err), 0) << err.str();
  ASSERT_EQ(LogCommand({"query", "--log", log, "--case", "n32"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("+10.0 %"));
  out.str("");
  ASSERT_EQ(LogCommand({"retest", "--log", log, "--now", "compiler=gcc 13"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("compiler: gcc 12 -> gcc 13"));
  out.str("");
  ASSERT_EQ(BriefCommand({"n32", "--log", log}, out, err), 0) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("[e1]"));
  out.str("");
  ASSERT_EQ(DashboardCommand({"--log", log, "--target", "eigh", "--out", "-"}, out, err), 0);
  EXPECT_THAT(out.str(), HasSubstr("&lt;script&gt;"));
  EXPECT_THAT(out.str(), Not(HasSubstr("<script")));
  EXPECT_EQ(LogCommand({"add", "--log", log, "--kind", "draw", "--summary", "x"}, out, err), 2);
  EXPECT_THAT(err.str(), HasSubstr("--kind draw is unknown"));
  EXPECT_EQ(BriefCommand({"n33", "--log", log}, out, err), 2);
  EXPECT_EQ(LogCommand({"show", "e9", "--log", log}, out, err), 1);
  EXPECT_TRUE(RemoveTree(root));
}

}  // namespace
}  // namespace crucible
