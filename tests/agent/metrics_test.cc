// Settings::metrics: an agent serves its statistics, even while it is busy.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "base/net/listener.h"
#include "support/http_get.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using testing::httpGet;

Agent openWithMetrics(const std::string& metrics, std::string name) {
  auto agent = Agent::open({.name = std::move(name), .backends = {"local"}, .metrics = metrics});
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

bool textHas(const std::string& text, const Agent& agent) {
  return text.find("viaduct_agent_info{agent=\"" + agent.name() + "\",pid=\"" +
                   std::to_string(::getpid()) + "\"") != std::string::npos;
}

std::string metricsOf(const Agent& agent) {
  return httpGet(agent.statistics().endpoint, "/metrics");
}

TEST(Metrics, AreServedOnlyIfTheyAreSet) {
  const Agent silent = openWithMetrics("", "silent"), serves = openWithMetrics("0", "serves");
  EXPECT_EQ(silent.statistics().endpoint, "");
  const std::string text = metricsOf(serves);
  EXPECT_TRUE(textHas(text, serves)) << text;
  EXPECT_FALSE(textHas(text, silent));
}

TEST(Metrics, CountTransfersAndBytesOfTheAgent) {
  Agent a = openWithMetrics("0", "a"), b = openWithMetrics("", "b");
  auto peer = a.importCard(b.exportCard());
  ASSERT_TRUE(peer && peer->ready(10s) && peer->note("x"));
  const std::string text = metricsOf(a);
  const std::string labels = "{agent=\"a\",pid=\"" + std::to_string(::getpid()) + "\"";
  EXPECT_NE(text.find("\nviaduct_notes_sent_total" + labels + "} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nviaduct_peers" + labels + ",state=\"ready\"} 1\n"), std::string::npos);
}

TEST(Metrics, AnAgentOpensAlthoughItsMetricsPortIsTaken) {
  const auto taken = base::listenAt(base::resolve(*base::parseHostPort("127.0.0.1:0"))->front());
  ASSERT_TRUE(taken);
  const Agent agent = openWithMetrics(base::localAddress(taken->get())->text(), "engine");
  EXPECT_EQ(agent.statistics().endpoint, "");
  const Agent other = openWithMetrics("0", "other");
  EXPECT_TRUE(textHas(metricsOf(other), agent));
}

TEST(Metrics, AnswerWhileThreadsOfTheProgramPostWithoutAPause) {
  Agent a = openWithMetrics("0", "a"), b = openWithMetrics("", "b");
  auto here = a.allocate(4096), there = b.allocate(4096, {.label = "there"});
  auto peer = a.importCard(b.exportCard());
  ASSERT_TRUE(here && there && peer && peer->ready(10s) && peer->waitPin("there", 10s));
  const auto all = [](const Pin& pin) {
    return *Blocks::strided({.base = pin.info().address, .bytes = 8, .count = 1});
  };
  auto transfer = a.plan(OpKind::kWrite, *peer, {.blocks = all(*here)}, {.blocks = all(*there)});
  ASSERT_TRUE(transfer);
  std::atomic<bool> stop{false};
  std::thread posts([&] {
    while (!stop) {
      EXPECT_TRUE(transfer->post());
      while (transfer->poll() == TransferState::kRunning) {
      }
    }
  });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(textHas(metricsOf(a), a));
  stop = true;
  posts.join();
}

TEST(Metrics, SurviveAForkAndTheChildsExit) {
  Agent agent = openWithMetrics("0", "parent");
  const pid_t child = ::fork();
  if (child == 0) {
    {
      const Agent closed = std::move(agent);
    }
    std::_Exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(textHas(metricsOf(agent), agent));
}

TEST(Metrics, RefuseAMalformedSetting) {
  for (const char* wrong : {"nine", "70000", "1.2.3.4", "a:b:c"}) {
    const auto agent = Agent::open({.backends = {"local"}, .metrics = wrong});
    ASSERT_FALSE(agent) << wrong;
    EXPECT_EQ(agent.error().code, Code::kInvalid) << agent.error().text();
    EXPECT_NE(agent.error().text().find("metrics"), std::string::npos) << agent.error().text();
  }
}

}  // namespace
}  // namespace viaduct
