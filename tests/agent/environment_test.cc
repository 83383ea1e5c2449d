// Agent::open() obeys the VIADUCT_* variables, and Agent::open(settings) ignores them.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <string>
#include <vector>

namespace viaduct {
namespace {

class Environment : public ::testing::Test {
 protected:
  Environment() { clear(); }
  ~Environment() override { clear(); }
  static void clear() {
    for (const SettingRow& row : settingRows()) ::unsetenv(row.variable.data());
  }
  static std::vector<std::string> openBackends(const Agent& agent) {
    std::vector<std::string> out;
    for (const BackendInfo& one : agent.backends())
      if (one.open) out.push_back(one.name);
    return out;
  }
};

TEST_F(Environment, IsReadByAnAgentWithoutSettings) {
  ::setenv("VIADUCT_NAME", "from-outside", 1);
  ::setenv("VIADUCT_BACKENDS", "tcp", 1);
  const auto agent = Agent::open();
  ASSERT_TRUE(agent) << agent.error().text();
  EXPECT_EQ(agent->name(), "from-outside");
  EXPECT_EQ(openBackends(*agent), std::vector<std::string>{"tcp"});
}

TEST_F(Environment, IsIgnoredByAnAgentWithSettings) {
  ::setenv("VIADUCT_NAME", "from-outside", 1);
  ::setenv("VIADUCT_BACKENDS", "fake", 1);
  const auto agent = Agent::open({.backends = {"tcp"}});
  ASSERT_TRUE(agent) << agent.error().text();
  EXPECT_NE(agent->name(), "from-outside");
  EXPECT_EQ(openBackends(*agent), std::vector<std::string>{"tcp"});
}

TEST_F(Environment, ThatCannotBeReadIsAnErrorOfOpen) {
  ::setenv("VIADUCT_DETECT", "soon", 1);
  const auto agent = Agent::open();
  ASSERT_FALSE(agent);
  EXPECT_NE(agent.error().text().find("VIADUCT_DETECT=soon"), std::string::npos)
      << agent.error().text();
  EXPECT_TRUE(Agent::open({}));
}

TEST_F(Environment, ARemedyNamesTheFieldTheVariableAndItsReader) {
  auto agent = Agent::open({});
  ASSERT_TRUE(agent);
  const auto peer = agent->find("nobody", std::chrono::seconds(1));
  ASSERT_FALSE(peer);
  EXPECT_NE(peer.error().remedy.find("Settings::meet (or VIADUCT_MEET with Agent::open() or "
                                     "settingsFromEnvironment())"),
            std::string::npos)
      << peer.error().text();
}

}  // namespace
}  // namespace viaduct
