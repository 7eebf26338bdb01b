#include "orchestrator/agents/llm/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <chrono>

namespace crucible {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kPollMs = 100;  // how soon a stop request or a limit is noticed
// For the end of a reply that nobody needs: then the connection can be used again.
constexpr milliseconds kEndGrace{500};

struct CurlUrl {
  CURLU* handle = ::curl_url();
  CurlUrl() = default;
  CurlUrl(const CurlUrl&) = delete;
  CurlUrl& operator=(const CurlUrl&) = delete;
  ~CurlUrl() { ::curl_url_cleanup(handle); }

  std::string Part(CURLUPart part) const {
    char* text = nullptr;
    if (::curl_url_get(handle, part, &text, 0) != CURLUE_OK) return "";
    std::string result = text;
    ::curl_free(text);
    return result;
  }
};

// What the callbacks of one transfer share.
struct Transfer {
  const std::function<bool(std::string_view)>* on_body = nullptr;
  CURL* easy = nullptr;
  std::size_t max_bytes = 0;
  HttpReply reply;
  bool too_large = false;
  bool satisfied = false;  // on_body needs no more
  SteadyClock::time_point last_sign_of_life, satisfied_at;
  char error[CURL_ERROR_SIZE] = {};
};

std::size_t OnBody(char* bytes, std::size_t one, std::size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const std::string_view piece(bytes, one * count);
  transfer->last_sign_of_life = SteadyClock::now();
  if (transfer->reply.body.size() + piece.size() > transfer->max_bytes) {
    transfer->too_large = true;
    return 0;
  }
  transfer->reply.body.append(piece);
  long status = 0;
  ::curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
  if (*transfer->on_body && status / 100 == 2 && !transfer->satisfied &&
      !(*transfer->on_body)(piece)) {
    transfer->satisfied = true;
    transfer->satisfied_at = SteadyClock::now();
  }
  return piece.size();
}

std::size_t OnHeader(char* bytes, std::size_t one, std::size_t count, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  const std::string_view line(bytes, one * count);
  transfer->last_sign_of_life = SteadyClock::now();
  if (line.starts_with("HTTP/")) transfer->reply.headers.clear();  // after a 100 Continue
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    std::string name(line.substr(0, colon));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view value = line.substr(colon + 1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.front())))
      value.remove_prefix(1);
    while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())))
      value.remove_suffix(1);
    transfer->reply.headers[name] = value;
  }
  return line.size();
}

HttpFailure FailureOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return HttpFailure::kNone;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return HttpFailure::kUrl;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return HttpFailure::kDns;
    case CURLE_COULDNT_CONNECT:
      return HttpFailure::kRefused;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return HttpFailure::kTls;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::kTimeout;
    default:
      return HttpFailure::kDropped;
  }
}

class CurlHttp final : public HttpClient {
 public:
  CurlHttp() {
    static const CURLcode initialised = ::curl_global_init(CURL_GLOBAL_DEFAULT);
    (void)initialised;
    multi_ = ::curl_multi_init();
  }
  ~CurlHttp() override { ::curl_multi_cleanup(multi_); }

  HttpReply Send(const HttpRequest& request,
                 const std::function<bool(std::string_view)>& on_body) override;

 private:
  void Run(const HttpRequest& request, Transfer* transfer);

  CURLM* multi_ = nullptr;  // holds the open connections
};

void SetOptions(CURL* easy, const HttpRequest& request, curl_slist* headers, Transfer* transfer) {
  ::curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  ::curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  ::curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
  ::curl_easy_setopt(easy, CURLOPT_USERAGENT, "crucible");
  ::curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  ::curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     static_cast<long>(request.connect_timeout_ms));
  ::curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.total_timeout_ms));
  ::curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
  ::curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, OnBody);
  ::curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
  ::curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, OnHeader);
  ::curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
  // A proxy that the environment names cannot reach this machine's own loopback.
  if (IsLoopback(request.url)) ::curl_easy_setopt(easy, CURLOPT_PROXY, "");
  if (request.method == "POST") {
    ::curl_easy_setopt(easy, CURLOPT_POST, 1L);
    ::curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
    ::curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
  }
}

HttpReply CurlHttp::Send(const HttpRequest& request,
                         const std::function<bool(std::string_view)>& on_body) {
  Transfer transfer;
  transfer.on_body = &on_body;
  transfer.max_bytes = request.max_bytes;
  transfer.easy = ::curl_easy_init();
  curl_slist* headers = ::curl_slist_append(nullptr, "Expect:");  // no round trip before a body
  for (const std::string& header : request.headers)
    headers = ::curl_slist_append(headers, header.c_str());
  SetOptions(transfer.easy, request, headers, &transfer);
  ::curl_multi_add_handle(multi_, transfer.easy);
  Run(request, &transfer);
  long status = 0;
  ::curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  transfer.reply.status = static_cast<int>(status);
  ::curl_multi_remove_handle(multi_, transfer.easy);
  ::curl_easy_cleanup(transfer.easy);
  ::curl_slist_free_all(headers);
  return std::move(transfer.reply);
}

void CurlHttp::Run(const HttpRequest& request, Transfer* transfer) {
  HttpReply& reply = transfer->reply;
  transfer->last_sign_of_life = SteadyClock::now();
  for (int running = 1; running > 0;) {
    ::curl_multi_perform(multi_, &running);
    if (running == 0) break;
    if (request.stop.stop_requested()) {
      reply.failure = HttpFailure::kStopped;
      reply.cause = "asked to stop";
      return;
    }
    if (transfer->satisfied && SteadyClock::now() - transfer->satisfied_at > kEndGrace) return;
    const auto silent = SteadyClock::now() - transfer->last_sign_of_life;
    if (request.idle_timeout_ms > 0 && silent > milliseconds(request.idle_timeout_ms)) {
      reply.failure = HttpFailure::kIdle;
      reply.cause = "no byte for " + std::to_string(request.idle_timeout_ms) + " ms";
      return;
    }
    ::curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  }
  int left = 0;
  while (CURLMsg* message = ::curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    reply.failure = FailureOf(message->data.result);
    if (reply.failure == HttpFailure::kNone) continue;
    reply.cause = transfer->error;
    if (reply.cause.empty()) reply.cause = ::curl_easy_strerror(message->data.result);
  }
  if (transfer->too_large) {
    reply.failure = HttpFailure::kTooLarge;
    reply.cause = "the reply has more than " + std::to_string(request.max_bytes) + " bytes";
  }
}

}  // namespace

std::unique_ptr<HttpClient> MakeCurlHttp() { return std::make_unique<CurlHttp>(); }

std::string Origin(const std::string& url) {
  CurlUrl parsed;
  if (::curl_url_set(parsed.handle, CURLUPART_URL, url.c_str(), 0) != CURLUE_OK)
    return "an address that is no URL";
  const std::string port = parsed.Part(CURLUPART_PORT);
  return parsed.Part(CURLUPART_SCHEME) + "://" + parsed.Part(CURLUPART_HOST) +
         (port.empty() ? "" : ":" + port);
}

bool IsLoopback(const std::string& url) {
  CurlUrl parsed;
  if (::curl_url_set(parsed.handle, CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return false;
  const std::string host = parsed.Part(CURLUPART_HOST);
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

}  // namespace crucible
