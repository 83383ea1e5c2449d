// One HTTP request and its answer, over libcurl. Threads: that of the loop that runs it.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meet/etcd/library.h"

namespace viaduct::meet::etcd {

// Whom to trust and who we are. Empty: the system's certificates, and nobody.
struct Tls {
  std::string ca_file = {}, certificate_file = {}, key_file = {};
};

enum class ConnectStep : std::uint8_t { kResolve, kConnect, kTls, kAuth, kRequest };
const char* stepName(ConnectStep step);

// Why there is no answer.
struct CurlFailure {
  ConnectStep step = ConnectStep::kRequest;
  std::string text = {};  // libcurl's and the system's own
  bool for_good = false;  // the next try would end like this one
  bool timed_out = false;
};

struct CurlAnswer {
  long status = 0;
  std::string body = {};
  std::optional<CurlFailure> failure = {};
};

struct CurlRequest {
  std::string url = {};
  std::string body = {};
  std::string token = {};        // empty: no such header
  Clock::time_point until = {};  // for the whole answer; of a stream: for its first line
  std::function<void(std::string_view)> line = {};  // makes it a stream: one line of JSON each
  std::function<void(CurlAnswer)> done = {};        // its end; of a stream too
};

class Exchange {
 public:
  // The easy handle has a pointer to it as its CURLOPT_PRIVATE: it must stay where it is.
  Exchange(const CurlLibrary& curl, std::uint64_t id, CurlRequest request, const Tls& tls);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() = default;

  std::uint64_t id() const { return id_; }

  bool ok() const { return easy_ != nullptr; }
  CURL* easy() const { return easy_.get(); }
  const CurlRequest& request() const { return request_; }
  bool stream() const { return static_cast<bool>(request_.line); }
  // The next whole line of a stream that has come; empty lines are left out.
  std::optional<std::string> nextLine();
  bool fed() const { return fed_; }  // a line has come
  CurlAnswer finish(CURLcode code);
  // As an answer that did not come in time.
  CurlAnswer expire() const;

 private:
  static curl_socket_t onSocket(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int onReady(void* self, char* to, char* from, int to_port, int from_port);
  static std::size_t onBytes(char* data, std::size_t size, std::size_t count, void* self);
  void configure(const Tls& tls);
  CurlFailure failureOf(CURLcode code) const;
  ConnectStep stepReached() const;

  const CurlLibrary& curl_;
  const std::uint64_t id_;
  CurlRequest request_;
  std::unique_ptr<CURL, decltype(CurlLibrary::curl_easy_cleanup)> easy_;
  std::unique_ptr<curl_slist, decltype(CurlLibrary::curl_slist_free_all)> headers_;
  char error_[CURL_ERROR_SIZE] = {};
  std::string received_;
  std::size_t read_ = 0;      // of received_: lines that were handed out
  std::size_t scanned_ = 0;   // of received_: no end of a line before here
  std::vector<int> sockets_;  // opened for this exchange
  bool ready_ = false;        // connected, greeted, and about to send the request
  bool fed_ = false, too_long_ = false;
};

}  // namespace viaduct::meet::etcd
