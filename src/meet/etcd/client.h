// Calls to an etcd cluster. A call tries the endpoints in turn until its deadline, or until all of
// them have failed for good. It logs in if a user is given. Threads: any, several at once; a call
// blocks its thread.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meet/etcd/endpoints.h"
#include "meet/etcd/gateway.h"
#include "meet/http/exchange.h"
#include "meet/wait.h"

namespace viaduct::meet::etcd {

class Client {
 public:
  struct Config {
    std::vector<EtcdEndpoint> endpoints = {};
    std::string user = {}, password = {};  // never in an error or a log
    Tls tls = {};
  };
  // Loads libcurl.
  static Result<std::shared_ptr<Client>> open(Config config);

  // The longest time of a try at one of several endpoints, even if the deadline of the call is far.
  // An etcd that works answers within the time of its own election (1 to 2 s).
  static constexpr std::chrono::milliseconds kLongestTry{3000};

  // Ends soon after `wait.until` at the latest. Errors name each endpoint, the step that failed and
  // the system's text. `longest_try`: if there are other endpoints, an endpoint is given up after
  // this time.
  Result<std::string> call(std::string_view path, const std::string& body, const Wait& wait,
                           Duration longest_try = kLongestTry);
  // Reads the key, and waits for changes until `enough` accepts its value.
  using Held = std::optional<KeyValue>;
  using Enough = std::function<bool(const Held&)>;
  Result<Held> await(const std::string& key, const Wait& wait, const Enough& enough);

  const std::string& text() const { return text_; }  // "etcd http://a:2379,http://b:2379"
  void closeIdle() {
    channels_.closeIdle();
  }  // closes idle connections, as no call is expected soon

 private:
  class Call;
  class Following;

  explicit Client(Config config);
  std::string tokenFor(std::string_view path) const;
  bool needsLogin(std::string_view path) const;
  Status login(const Wait& wait);
  void forgetToken();
  std::size_t current() const;
  void answers(std::size_t endpoint);
  void fails(std::size_t endpoint);
  CurlAnswer exchange(const CurlRequest& request) { return channels_.run(request, config_.tls); }

  const Config config_;
  std::string text_;
  mutable std::mutex mutex_;
  std::size_t current_ = 0;  // the endpoint that the next call tries first
  std::string token_;
  bool login_off_ = false;  // the cluster has authentication switched off
  Channels channels_;
};

}  // namespace viaduct::meet::etcd
