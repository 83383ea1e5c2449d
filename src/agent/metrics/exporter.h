// Serves an agent's statistics over HTTP: on a TCP port that processes of a user share, and on a
// Unix socket by which they find each other, so that each answers for all. Threads: one of its own,
// asleep while nobody asks.
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
  using Ask = std::function<Statistics()>;  // from the exporter's thread

  // `where`: Settings::metrics. `id`: tells agents of one process apart. Fails for an address that
  // cannot be right. A port that cannot be had is only a warning: the Unix socket is served.
  static Result<std::unique_ptr<Exporter>> open(std::string_view where, const std::string& id,
                                                Ask ask, Deadline until);
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  // "127.0.0.1:27180"; empty: no port could be had.
  const std::string& endpoint() const { return endpoint_; }
  // In a fork()ed child, which has no thread of it.
  void abandon();

 private:
  explicit Exporter(Ask ask) : ask_(std::move(ask)) {}
  Status start(std::string_view where, const std::string& id, Deadline until);
  Status listenAtPort(const base::HostPort& where, Deadline until);
  void asked(base::HttpServer::Id id, std::string_view path);
  void wait(base::HttpServer::Id id);
  void askAll();
  void answerForAll(std::vector<std::string> texts);
  void goOn();
  std::string own() const;

  const Ask ask_;
  std::string endpoint_, unix_name_;
  std::unique_ptr<base::Loop> loop_;
  std::unique_ptr<base::HttpServer> server_;
  std::unique_ptr<base::Listener> listener_;
  // One survey at a time, because each takes a descriptor for every other process. A caller that
  // comes meanwhile waits for the next one: its figures are no older than its request.
  std::unique_ptr<base::Survey> survey_;
  bool survey_is_over_ = false;  // its handler may still run
  std::set<base::HttpServer::Id> served_, waiting_;
};

}  // namespace viaduct::agent
