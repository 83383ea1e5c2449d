// Calls to an etcd cluster: over its endpoints in turn, again until the deadline where that can
// help, logged in where a user is given. Threads: the loop's own.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meet/etcd/curl_loop.h"
#include "meet/etcd/endpoints.h"
#include "meet/etcd/gateway.h"

namespace viaduct::meet::etcd {

class Client {
 public:
  struct Config {
    std::vector<EtcdEndpoint> endpoints = {};
    std::string user = {}, password = {};  // in no error and no log
  };
  Client(CurlLoop& loop, Config config);
  ~Client();  // calls under way end without a word
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  using Done = std::function<void(Result<std::string>)>;
  // No endpoint holds a call for longer, however far its deadline is: an etcd that answers does so
  // within its own election (1 to 2 s) at the most.
  static constexpr std::chrono::milliseconds kLongestTry{3000};

  // `done` runs once, never inside call(), and soon after `until` at the latest. Errors name each
  // endpoint, the step that failed and the system's text. kNotFound: a lease is no more.
  // `longest_try`: where there are others to go to, an endpoint is left after it.
  void call(std::string_view path, std::string body, Clock::time_point until, Done done,
            Duration longest_try = kLongestTry);

  // A request whose answer is a stream of lines, at the endpoint that answers now. `end` runs once.
  // `first_line`: by when there has to be one.
  struct StreamRequest {
    std::string body = {};
    Clock::time_point first_line = {};
    std::function<void(std::string_view)> line = {};
    std::function<void(Error)> end = {};
  };
  class OpenStream;  // lets go of the stream when destroyed
  std::unique_ptr<OpenStream> openStream(StreamRequest stream);

  // Makes sure that there is a token, where a user is given: streams do not ask for one themselves.
  void login(Clock::time_point until, std::function<void(Status)> done);
  // The token is no longer taken: the next call gets another one.
  void forgetToken() { token_.clear(); }
  // The endpoint in use failed: what only listens there looks elsewhere. One subscriber's own id.
  CurlLoop::Id onMove(std::function<void()> moved);
  void forgetMove(CurlLoop::Id id);

  // Why a call that is under way has not been answered yet, where an endpoint has failed it.
  std::optional<Error> trouble() const;

  // Runs once, as soon as no call is under way.
  void whenIdle(std::function<void()> run);

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  void attempt(const CallPtr& call);
  void loggedIn(Result<std::string> body);
  void answered(const CallPtr& call, CurlAnswer answer);
  void refused(const CallPtr& call, const CurlAnswer& answer);
  void failed(const CallPtr& call, CurlFailure failure);
  void finish(const CallPtr& call, Result<std::string> result);
  void moveOn(std::size_t from);
  Error failureOf(const Call& call) const;
  bool needsLogin(std::string_view path) const;

  CurlLoop& loop_;
  Config config_;
  std::size_t current_ = 0;  // the endpoint that answered last
  std::string token_;
  bool login_off_ = false;  // the cluster has authentication switched off
  std::vector<std::function<void(Status)>> waiting_for_login_;
  std::list<CallPtr> calls_;
  std::function<void()> when_idle_;
  std::vector<std::pair<CurlLoop::Id, std::function<void()>>> on_move_;
  CurlLoop::Id last_id_ = 0;
};

class Client::OpenStream {
 public:
  OpenStream(CurlLoop& loop, CurlLoop::Id id) : loop_(loop), id_(id) {}
  ~OpenStream() { loop_.drop(id_); }
  OpenStream(const OpenStream&) = delete;
  OpenStream& operator=(const OpenStream&) = delete;

 private:
  CurlLoop& loop_;
  CurlLoop::Id id_;
};

}  // namespace viaduct::meet::etcd
