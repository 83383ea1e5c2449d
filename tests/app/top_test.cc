// `viaduct top` as users run it. This process's agents stand for a host's agents.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <string>

#include "app/program.h"
#include "base/json.h"
#include "support/own_network.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

Agent agentWithMetrics(std::string name) {
  auto agent = Agent::open({.name = std::move(name), .backends = {"local"}, .metrics = "0"});
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

const base::Json* find(const base::Json& top, const std::string& agent) {
  for (const base::Json& one : top["agents"])
    if (one["agent"] == agent && one["pid"] == ::getpid()) return &one;
  return nullptr;
}

TEST(TopCommand, ShowsEachAgentOnceWithItsFigures) {
  Agent a = agentWithMetrics("top-a"), b = agentWithMetrics("top-b");
  auto peer = a.importCard(b.exportCard());
  auto pin = a.allocate(1 << 20);
  ASSERT_TRUE(peer && pin && peer->ready(10s));
  Program table({"top", "--once", "--interval", "50ms"});
  EXPECT_EQ(table.finish(), 0) << table.err();
  EXPECT_NE(table.out().find("top-a"), std::string::npos) << table.out();
  EXPECT_NE(table.out().find("top-b"), std::string::npos);
  EXPECT_EQ(table.out().find('\x1b'), std::string::npos);
  Program json({"top", "--once", "--json", "--interval", "50ms"});
  EXPECT_EQ(json.finish(), 0) << json.err();
  const auto top = base::parseJson(json.out());
  ASSERT_TRUE(top) << json.out();
  const base::Json* const shown = find(*top, "top-a");
  ASSERT_NE(shown, nullptr) << json.out();
  EXPECT_EQ((*shown)["ready_peers"], 1);
  EXPECT_EQ((*shown)["pins"], 1);
  EXPECT_EQ((*shown)["pinned_bytes"], 1 << 20);
  EXPECT_EQ((*shown)["gb_per_s"], 0.0);
  EXPECT_GE((*top)["seconds"].get<double>(), 0.05);
}

TEST(TopCommand, RefreshesUntilItIsInterrupted) {
  const Agent agent = agentWithMetrics("top-a");
  for (const int signal : {SIGINT, SIGTERM}) {
    Program program({"top", "--interval", "20ms"});
    EXPECT_TRUE(program.readUntil("PID "));
    EXPECT_TRUE(program.readUntil("PID "));
    ::kill(program.pid(), signal);
    EXPECT_EQ(program.finish(), 0);
    EXPECT_EQ(program.err(), "");
  }
}

TEST(TopCommand, NamesTheSettingWhereNoAgentExportsStatistics) {
  int code = 0;
  std::string out, err;
  const bool alone = onAQuietNetwork([&] {
    Program program({"top", "--once", "--interval", "20ms"});
    code = program.finish();
    out = program.out();
    err = program.err();
  });
  if (!alone) GTEST_SKIP() << "skipped: no network namespaces";
  EXPECT_EQ(code, 1);
  EXPECT_NE(err.find("no agent of this user exports statistics"), std::string::npos) << err;
  EXPECT_NE(err.find("VIADUCT_METRICS=27180"), std::string::npos) << err;
  EXPECT_EQ(out, "");
}

TEST(TopCommand, RefusesAnIntervalThatCannotBeRight) {
  for (const char* wrong : {"0", "-1s", "2h", "soon"}) {
    Program program({"top", "--interval", wrong});
    EXPECT_EQ(program.finish(), 2) << wrong;
    EXPECT_NE(program.err().find("--interval"), std::string::npos) << program.err();
  }
}

}  // namespace
}  // namespace viaduct::testing
