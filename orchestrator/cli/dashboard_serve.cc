#include "orchestrator/cli/dashboard_serve.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <chrono>
#include <stop_token>
#include <thread>

namespace crucible {
namespace {

constexpr char kAddress[] = "127.0.0.1";
constexpr char kRefreshSeconds[] = "5";
constexpr auto kAskEvery = std::chrono::milliseconds(100);

bool NamesThisMachine(const std::string& host, int port) {
  for (const char* name : {kAddress, "localhost"})
    if (host == fmt::format("{}:{}", name, port) || (port == 80 && host == name)) return true;
  return false;
}

}  // namespace

Result<> ServeDashboard(const ServeSpec& spec) {
  httplib::Server server;
  // Without the library's SO_REUSEPORT, by which two servers would share a port in silence.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  int port = spec.port;
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    if (NamesThisMachine(request.get_header_value("Host"), port))
      return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    response.set_content("this page is for this machine alone\n", "text/plain");
    return httplib::Server::HandlerResponse::Handled;
  });
  server.Get("/", [&](const httplib::Request&, httplib::Response& response) {
    const auto page = spec.page();
    response.status = page ? 200 : 500;
    response.set_content(page ? *page : page.error().text + "\n",
                         page ? "text/html; charset=utf-8" : "text/plain; charset=utf-8");
    response.set_header("Refresh", kRefreshSeconds);
    response.set_header("Cache-Control", "no-store");
  });
  const bool bound = port == 0 ? (port = server.bind_to_any_port(kAddress)) > 0
                               : server.bind_to_port(kAddress, port);
  if (!bound)
    return Fail(ErrorKind::kUnavailable, "serve the dashboard on",
                fmt::format("{}:{}", kAddress, spec.port), "the port is not to be had",
                "`--serve 0` takes a free one");
  if (spec.ready) spec.ready(fmt::format("http://{}:{}/", kAddress, port));
  const std::jthread asks([&](const std::stop_token& over) {
    while (!over.stop_requested() && !spec.interrupted()) std::this_thread::sleep_for(kAskEvery);
    // A stop before the listening has begun is lost.
    while (!over.stop_requested()) {
      server.stop();
      std::this_thread::sleep_for(kAskEvery);
    }
  });
  server.listen_after_bind();
  return {};
}

}  // namespace crucible
