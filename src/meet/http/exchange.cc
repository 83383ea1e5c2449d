#include "meet/http/exchange.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/blocked_signals.h"
#include "base/text.h"

namespace viaduct::meet {
namespace {

bool isTls(CURLcode code) {
  constexpr std::array kCodes{
      CURLE_SSL_CONNECT_ERROR,   CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER,          CURLE_SSL_CACERT_BADFILE,       CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_INVALIDCERTSTATUS,    CURLE_USE_SSL_FAILED,
  };
  return std::ranges::find(kCodes, code) != kCodes.end();
}

// Guards a call of libcurl in a thread of the program. The call may start a thread, which must not
// take the program's signals. Through OpenSSL it may write to a closed connection, which raises
// SIGPIPE.
class QuietCall {
 public:
  QuietCall() {
    ::sigemptyset(&broken_pipe_);
    ::sigaddset(&broken_pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    pending_before_ = ::sigismember(&pending, SIGPIPE) == 1;
  }
  ~QuietCall() {
    constexpr timespec kNow{};
    if (!pending_before_) ::sigtimedwait(&broken_pipe_, nullptr, &kNow);
  }
  QuietCall(const QuietCall&) = delete;
  QuietCall& operator=(const QuietCall&) = delete;

 private:
  const base::BlockedSignals blocked_;
  sigset_t broken_pipe_ = {};
  bool pending_before_ = false;
};

// Cannot be moved, because the curl handle has pointers to it.
class Exchange {
 public:
  Exchange(const base::CurlLibrary& curl, const CurlRequest& request, const Tls& tls);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() = default;

  CURL* easy() const { return easy_.get(); }
  bool deliverLines();               // false: the stream's reader ends the stream
  bool fed() const { return fed_; }  // a line has been received
  CurlAnswer finish(CURLcode code);
  // The answer of a request that has timed out.
  CurlAnswer expire() const;

 private:
  static curl_socket_t onSocket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int onReady(void* self, char* to, char* from, int to_port, int from_port);
  static std::size_t onHeader(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t onBytes(char* data, std::size_t size, std::size_t count, void* self);
  void configure(const Tls& tls);
  void configure(CURLoption file, const std::string& name, CURLoption blob, const std::string& pem);
  CurlFailure failureOf(CURLcode code) const;
  ConnectStep stepReached() const;

  const base::CurlLibrary& curl_;
  const CurlRequest& request_;
  std::unique_ptr<CURL, decltype(base::CurlLibrary::curl_easy_cleanup)> easy_;
  std::unique_ptr<curl_slist, decltype(base::CurlLibrary::curl_slist_free_all)> headers_;
  char error_[CURL_ERROR_SIZE] = {};
  std::string received_;  // of a stream: the incomplete last line
  std::string date_;
  std::vector<int> sockets_;  // opened for this exchange
  bool ready_ = false;        // connected, after TLS, and about to send the request
  bool fed_ = false, too_long_ = false;
};

Exchange::Exchange(const base::CurlLibrary& curl, const CurlRequest& request, const Tls& tls)
    : curl_(curl),
      request_(request),
      easy_(curl.curl_easy_init(), curl.curl_easy_cleanup),
      headers_(nullptr, curl.curl_slist_free_all) {
  if (easy_) configure(tls);
}

void Exchange::configure(const Tls& tls) {
  const auto set = [this](CURLoption option, auto value) {
    curl_.curl_easy_setopt(easy_.get(), option, value);
  };
  curl_slist* headers = curl_.curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_.curl_slist_append(headers, "Expect:");  // no extra round trip before a large body
  if (!request_.token.empty())
    headers = curl_.curl_slist_append(headers, ("Authorization: " + request_.token).c_str());
  headers_.reset(headers);
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_CUSTOMREQUEST, request_.method);
  if (!request_.body.empty()) {
    set(CURLOPT_POSTFIELDS, request_.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  }
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_HEADERFUNCTION, &Exchange::onHeader);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Exchange::onBytes);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_OPENSOCKETFUNCTION, &Exchange::onSocket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_PREREQFUNCTION, &Exchange::onReady);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_NOSIGNAL, 1L);
  // A proxy for outside traffic must not be used for the cluster's own server.
  set(CURLOPT_NOPROXY, "*");
  // Each connection resolves the name again, so that a moved server is found.
  set(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name server that does not answer must not delay the thread that closes the handle.
  set(CURLOPT_QUICK_EXIT, 1L);
#endif
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 10L);
  set(CURLOPT_TCP_KEEPINTVL, 5L);
  // The channel has its own timeout; curl's would report the same with another text.
  set(CURLOPT_CONNECTTIMEOUT_MS, 24L * 3600 * 1000);
  configure(CURLOPT_CAINFO, tls.ca_file, CURLOPT_CAINFO_BLOB, tls.ca_pem);
  configure(CURLOPT_SSLCERT, tls.certificate_file, CURLOPT_SSLCERT_BLOB, tls.certificate_pem);
  configure(CURLOPT_SSLKEY, tls.key_file, CURLOPT_SSLKEY_BLOB, tls.key_pem);
}

