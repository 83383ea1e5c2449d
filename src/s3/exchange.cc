#include "s3/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/environment.h"
#include "base/text.h"

namespace viaduct::s3 {
namespace {

constexpr std::size_t kMostBody = std::size_t{64} << 10U;  // of an error or a small answer
// The largest buffers that libcurl 7.80 takes, for fewer calls and system calls for each range.
constexpr long kReceiveBuffer = 512L << 10U, kSendBuffer = 2L << 20U;
// A connection without a byte for kSilentSeconds is cut, and its request repeated.
constexpr long kSilentSeconds = 20, kConnectMilliseconds = 5000;

}  // namespace

Exchange::Exchange(const base::CurlLibrary& curl, std::string ca_file)
    : curl_(curl),
      ca_file_(std::move(ca_file)),
      easy_(curl.curl_easy_init(), curl.curl_easy_cleanup),
      head_(nullptr, curl.curl_slist_free_all) {}

bool Exchange::prepare(HttpRequest request, MemoryStream* memory) {
  if (!easy_) return false;
  request_ = std::move(request);
  memory_ = memory;
  if (memory_ != nullptr) memory_->seek(0);
  answer_ = {};
  in_range_ = false;
  error_[0] = '\0';
  curl_slist* lines = nullptr;
  for (const std::string& line : request_.head)
    lines = curl_.curl_slist_append(lines, line.c_str());
  // Removes two header lines that libcurl adds: one waits for status 100, and one is for forms.
  for (const char* line : {"Expect:", "Content-Type:"})
    lines = curl_.curl_slist_append(lines, line);
  head_.reset(lines);
  configure();
  return lines != nullptr;
}

void Exchange::configure() {
  curl_.curl_easy_reset(easy_.get());
  const auto set = [this](CURLoption option, auto value) {
    curl_.curl_easy_setopt(easy_.get(), option, value);
  };
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);  // a key may have a segment ".."
  set(CURLOPT_HTTPHEADER, head_.get());
  set(CURLOPT_PRIVATE, this);
  set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  set(CURLOPT_HEADERFUNCTION, &Exchange::onHeader);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, &Exchange::onBytes);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_ERRORBUFFER, error_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kSendBuffer);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS, kConnectMilliseconds);
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
#if LIBCURL_VERSION_NUM >= 0x075700
  // A name server that does not answer must not delay the removal of a handle.
  set(CURLOPT_QUICK_EXIT, 1L);
#endif
  // By itself, libcurl obeys proxy variables even if the environment is not trusted.
  if (!base::environmentIsTrusted()) set(CURLOPT_NOPROXY, "*");
  if (!ca_file_.empty()) set(CURLOPT_CAINFO, ca_file_.c_str());
  if (request_.method == "POST") {
    set(CURLOPT_POSTFIELDS, request_.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  } else if (request_.method == "PUT") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READFUNCTION, &Exchange::onRead);
    set(CURLOPT_READDATA, this);
    set(CURLOPT_SEEKFUNCTION, &Exchange::onSeek);
    set(CURLOPT_SEEKDATA, this);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(memory_->size()));
  } else if (request_.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request_.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request_.method.data());
  }
}

std::size_t Exchange::onHeader(char* data, std::size_t size, std::size_t count, void* self) {
  static_cast<Exchange*>(self)->keepHeader({data, size * count});
  return size * count;
}

void Exchange::keepHeader(std::string_view line) {
  // An interim answer, such as 100, has a head of its own.
  if (line.starts_with("HTTP/")) answer_ = {};
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  const std::array<std::pair<std::string_view, std::string*>, 5> kept{
      {{"etag", &answer_.etag},
       {"content-length", &answer_.content_length},
       {"content-range", &answer_.content_range},
       {"date", &answer_.date},
       {"x-amz-bucket-region", &answer_.region}}};
  for (const auto& [wanted, into] : kept)
    if (base::sameWord(name, wanted)) *into = base::trimmed(line.substr(colon + 1));
}

std::size_t Exchange::onBytes(char* data, std::size_t size, std::size_t count, void* self) {
  const std::size_t bytes = size * count;
  return static_cast<Exchange*>(self)->takes(data, bytes) ? bytes : 0;
}

// Bytes of a range reach the memory only after the head has promised exactly that range.
bool Exchange::takes(const char* data, std::size_t bytes) {
  curl_.curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &answer_.status);
  if (!request_.range || answer_.status / 100 != 2) {
    answer_.body.append(data, std::min(bytes, kMostBody - answer_.body.size()));
    return true;
  }
  if (!in_range_ && !isTheRange()) return false;
  if (bytes > memory_->size() - memory_->position()) {
    answer_.fault = Fault::kWrongLength;
    return false;
  }
  if (memory_->put(reinterpret_cast<const std::byte*>(data), bytes)) return true;
  answer_.fault = Fault::kMemory;
  return false;
}

bool Exchange::isTheRange() {
  std::optional<std::uint64_t> total;
  if (answer_.status != 206)
    answer_.fault = Fault::kNotARange;
  else if (parseContentRange(answer_.content_range, total) != request_.range)
    answer_.fault = Fault::kWrongRange;
  in_range_ = answer_.fault == Fault::kNone;
  return in_range_;
}

std::size_t Exchange::onRead(char* into, std::size_t size, std::size_t count, void* self) {
  auto* const me = static_cast<Exchange*>(self);
  std::size_t got = 0;
  if (me->memory_->get(reinterpret_cast<std::byte*>(into), size * count, got)) return got;
  me->answer_.fault = Fault::kMemory;
  return CURL_READFUNC_ABORT;
}

int Exchange::onSeek(void* self, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Exchange*>(self)->memory_->seek(static_cast<std::uint64_t>(offset));
  return CURL_SEEKFUNC_OK;
}

Fault Exchange::faultOf(CURLcode code) const {
  constexpr std::array kName{CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY};
  constexpr std::array kConnection{
      CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE, CURLE_OPERATION_TIMEDOUT, CURLE_SEND_ERROR,
      CURLE_RECV_ERROR,      CURLE_GOT_NOTHING,  CURLE_SEND_FAIL_REWIND};
  constexpr std::array kCertificate{CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
                                    CURLE_SSL_ISSUER_ERROR};
  if (code == CURLE_SSL_CONNECT_ERROR) return Fault::kHandshake;
  if (std::ranges::find(kName, code) != kName.end()) return Fault::kName;
  if (std::ranges::find(kConnection, code) != kConnection.end()) return Fault::kConnection;
  if (std::ranges::find(kCertificate, code) != kCertificate.end()) return Fault::kCertificate;
  return Fault::kOther;
}

Answer Exchange::finish(CURLcode code) {
  curl_.curl_easy_getinfo(easy_.get(), CURLINFO_RESPONSE_CODE, &answer_.status);
  const bool range_came = request_.range && answer_.status / 100 == 2;
  if (answer_.fault == Fault::kNone && code != CURLE_OK) {
    answer_.fault = faultOf(code);
    answer_.fault_text = error_[0] != '\0' ? error_ : curl_.curl_easy_strerror(code);
    long system = 0;
    curl_.curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &system);
    if (system != 0 && code == CURLE_COULDNT_CONNECT)
      answer_.fault_text +=
          fmt::format(" ({})", std::system_category().message(static_cast<int>(system)));
  } else if (answer_.fault == Fault::kNone && range_came && (in_range_ || isTheRange()) &&
             memory_->position() != memory_->size()) {
    answer_.fault = Fault::kWrongLength;
  }
  return std::move(answer_);
}

}  // namespace viaduct::s3
