// http.h: one HTTP request at a time, the seam under every provider.
//
// CurlHttp follows no redirect (the key would travel along), speaks http and https only, prints
// nothing, keeps connections open between requests and ends within 0.2 s of a stop request. It
// never retries. Not thread-safe: one client per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace crucible {

struct HttpRequest {
  std::string method = "POST";  // or GET
  std::string url;
  std::vector<std::string> headers;  // "name: value"
  std::string body;
  std::int64_t connect_timeout_ms = 20'000;
  std::int64_t idle_timeout_ms = 0;  // longest silence of the server; 0: no limit
  std::int64_t total_timeout_ms = 60'000;
  std::size_t max_bytes = 32u << 20;  // of the body
  std::stop_token stop;
};

enum class HttpFailure {
  kNone,     // a whole reply came, whatever its status
  kUrl,      // not a URL that can be asked
  kDns,      // no such host
  kRefused,  // nothing listens there, or no way leads there
  kTls,      // a certificate that is not to be trusted
  kIdle,     // silent for idle_timeout_ms
  kTimeout,  // total_timeout_ms ran out
  kDropped,  // the connection broke before the reply was whole
  kTooLarge,
  kStopped,  // by the stop token
};

struct HttpReply {
  HttpFailure failure = HttpFailure::kNone;
  std::string cause;                           // of the failure, in words
  int status = 0;                              // 0 when no status line came
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // what came of it, also after a failure
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // `on_body`, if any, sees the bytes of a 2xx body as they come. It answers false when it needs no
  // more: the server gets half a second to end the reply, then Send returns without failure.
  virtual HttpReply Send(const HttpRequest& request,
                         const std::function<bool(std::string_view)>& on_body) = 0;
};

std::unique_ptr<HttpClient> MakeCurlHttp();

// "https://host:1234" of a URL: what an error may show, without user, password, path and query.
std::string Origin(const std::string& url);

// Whether the host of a URL is this machine's loopback.
bool IsLoopback(const std::string& url);

}  // namespace crucible