void Exchange::configure(CURLoption file, const std::string& name, CURLoption blob,
                         const std::string& pem) {
  if (!name.empty()) curl_.curl_easy_setopt(easy_.get(), file, name.c_str());
  curl_blob text{.data = const_cast<char*>(pem.data()), .len = pem.size(), .flags = CURL_BLOB_COPY};
  if (!pem.empty()) curl_.curl_easy_setopt(easy_.get(), blob, &text);
}

std::size_t Exchange::onHeader(char* data, std::size_t size, std::size_t count, void* self) {
  constexpr std::string_view kDate = "date:";
  const std::string_view line(data, size * count);
  if (base::sameWord(line.substr(0, kDate.size()), kDate))
    static_cast<Exchange*>(self)->date_ = base::trimmed(line.substr(kDate.size()));
  return line.size();
}

std::size_t Exchange::onBytes(char* data, std::size_t size, std::size_t count, void* self) {
  auto* const me = static_cast<Exchange*>(self);
  const std::size_t bytes = size * count;
  if (me->received_.size() + bytes > me->request_.most) {
    me->too_long_ = true;
    return 0;
  }
  me->received_.append(data, bytes);
  return bytes;
}

bool Exchange::deliverLines() {
  if (!request_.line) return true;
  const std::string_view all = received_;
  std::size_t begin = 0;
  bool more = true;
  for (std::size_t end = 0; more && (end = all.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    if (end == begin) continue;
    fed_ = true;
    more = request_.line(all.substr(begin, end - begin));
  }
  received_.erase(0, begin);
  return more;
}

curl_socket_t Exchange::onSocket(void* self, curlsocktype, curl_sockaddr* address) {
  const int out = ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
  if (out < 0) return CURL_SOCKET_BAD;
  static_cast<Exchange*>(self)->sockets_.push_back(out);
  return out;
}

int Exchange::onReady(void* self, char*, char*, int, int) {
  static_cast<Exchange*>(self)->ready_ = true;
  return CURL_PREREQFUNC_OK;
}

// Finds the step that the request has reached. curl's own times cover neither an unfinished step
// nor a reused connection.
ConnectStep Exchange::stepReached() const {
  if (ready_) return ConnectStep::kRequest;
  if (sockets_.empty()) return ConnectStep::kResolve;
  const bool connected = std::ranges::any_of(sockets_, [](int socket) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    return ::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  });
  if (!connected) return ConnectStep::kConnect;
  return request_.url.starts_with("https:") ? ConnectStep::kTls : ConnectStep::kRequest;
}

CurlFailure Exchange::failureOf(CURLcode code) const {
  CurlFailure out;
  out.text = error_[0] != '\0' ? error_ : curl_.curl_easy_strerror(code);
  // With TLS 1.3 a server rejects our certificate only after the handshake.
  const bool alert = out.text.find("alert") != std::string::npos;
  if (too_long_)
    out.text = fmt::format("the answer is longer than {} MiB", request_.most >> 20U);
  else if (code == CURLE_COULDNT_RESOLVE_HOST)
    out.step = ConnectStep::kResolve;
  else if (code == CURLE_COULDNT_CONNECT)
    out.step = ConnectStep::kConnect;
  else if (isTls(code) || alert)
    out.step = ConnectStep::kTls;
  out.for_good = out.step == ConnectStep::kTls && (alert || code != CURLE_SSL_CONNECT_ERROR);
  long system = 0;
  curl_.curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &system);
  if (system != 0 && out.step == ConnectStep::kConnect)
    out.text += fmt::format(" ({})", std::system_category().message(static_cast<int>(system)));
  return out;
}

