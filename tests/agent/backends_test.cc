// Agent::backends(): an agent's report on the backends that it has, and on those that it lacks.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace viaduct {
namespace {

std::vector<BackendInfo> backendsOf(const Settings& settings) {
  const auto agent = Agent::open(settings);
  EXPECT_TRUE(agent) << agent.error().text();
  return agent ? agent->backends() : std::vector<BackendInfo>();
}

BackendInfo named(const std::vector<BackendInfo>& all, const std::string& name) {
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const BackendInfo& one) { return one.name == name; });
  return at == all.end() ? BackendInfo{} : *at;
}

TEST(Backends, ThatAreOpenAreListedInTheOrderOfPreference) {
  const auto all = backendsOf({.backends = {"fake", "tcp", "local"}});
  ASSERT_GE(all.size(), 3U);
  EXPECT_EQ(all[0].name, "local");
  EXPECT_EQ(all[1].name, "tcp");
  EXPECT_EQ(all[2].name, "fake");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(all[i].open);
    EXPECT_FALSE(all[i].rails.empty()) << all[i].name;
    EXPECT_EQ(all[i].memory, std::vector<MemoryKind>{MemoryKind::kHost});
    EXPECT_TRUE(i == 0 || all[i - 1].preference < all[i].preference);
  }
  EXPECT_TRUE(all[0].same_host);
  EXPECT_TRUE(all[1].tcp);
}

TEST(Backends, ThatAreNotOpenSayWhy) {
  const auto chosen = backendsOf({.backends = {"tcp"}});
  EXPECT_FALSE(named(chosen, "local").open);
  EXPECT_EQ(named(chosen, "local").text, "not among the requested backends");
  const auto usual = backendsOf({});
  EXPECT_FALSE(named(usual, "fake").open);
  EXPECT_EQ(named(usual, "fake").text, "for tests: opened only if named");
  for (const BackendInfo& one : usual) EXPECT_EQ(one.open, !one.rails.empty()) << one.name;
}

// The list includes the backends that this build left out. Their only reason is "not built in".
TEST(Backends, AreAllBuiltIn) {
  const auto all = backendsOf({});
  std::set<std::string> names;
  for (const BackendInfo& one : all) EXPECT_TRUE(names.insert(one.name).second) << one.name;
  const auto built_in = builtInBackends();
  for (const char* name : {"cuda", "fake", "file", "local", "ofi", "tcp", "ucx"}) {
    EXPECT_TRUE(names.contains(name)) << name;
    const bool here = std::find(built_in.begin(), built_in.end(), name) != built_in.end();
    EXPECT_EQ(named(all, name).text.starts_with("not built in: "), !here) << name;
  }
}

// If no backend is named, an agent opens libfabric only where it has RDMA. Elsewhere the report has
// the reason.
TEST(Backends, ThatNeedRdmaHardwareSayThatItIsMissing) {
  const auto ofi = named(backendsOf({}), "ofi");
  if (ofi.open || ofi.text.starts_with("not built in")) GTEST_SKIP() << "skipped: " << ofi.text;
  EXPECT_NE(ofi.text.find("RDMA"), std::string::npos) << ofi.text;
  const auto agent = Agent::open({.backends = {"ofi"}});
  if (!agent) GTEST_SKIP() << "skipped: " << agent.error().text();
  const auto asked = named(agent->backends(), "ofi");
  EXPECT_NE(asked.text.find("libfabric"), std::string::npos) << asked.text;
}

}  // namespace
}  // namespace viaduct
