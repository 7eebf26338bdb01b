#include "orchestrator/cli/dashboard_command.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <ostream>

#include "base/json.h"
#include "base/output.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/dashboard_serve.h"
#include "orchestrator/cli/log_command.h"
#include "results_log/dashboard/dashboard.h"

namespace crucible {
namespace {

constexpr int kUsualPort = 8585;

volatile std::sig_atomic_t g_interrupted = 0;

struct Options {
  std::string out, target, log;
  bool as_json = false;
  int port = kUsualPort;
};

Result<std::string> Page(const std::filesystem::path& log, const std::string& target) {
  CRUCIBLE_ASSIGN(Store store, Store::OpenReadOnly(log));
  CRUCIBLE_ASSIGN(const DashboardInput input, LoadDashboard(&store, target));
  return RenderDashboard(input);
}

Result<> Write(const Options& options, std::ostream& out) {
  CRUCIBLE_ASSIGN(const std::filesystem::path log, LogFile(options.log));
  CRUCIBLE_ASSIGN(const std::string page, Page(log, options.target));
  if (options.out == "-") {
    out << page;
    return {};
  }
  const std::filesystem::path file = options.out.empty() ? log.parent_path() / "dashboard.html"
                                                         : std::filesystem::path(options.out);
  CRUCIBLE_TRY(WriteOutput(file, page));
  if (options.as_json)
    out << nlohmann::json{{"file", file.string()}}.dump(2) << "\n";
  else
    out << file.string() << "\n";
  return {};
}

// Until Ctrl-C.
int Serve(const Options& options, std::ostream& out, std::ostream& err) {
  const auto log = LogFile(options.log);
  if (!log) return Report(log.error(), err);
  if (const auto page = Page(*log, options.target); !page) return Report(page.error(), err);
  struct sigaction action {};
  action.sa_handler = [](int) { g_interrupted = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ServeSpec spec;
  spec.page = [&] { return Page(*log, options.target); };
  spec.port = options.port;
  spec.ready = [&](const std::string& url) {
    out << (options.as_json ? nlohmann::json{{"url", url}}.dump() : url) << std::endl;
  };
  spec.interrupted = [] { return g_interrupted != 0; };
  if (const auto served = ServeDashboard(spec); !served) return Report(served.error(), err);
  return 130;
}

}  // namespace

int DashboardCommand(const std::vector<std::string>& words, std::ostream& out, std::ostream& err) {
  CLI::App app(
      "crucible dashboard: writes the progress page, one HTML file that needs nothing else",
      "crucible dashboard");
  Options options;
  app.add_option("--out", options.out,
                 "where to (default: dashboard.html beside the log; -: stdout)");
  app.add_option("--target", options.target, "the target (default: the one measured last)");
  app.add_option("--log", options.log, "the log's file (default: the repository's)");
  app.add_flag("--json", options.as_json,
               "print {\"file\": …}; with --out -, the page all the same");
  const CLI::Option* serve =
      app.add_option(
             "--serve", options.port,
             "serve it on 127.0.0.1 until Ctrl-C, made anew for every request (0: a free port)")
          ->expected(0, 1)
          ->check(CLI::Range(0, 65535))
          ->capture_default_str()
          ->type_name("[PORT]");
  int code = 0;
  if (!ParseWords(&app, words, out, err, &code)) return code;
  if (serve->count() > 0) return Serve(options, out, err);
  const auto written = Write(options, out);
  return written ? 0 : Report(written.error(), err);
}

}  // namespace crucible
