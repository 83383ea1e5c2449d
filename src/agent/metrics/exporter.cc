#include "agent/metrics/exporter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/metrics/statistics_text.h"
#include "base/log.h"
#include "base/net/address.h"
#include "base/net/lookup.h"
#include "base/open_metrics.h"
#include "base/sizes.h"

namespace viaduct::agent {
namespace {

constexpr std::size_t kConnections = 16;

constexpr std::string_view kHint =
    "Viaduct's statistics in the OpenMetrics format.\n"
    "/metrics  all agents of this user in this network namespace\n"
    "/agent    the agent that answers\n";

// A port without a host means loopback.
std::string withHost(std::string_view where) {
  return base::parseCount(where) ? fmt::format("127.0.0.1:{}", where) : std::string(where);
}

}  // namespace

Result<std::unique_ptr<Exporter>> Exporter::open(std::string_view where, const std::string& id,
                                                 AskStatistics ask, Deadline until) {
  std::unique_ptr<Exporter> exporter(new Exporter(std::move(ask)));
  VIADUCT_CHECK(exporter->start(where, id, until));
  return exporter;
}

Status Exporter::start(std::string_view where, const std::string& id, Deadline until) {
  VIADUCT_TRY(const auto host_port, base::parseHostPort(withHost(where)));
  unix_name_ = fmt::format("{}{}-{}", base::kMetricsServers, ::getpid(), id);
  VIADUCT_TRY(loop_, base::Loop::start("viaduct-metrics", [this] { goOn(); }));
  const auto held = loop_->hold();
  server_ = std::make_unique<base::HttpServer>(
      loop_->poller(), base::HttpServer::Limits{.connections = kConnections},
      [this](base::HttpServer::Id from, std::string_view path) { asked(from, path); });
  // The place is not needed: the server limits its connections itself.
  auto accepted = [this](base::Fd socket, const base::Unproven::Place&) {
    server_->accept(std::move(socket));
  };
  VIADUCT_TRY(listener_,
              base::Listener::open({}, unix_name_, loop_->poller(), std::move(accepted)));
  if (const Status listens = listenAtPort(host_port, until); !listens)
    base::log(base::LogLevel::kWarning, "metrics are not served at {}: {}", where,
              listens.error().text());
  else
    base::log(base::LogLevel::kInfo, "metrics are served at http://{}/metrics", endpoint_);
  return Ok{};
}

// A name may have several addresses, some of a family that this system lacks. One open port is
// enough.
Status Exporter::listenAtPort(const base::HostPort& where, Deadline until) {
  VIADUCT_TRY(const auto addresses, base::resolve(where, until.at()));
  std::optional<Error> failed;
  for (const base::SocketAddress& address : addresses) {
    auto socket = base::listenAt(address, true);
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
  if (failed && failed->code == Code::kBusy) {
    failed->cause = "another exporter, or an agent of another user, has the port";
    failed->remedy = "set VIADUCT_METRICS to another port, or to 0 for a free one";
  }
  return *std::move(failed);
}

Exporter::~Exporter() {
  if (!loop_) return;
  loop_->stop();
  survey_.reset();
  listener_.reset();
  server_.reset();
}

void Exporter::abandon() {
  static_cast<void>(survey_.release());
  static_cast<void>(listener_.release());
  static_cast<void>(server_.release());
  static_cast<void>(loop_.release());
}

std::string Exporter::own() const { return statisticsText(ask_(), ::getpid()); }

void Exporter::asked(base::HttpServer::Id id, std::string_view path) {
  if (path == "/metrics") return wait(id);
  if (path == "/agent")
    return server_->reply(id, {.type = std::string(base::kMetricsType), .body = own()});
  if (path == "/") return server_->reply(id, {.body = std::string(kHint)});
  server_->reply(id, {.status = 404, .body = "not found; /metrics has the statistics\n"});
}

void Exporter::wait(base::HttpServer::Id id) {
  waiting_.insert(id);
  // The server closes its oldest connection for a new one, so the oldest request here has gone.
  if (waiting_.size() > kConnections) waiting_.erase(waiting_.begin());
  if (!survey_) askAll();
}

void Exporter::askAll() {
  served_ = std::exchange(waiting_, {});
  auto others = base::unixServers(base::kMetricsServers);
  std::erase(others, unix_name_);
  survey_ = std::make_unique<base::Survey>(
      loop_->poller(), others, base::SurveyOptions{.path = "/agent"},
      [this](std::vector<std::string> texts) { answerForAll(std::move(texts)); });
}

void Exporter::answerForAll(std::vector<std::string> texts) {
  texts.push_back(own());
  const base::HttpReply reply{.type = std::string(base::kMetricsType),
                              .body = base::joinMetrics(texts)};
  for (const base::HttpServer::Id id : served_) server_->reply(id, reply);
  survey_is_over_ = true;
}

void Exporter::goOn() {
  if (!std::exchange(survey_is_over_, false)) return;
  survey_.reset();
  if (!waiting_.empty()) askAll();
}

}  // namespace viaduct::agent
