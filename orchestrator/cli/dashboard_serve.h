// dashboard_serve.h: the progress page over HTTP, made anew for every request.
//
// On 127.0.0.1 only, and only for requests that name it so: a page of another site that resolves its
// name to this machine is refused (403). Nothing can be changed through it. Several requests at a
// time; `page` is called from any of their threads.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace crucible {

struct ServeSpec {
  std::function<Result<std::string>()> page;
  int port = 0;                                       // 0: a free one
  std::function<void(const std::string& url)> ready;  // once it listens
  std::function<bool()> interrupted;                  // asked ten times a second: true ends it
};

// Returns when it is interrupted. kUnavailable where the port cannot be had.
Result<> ServeDashboard(const ServeSpec& spec);

}  // namespace crucible
