#include "meet/etcd/exchange.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

namespace viaduct::meet::etcd {
namespace {

// More than any answer of ours (all values of a round, base64), less than what hurts.
constexpr std::size_t kMaxAnswer = std::size_t{256} * 1024 * 1024;

bool isTls(CURLcode code) {
  constexpr std::array kCodes{
      CURLE_SSL_CONNECT_ERROR,   CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER,          CURLE_SSL_CACERT_BADFILE,       CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_INVALIDCERTSTATUS,    CURLE_USE_SSL_FAILED,
  };
  return std::ranges::find(kCodes, code) != kCodes.end();
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

Exchange::Exchange(const CurlLibrary& curl, std::uint64_t id, CurlRequest request, const Tls& tls)
    : curl_(curl),
      id_(id),
      request_(std::move(request)),
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
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_POSTFIELDS, request_.body.data());
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_WRITEFUNCTION, &Exchange::onBytes);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_OPENSOCKETFUNCTION, &Exchange::onSocket);
  set(CURLOPT_OPENSOCKETDATA, this);
  set(CURLOPT_PREREQFUNCTION, &Exchange::onReady);
  set(CURLOPT_PREREQDATA, this);
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_NOSIGNAL, 1L);
  // A proxy that is set for the outside world has no business between us and the cluster's etcd.
  set(CURLOPT_NOPROXY, "*");
  // Who has moved is found again: an address is asked for whenever a connection is made.
  set(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name server that does not answer must not hold up whoever closes the handle.
  set(CURLOPT_QUICK_EXIT, 1L);
#endif
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_TCP_KEEPIDLE, 10L);
  set(CURLOPT_TCP_KEEPINTVL, 5L);
  // The loop ends what takes too long; curl's own limit would give the same a second text.
  set(CURLOPT_CONNECTTIMEOUT_MS, 24L * 3600 * 1000);
  if (!tls.ca_file.empty()) set(CURLOPT_CAINFO, tls.ca_file.c_str());
  if (!tls.certificate_file.empty()) set(CURLOPT_SSLCERT, tls.certificate_file.c_str());
  if (!tls.key_file.empty()) set(CURLOPT_SSLKEY, tls.key_file.c_str());
}

std::size_t Exchange::onBytes(char* data, std::size_t size, std::size_t count, void* self) {
  auto* const me = static_cast<Exchange*>(self);
  const std::size_t bytes = size * count;
  if (me->received_.size() - me->read_ + bytes > kMaxAnswer) {
    me->too_long_ = true;
    return 0;
  }
  me->received_.append(data, bytes);
  return bytes;
}

std::optional<std::string> Exchange::nextLine() {
  for (;;) {
    const std::size_t end = received_.find('\n', std::max(read_, scanned_));
    if (end == std::string::npos) {
      received_.erase(0, std::exchange(read_, 0));
      scanned_ = received_.size();
      return std::nullopt;
    }
    std::string line = received_.substr(read_, end - read_);
    read_ = scanned_ = end + 1;
    if (line.empty()) continue;
    fed_ = true;
    return line;
  }
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

// curl's own times say nothing of a step that is under way, nor of a connection that is used again.
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
  // With TLS 1.3 a server says what it thinks of our certificate after the handshake.
  const bool alert = out.text.find("alert") != std::string::npos;
  if (too_long_)
    out.text = fmt::format("the answer is longer than {} MiB", kMaxAnswer >> 20U);
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
  out.body = received_.substr(read_);
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

}  // namespace viaduct::meet::etcd
