// Answers GET and HEAD for small texts over HTTP/1.1, one request per connection. Limits bound the
// connections, the size of a head, and a connection's time. Threads: under the poller owner's lock.
#pragma once

#include <viaduct/deadline.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/net/http_request.h"
#include "base/poller.h"

namespace viaduct::base {

struct HttpReply {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body = {};
};

class HttpServer {
 public:
  using Id = std::uint64_t;
  // Called with the path of a request. The callee calls reply() at once or later.
  using Asked = std::function<void(Id id, std::string_view path)>;
  struct Limits {
    std::size_t connections = 16;                              // one more closes the oldest
    std::size_t head = 8192;                                   // bytes
    std::chrono::milliseconds time = std::chrono::seconds(5);  // the time limit of a connection
  };

  HttpServer(Poller& poller, const Limits& limits, Asked asked);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void accept(Fd socket);                     // does not block
  void reply(Id id, const HttpReply& reply);  // does nothing if the client has gone
  std::size_t connections() const { return connections_.size(); }

 private:
  struct Connection;
  void events(Id id, std::uint32_t events);
  void read(Id id, Connection& connection);
  void answer(Id id, Connection& connection, std::string_view head);
  void write(Id id, Connection& connection);
  void close(Id id);

  Poller& poller_;
  const Limits limits_;
  const Asked asked_;
  Id last_ = 0;
  std::map<Id, std::unique_ptr<Connection>> connections_;  // the oldest first
};

}  // namespace viaduct::base