CurlAnswer Exchange::finish(CURLcode code) {
  CurlAnswer out;
  curl_.curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &out.status);
  if (code != CURLE_OK) out.failure = failureOf(code);
  curl_off_t wait = 0;
  curl_.curl_easy_getinfo(easy_.get(), CURLINFO_RETRY_AFTER, &wait);
  if (wait > 0) out.retry_after = std::chrono::seconds(wait);
  out.date = std::move(date_);
  out.body = std::move(received_);
  return out;
}

CurlAnswer Exchange::expire() const {
  const ConnectStep step = stepReached();
  constexpr auto kText = [](ConnectStep reached) {
    switch (reached) {
      case ConnectStep::kResolve:
        return "no name server answered in time";
      case ConnectStep::kConnect:
        return "no answer arrived in time";
      case ConnectStep::kTls:
        return "it accepted the connection and sent no TLS greeting in time";
      default:
        return "it accepted the connection and did not answer in time";
    }
  };
  return {.failure = CurlFailure{.step = step, .text = kText(step), .timed_out = true}};
}

}  // namespace

const char* stepName(ConnectStep step) {
  switch (step) {
    case ConnectStep::kResolve:
      return "resolve";
    case ConnectStep::kConnect:
      return "connect";
    case ConnectStep::kTls:
      return "TLS";
    case ConnectStep::kAuth:
      return "auth";
    case ConnectStep::kRequest:
      return "request";
  }
  return "?";
}

Channel::Channel(const base::CurlLibrary& curl)
    : curl_(curl), multi_(curl.curl_multi_init(), curl.curl_multi_cleanup) {}

Result<std::unique_ptr<Channel>> Channel::open() {
  VIADUCT_TRY(const base::CurlLibrary* curl, base::curlLibrary());
  std::unique_ptr<Channel> channel(new Channel(*curl));
  if (!channel->multi_)
    return Error{.code = Code::kExhausted, .operation = "curl_multi_init", .detail = "no memory"};
  return channel;
}

Channel::~Channel() {
  const QuietCall quiet;
  multi_.reset();
}

void Channel::perform() {
  const QuietCall quiet;
  int running = 0;
  curl_.curl_multi_perform(multi_.get(), &running);
}

std::optional<CURLcode> Channel::ended() {
  int left = 0;
  const CURLMsg* const message = curl_.curl_multi_info_read(multi_.get(), &left);
  if (message == nullptr || message->msg != CURLMSG_DONE) return std::nullopt;
  return message->data.result;
}

CurlAnswer Channel::run(const CurlRequest& request, const Tls& tls) {
  using std::chrono::milliseconds;
  constexpr milliseconds kLook{50};
  Exchange exchange(curl_, request, tls);
  if (exchange.easy() == nullptr ||
      curl_.curl_multi_add_handle(multi_.get(), exchange.easy()) != CURLM_OK)
    return {.failure = CurlFailure{.text = "libcurl is out of memory", .for_good = true}};
  const auto remove = [this](CURL* easy) {
    const QuietCall quiet;
    curl_.curl_multi_remove_handle(multi_.get(), easy);
  };
  const std::unique_ptr<CURL, decltype(remove)> added(exchange.easy(), remove);
  for (;;) {
    perform();
    if (!exchange.deliverLines()) return {.left = true};
    if (const auto code = ended()) return exchange.finish(*code);
    const auto now = Clock::now();
    if (!exchange.fed() && now >= request.until) return exchange.expire();
    if (!request.goes_on()) return {.left = true};
    const auto time = exchange.fed() ? kLook : std::min<Duration>(kLook, request.until - now);
    curl_.curl_multi_poll(multi_.get(), nullptr, 0,
                          static_cast<int>(std::chrono::ceil<milliseconds>(time).count()), nullptr);
  }
}

CurlAnswer Channels::run(const CurlRequest& request, const Tls& tls) {
  constexpr std::size_t kMostIdle = 64;
  std::unique_ptr<Channel> channel;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      channel = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!channel) {
    auto opened = Channel::open();
    if (!opened) return {.failure = CurlFailure{.text = opened.error().detail, .for_good = true}};
    channel = *std::move(opened);
  }
  CurlAnswer answer = channel->run(request, tls);
  const std::lock_guard lock(mutex_);
  if (!answer.failure && !answer.left && idle_.size() < kMostIdle)
    idle_.push_back(std::move(channel));
  return answer;
}

void Channels::closeIdle() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

}  // namespace viaduct::meet
