// Serves an agent's statistics over HTTP. The agents of one user share a TCP port. Each also
// listens on a Unix socket, so that the agent with the port can collect and serve the statistics of
// all. Threads: one of its own, asleep while there is no request.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>
#include <viaduct/statistics.h>

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

namespace viaduct::agent {

class Exporter {
 public:
  using AskStatistics = std::function<Statistics()>;  // called by the exporter's thread

  // `where` is Settings::metrics. `id` distinguishes the agents of one process. Fails for a
  // malformed address. If the port cannot be opened, that is only a warning, because the Unix
  // socket is served.
  static Result<std::unique_ptr<Exporter>> open(std::string_view where, const std::string& id,
                                                AskStatistics ask, Deadline until);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // "127.0.0.1:27180"; empty if no port could be opened.
  const std::string& endpoint() const { return endpoint_; }
  // For a fork()ed child, which lacks the exporter's thread.
  void abandon();

 private:
  explicit Exporter(AskStatistics ask) : ask_(std::move(ask)) {}
  Status start(std::string_view where, const std::string& id, Deadline until);
  Status listenAtPort(const base::HostPort& where, Deadline until);
  void asked(base::HttpServer::Id id, std::string_view path);
  void wait(base::HttpServer::Id id);
  void askAll();
  void answerForAll(std::vector<std::string> texts);
  void goOn();
  std::string own() const;

  const AskStatistics ask_;
  std::string endpoint_, unix_name_;
  std::unique_ptr<base::Loop> loop_;
  std::unique_ptr<base::HttpServer> server_;
  std::unique_ptr<base::Listener> listener_;
  // A survey asks all agents. Only one runs at a time, because each takes a descriptor for every
  // other process. A request that comes meanwhile waits for the next survey, so its figures are no
  // older than the request.
  std::unique_ptr<base::Survey> survey_;
  bool survey_is_over_ = false;  // its handler may still run
  std::set<base::HttpServer::Id> served_, waiting_;
};

}  // namespace viaduct::agent
