// Serves metrics in the OpenMetrics format over HTTP. The servers of one user share a TCP port.
// Each also listens on a Unix socket, so that the server with the port can collect and serve the
// metrics of all. Threads: one of its own, asleep while there is no request.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/net/http_server.h"
#include "base/net/listener.h"
#include "base/net/survey.h"

namespace viaduct::base {

class MetricsServer {
 public:
  using Text = std::function<std::string()>;  // called by the server's thread

  // `where` is a port, or a host and a port. `id` distinguishes the servers of one process. Fails
  // for a malformed address. If the port cannot be opened, that is only a warning, because the Unix
  // socket is served.
  static Result<std::unique_ptr<MetricsServer>> open(std::string_view where, const std::string& id,
                                                     Text text, Deadline until);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // "127.0.0.1:27180"; empty if no port could be opened.
  const std::string& endpoint() const { return endpoint_; }
  // For a fork()ed child, which lacks the server's thread.
  void abandon();

 private:
  explicit MetricsServer(Text text) : text_(std::move(text)) {}
  Status start(std::string_view where, const std::string& id, Deadline until);
  Status listenAtPort(const HostPort& where, Deadline until);
  void asked(HttpServer::Id id, std::string_view path);
  void wait(HttpServer::Id id);
  void askAll();
  void answerForAll(std::vector<std::string> texts);
  void goOn();

  const Text text_;
  std::string endpoint_, unix_name_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Listener> listener_;
  // A survey asks all servers. Only one survey runs at a time, because each survey takes a
  // descriptor for every other process. A request that comes meanwhile waits for the next survey,
  // so its figures are no older than the request.
  std::unique_ptr<Survey> survey_;
  bool survey_is_over_ = false;  // its handler may still run
  std::set<HttpServer::Id> served_, waiting_;
};

}  // namespace viaduct::base
