#include "base/net/metrics_server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/net/address.h"
#include "base/net/lookup.h"
#include "base/open_metrics.h"
#include "base/sizes.h"

namespace viaduct::base {
namespace {

constexpr std::size_t kConnections = 16;

constexpr std::string_view kHint =
    "Viaduct's metrics in the OpenMetrics format.\n"
    "/metrics  all agents and doctors of this user in this network namespace\n"
    "/agent    the one that answers\n";

// A port without a host means loopback.
std::string withHost(std::string_view where) {
  return parseCount(where) ? fmt::format("127.0.0.1:{}", where) : std::string(where);
}

}  // namespace

Result<std::unique_ptr<MetricsServer>> MetricsServer::open(std::string_view where,
                                                           const std::string& id, Text text,
                                                           Deadline until) {
  std::unique_ptr<MetricsServer> server(new MetricsServer(std::move(text)));
  VIADUCT_CHECK(server->start(where, id, until));
  return server;
}

Status MetricsServer::start(std::string_view where, const std::string& id, Deadline until) {
  VIADUCT_TRY(const auto host_port, parseHostPort(withHost(where)));
  unix_name_ = fmt::format("{}{}-{}", kMetricsServers, ::getpid(), id);
  VIADUCT_TRY(loop_, Loop::start("viaduct-metrics", [this] { goOn(); }));
  const auto held = loop_->hold();
  server_ = std::make_unique<HttpServer>(
      loop_->poller(), HttpServer::Limits{.connections = kConnections},
      [this](HttpServer::Id from, std::string_view path) { asked(from, path); });
  // The HTTP server limits its connections itself, so it needs no Unproven::Place.
  auto accepted = [this](Fd socket, const Unproven::Place&) { server_->accept(std::move(socket)); };
  VIADUCT_TRY(listener_, Listener::open({}, unix_name_, loop_->poller(), std::move(accepted)));
  if (const Status listens = listenAtPort(host_port, until); !listens)
    log(LogLevel::kWarning, "metrics are not served at {}: {}", where, listens.error().text());
  else
    log(LogLevel::kInfo, "metrics are served at http://{}/metrics", endpoint_);
  return Ok{};
}

// A name may have several addresses, some of a family that this system lacks. One open port is
// enough.
Status MetricsServer::listenAtPort(const HostPort& where, Deadline until) {
  VIADUCT_TRY(const auto addresses, resolve(where, until.at()));
  Error failed;
  for (const SocketAddress& address : addresses) {
    auto socket = listenAt(address, true);
    if (!socket) {
      failed = std::move(socket).error();
      continue;
    }
    VIADUCT_CHECK(listener_->adopt(*std::move(socket)));
  }
  const auto reached = listener_->addresses();
  if (!reached.empty()) {
    endpoint_ = reached.front();
    return Ok{};
  }
  if (failed.code == Code::kBusy) {
    failed.cause = "another exporter, or an agent of another user, has the port";
    failed.remedy = "set VIADUCT_METRICS to another port, or to 0 for a free one";
  }
  return failed;
}

MetricsServer::~MetricsServer() {
  if (!loop_) return;
  loop_->stop();
  survey_.reset();
  listener_.reset();
  server_.reset();
}

void MetricsServer::abandon() {
  static_cast<void>(survey_.release());
  static_cast<void>(listener_.release());
  static_cast<void>(server_.release());
  static_cast<void>(loop_.release());
}

void MetricsServer::asked(HttpServer::Id id, std::string_view path) {
  if (path == "/metrics") return wait(id);
  if (path == "/agent")
    return server_->reply(id, {.type = std::string(kMetricsType), .body = text_()});
  if (path == "/") return server_->reply(id, {.body = std::string(kHint)});
  server_->reply(id, {.status = 404, .body = "not found; /metrics has the statistics\n"});
}

void MetricsServer::wait(HttpServer::Id id) {
  waiting_.insert(id);
  // The server closes its oldest connection for a new one, so the oldest request here has gone.
  if (waiting_.size() > kConnections) waiting_.erase(waiting_.begin());
  if (!survey_) askAll();
}

void MetricsServer::askAll() {
  served_ = std::exchange(waiting_, {});
  auto others = unixServers(kMetricsServers);
  std::erase(others, unix_name_);
  survey_ = std::make_unique<Survey>(
      loop_->poller(), others, SurveyOptions{.path = "/agent"},
      [this](std::vector<std::string> texts) { answerForAll(std::move(texts)); });
}

void MetricsServer::answerForAll(std::vector<std::string> texts) {
  texts.push_back(text_());
  const HttpReply reply{.type = std::string(kMetricsType), .body = joinMetrics(texts)};
  for (const HttpServer::Id id : served_) server_->reply(id, reply);
  survey_is_over_ = true;
}

void MetricsServer::goOn() {
  if (!std::exchange(survey_is_over_, false)) return;
  survey_.reset();
  if (!waiting_.empty()) askAll();
}

}  // namespace viaduct::base
