// crucible dashboard --serve: the page of the log as it is now, for this machine alone.
#include "orchestrator/cli/dashboard_serve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <future>
#include <sstream>

#include "base/files.h"
#include "orchestrator/cli/dashboard_command.h"
#include "results_log/store.h"

namespace crucible {
namespace {

using ::testing::HasSubstr;

class DashboardServe : public ::testing::Test {
 protected:
  void SetUp() override {
    std::promise<std::string> ready;
    ServeSpec spec;
    spec.page = [this]() -> Result<std::string> {
      if (broken_) return Fail(ErrorKind::kIo, "read", "log", "it is gone", "look for it");
      return fmt::format("<p>request {}</p>", ++requests_);
    };
    spec.ready = [&](const std::string& url) { ready.set_value(url); };
    spec.interrupted = [this] { return over_.load(); };
    server_ = std::async(std::launch::async, [spec] { return ServeDashboard(spec).has_value(); });
    url_ = ready.get_future().get();
    port_ = std::stoi(url_.substr(url_.rfind(':') + 1));
  }
  void TearDown() override {
    over_ = true;
    ASSERT_EQ(server_.wait_for(std::chrono::seconds(30)), std::future_status::ready);
    EXPECT_TRUE(server_.get());
  }
  httplib::Result Get(const std::string& path, const httplib::Headers& headers = {}) {
    return httplib::Client("127.0.0.1", port_).Get(path, headers);
  }

  std::atomic<bool> over_ = false, broken_ = false;
  std::atomic<int> requests_ = 0;
  std::future<bool> server_;
  std::string url_;
  int port_ = 0;
};

TEST_F(DashboardServe, MakesThePageAnewForEveryRequest) {
  EXPECT_EQ(url_, fmt::format("http://127.0.0.1:{}/", port_));
  for (const char* body : {"<p>request 1</p>", "<p>request 2</p>"}) {
    const auto answer = Get("/");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, body);
    EXPECT_THAT(answer->get_header_value("Content-Type"), HasSubstr("text/html"));
    EXPECT_EQ(answer->get_header_value("Refresh"), "5");
  }
  EXPECT_EQ(Get("/log.sqlite")->status, 404);
}

TEST_F(DashboardServe, SaysWhatIsWrongWithTheLog) {
  broken_ = true;
  const auto answer = Get("/");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_THAT(answer->body, HasSubstr("it is gone"));
}

TEST_F(DashboardServe, RefusesAnotherSitesNameForThisMachine) {
  EXPECT_EQ(Get("/", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(Get("/", {{"Host", fmt::format("localhost:{}", port_)}})->status, 200);
}

TEST_F(DashboardServe, ATakenPortIsOneClearError) {
  ServeSpec second;
  second.port = port_;
  second.interrupted = [] { return true; };
  const auto served = ServeDashboard(second);
  ASSERT_FALSE(served);
  EXPECT_EQ(served.error().kind, ErrorKind::kUnavailable);
  EXPECT_THAT(served.error().text, HasSubstr("--serve 0"));
}

TEST(DashboardCommand, ServesNothingWithoutALog) {
  std::ostringstream out, err;
  EXPECT_EQ(DashboardCommand({"--serve", "0", "--log", "/no/such/log.sqlite"}, out, err), 1);
  EXPECT_THAT(err.str(), HasSubstr("/no/such/log.sqlite"));
  EXPECT_EQ(DashboardCommand({"--serve", "99999"}, out, err), 2);
}

}  // namespace
}  // namespace crucible
