// Several servers of one process stand for those of several processes.
#include "base/net/metrics_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/net/address.h"
#include "base/open_metrics.h"
#include "support/http_get.h"

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;
using testing::connectTo;
using testing::httpGet;

std::string textOf(const std::string& name) {
  MetricsWriter out;
  out.family({"viaduct_agent", "info", "", "An agent."});
  out.sample("_info", std::vector<MetricLabel>{{"agent", name}}, std::uint64_t{1});
  return std::move(out).finish();
}

std::unique_ptr<MetricsServer> serve(const std::string& where, const std::string& name) {
  auto server = MetricsServer::open(where, name, [name] { return textOf(name); }, 10s);
  EXPECT_TRUE(server) << server.error().text();
  return *std::move(server);
}

bool tellsOf(const std::string& text, const std::string& agent) {
  return text.find("viaduct_agent_info{agent=\"" + agent + "\"") != std::string::npos;
}

TEST(MetricsServer, ServesAFreePortOfLoopbackForPortZero) {
  const auto server = serve("0", "only");
  EXPECT_TRUE(server->endpoint().starts_with("127.0.0.1:")) << server->endpoint();
  const std::string answer = httpGet(server->endpoint(), "/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
            std::string::npos);
  EXPECT_TRUE(answer.ends_with("\n# EOF\n"));
  EXPECT_TRUE(tellsOf(answer, "only"));
}

TEST(MetricsServer, ListsItsPathsAndRefusesOthers) {
  const auto server = serve("127.0.0.1:0", "only");
  const std::string hint = httpGet(server->endpoint(), "/");
  EXPECT_NE(hint.find("/metrics"), std::string::npos);
  EXPECT_NE(hint.find("/agent"), std::string::npos);
  EXPECT_TRUE(httpGet(server->endpoint(), "/favicon.ico").starts_with("HTTP/1.1 404 "));
}

// The page also shows the agents of other tests of this user, so no other test uses the name
// "leaving".
TEST(MetricsServer, ServesAllAgentsThatShareItsPort) {
  const auto first = serve("0", "first");
  auto second = serve(first->endpoint(), "leaving");
  EXPECT_EQ(second->endpoint(), first->endpoint());
  for (int i = 0; i < 20; ++i) {
    const std::string answer = httpGet(first->endpoint(), "/metrics");
    EXPECT_TRUE(tellsOf(answer, "first") && tellsOf(answer, "leaving")) << answer;
    EXPECT_EQ(answer.find("# TYPE viaduct_agent "), answer.rfind("# TYPE viaduct_agent "));
  }
  second.reset();
  for (int i = 0; i < 20; ++i) {
    const std::string answer = httpGet(first->endpoint(), "/metrics");
    EXPECT_TRUE(tellsOf(answer, "first") && !tellsOf(answer, "leaving")) << answer;
  }
}

TEST(MetricsServer, ServesOneAgentAtThePathAgent) {
  const auto first = serve("0", "first"), second = serve("0", "second");
  const std::string answer = httpGet(first->endpoint(), "/agent");
  EXPECT_TRUE(tellsOf(answer, "first") && !tellsOf(answer, "second"));
}

TEST(MetricsServer, AnAgentWithoutThePortIsServedByOneWithAPort) {
  setLogLevel(LogLevel::kWarning);
  auto address = resolve(*parseHostPort("127.0.0.1:0"))->front();
  const auto taken = listenAt(address);
  ASSERT_TRUE(taken);
  ::testing::internal::CaptureStderr();
  const auto without = serve(localAddress(taken->get())->text(), "without");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("warning: metrics are not served at 127.0.0.1:"), std::string::npos) << said;
  EXPECT_NE(said.find("another exporter"), std::string::npos) << said;
  EXPECT_NE(said.find("VIADUCT_METRICS to another port"), std::string::npos) << said;
  EXPECT_EQ(without->endpoint(), "");
  const auto with = serve("0", "with");
  EXPECT_TRUE(tellsOf(httpGet(with->endpoint(), "/metrics"), "without"));
}

TEST(MetricsServer, RefusesAMalformedAddress) {
  for (const char* where : {"127.0.0.1", "70000", "host:port", ":", "127.0.0.1:-1"}) {
    const auto server = MetricsServer::open(where, "id", [] { return textOf("id"); }, 10s);
    ASSERT_FALSE(server) << where;
    EXPECT_EQ(server.error().code, Code::kInvalid) << server.error().text();
  }
}

TEST(MetricsServer, ClosesDuringARequest) {
  const auto other = serve("0", "other");
  for (int round = 0; round < 20; ++round) {
    auto server = serve("0", "ends");
    const std::string endpoint = server->endpoint();
    std::atomic<bool> over{false};
    std::thread asks([&] {
      while (!over) httpGet(endpoint, "/metrics");
    });
    server.reset();
    over = true;
    asks.join();
    EXPECT_EQ(httpGet(endpoint, "/metrics"), "");
  }
}

TEST(MetricsServer, AnswersAlthoughSilentConnectionsFillIt) {
  const auto server = serve("0", "only");
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connectTo(server->endpoint()));
  EXPECT_TRUE(tellsOf(httpGet(server->endpoint(), "/metrics"), "only"));
}

// The metrics socket of another process of this user, which never answers.
Fd silentServer() {
  const auto address = *unixAddress(std::string(kMetricsServers) + "silent");
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  constexpr int kBacklog = 1000;
  EXPECT_EQ(::bind(socket.get(), address.get(), address.size), 0);
  EXPECT_EQ(::listen(socket.get(), kBacklog), 0);
  return socket;
}

// Counts only connections from this process, because servers of other tests connect to this
// server as well.
int callersOf(const Fd& server) {
  int count = 0;
  for (;;) {
    const Fd caller(::accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!caller) return count;
    ucred who{};
    socklen_t size = sizeof who;
    EXPECT_EQ(::getsockopt(caller.get(), SOL_SOCKET, SO_PEERCRED, &who, &size), 0);
    if (who.pid == ::getpid()) ++count;
  }
}

TEST(MetricsServer, OneSurveyServesAllRequestsThatComeMeanwhile) {
  const auto server = serve("0", "only");
  const Fd silent = silentServer();
  const auto start = Clock::now();
  constexpr std::string_view kRequest = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  std::vector<Fd> many;
  for (int i = 0; i < 60; ++i) {
    many.push_back(connectTo(server->endpoint()));
    ::send(many.back().get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  }
  EXPECT_TRUE(tellsOf(httpGet(server->endpoint(), "/metrics"), "only"));
  // A survey of a silent process lasts a second. One survey may have just begun, and another one is
  // running.
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start);
  EXPECT_LE(callersOf(silent), 2 + seconds.count());
}

}  // namespace
}  // namespace viaduct::base
