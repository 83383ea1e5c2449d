// One HTTP request and its answer, over libcurl. Threads: one at a time per object.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/curl_library.h"

namespace viaduct::meet {

// The trusted authorities and our certificate, as files or as their text in PEM. Empty: the
// system's authorities, and no certificate.
struct Tls {
  std::string ca_file = {}, certificate_file = {}, key_file = {};
  std::string ca_pem = {}, certificate_pem = {}, key_pem = {};
};

enum class ConnectStep : std::uint8_t { kResolve, kConnect, kTls, kAuth, kRequest };
const char* stepName(ConnectStep step);

// Tells why a request got no answer.
struct CurlFailure {
  ConnectStep step = ConnectStep::kRequest;
  std::string text = {};  // the text of libcurl and the system
  bool for_good = false;  // another try would fail in the same way
  bool timed_out = false;
};

struct CurlAnswer {
  long status = 0;
  std::string body = {};
  std::string date = {};                                 // the server's clock, as its header has it
  std::optional<std::chrono::seconds> retry_after = {};  // when the server wants to be asked again
  std::optional<CurlFailure> failure = {};
  bool left = false;  // the caller has ended the wait
};

struct CurlRequest {
  const char* method = "POST";
  std::string url = {};
  std::string body = {};                     // empty: none
  std::string token = {};                    // empty: no Authorization header
  std::size_t most = std::size_t{4} << 20U;  // bytes of the answer; of a stream: of one line
  Clock::time_point until = {};  // the deadline of the answer; of a stream: of its first line
  // If set, the answer is a stream. Gets each line of JSON, and returns whether it wants more.
  std::function<bool(std::string_view)> line = {};
  // Called at least every 50 ms during the request. False: stop waiting.
  std::function<bool()> goes_on = {};
};

// Runs one request after the other, and keeps the connection for the next one.
class Channel {
 public:
  static Result<std::unique_ptr<Channel>> open();
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  CurlAnswer run(const CurlRequest& request, const Tls& tls);
  // Makes run() call `goes_on` at once. Threads: any.
  void wake() { curl_.curl_multi_wakeup(multi_.get()); }

 private:
  explicit Channel(const base::CurlLibrary& curl);
  void perform();
  std::optional<CURLcode> ended();

  const base::CurlLibrary& curl_;
  std::unique_ptr<CURLM, decltype(base::CurlLibrary::curl_multi_cleanup)> multi_;
};

// The idle channels to a server, for the next request. Threads: any, several at once.
class Channels {
 public:
  CurlAnswer run(const CurlRequest& request, const Tls& tls);
  void closeIdle();

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Channel>> idle_;
};

}  // namespace viaduct::meet
