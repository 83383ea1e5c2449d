// The facts of a backend's folder reach all their readers, and no reader knows the backend's name.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <viaduct/agent.h>
#include <viaduct/backend.h>

#include <algorithm>

#include "measure/proof/account.h"
#include "measure/result/report.h"

namespace viaduct {
namespace {

class NewBackend : public ::testing::Test {
 protected:
  ~NewBackend() override {
    for (const char* one : {"VIADUCT_BACKENDS", "VIADUCT_TOY_SPEED", "TOY_DEVICE"}) ::unsetenv(one);
  }
  static Result<Settings> settingsWith(const char* backends, const char* speed) {
    ::setenv("VIADUCT_BACKENDS", backends, 1);
    ::setenv("VIADUCT_TOY_SPEED", speed, 1);
    return settingsFromEnvironment();
  }
  static std::string recorded(const Settings& settings, std::string_view name) {
    for (const measure::Option& one : measure::startReport("1", settings).agent)
      if (one.name == name) return one.value;
    return "absent";
  }
};

TEST_F(NewBackend, IsBuiltInAndTellsOfItsLibrary) {
  const auto names = builtInBackends();
  EXPECT_EQ(std::count(names.begin(), names.end(), "toy"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "local"), 1);
  EXPECT_EQ(backendLibrary("toy"), "Toylib 1.0");
}

TEST_F(NewBackend, HasSettingsOfItsOwn) {
  const auto settings = settingsWith("toy", "fast");
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(recorded(*settings, "toy_speed"), "fast");
  EXPECT_EQ(nearestSetting("VIADUCT_TOI_SPEED"), "VIADUCT_TOY_SPEED");
  const auto wrong = settingsWith("toy", "quick");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("VIADUCT_TOY_SPEED slow or fast"), std::string::npos)
      << wrong.error().text();
}

TEST_F(NewBackend, IsOpenedUnderItsAliasWithItsSettings) {
  const auto settings = settingsWith("TOYLIB", "slow");
  ASSERT_TRUE(settings) << settings.error().text();
  EXPECT_EQ(settings->backends, std::vector<std::string>{"toy"});
  const auto agent = Agent::open(*settings);
  ASSERT_FALSE(agent);
  EXPECT_NE(agent.error().text().find("its speed is slow"), std::string::npos)
      << agent.error().text();
}

TEST_F(NewBackend, IsLeftOutWithItsReasonWhereNobodyNamesIt) {
  const auto agent = Agent::open(Settings{});
  ASSERT_TRUE(agent) << agent.error().text();
  const auto all = agent->backends();
  const auto toy = std::find_if(all.begin(), all.end(),
                                [](const BackendInfo& one) { return one.name == "toy"; });
  ASSERT_NE(toy, all.end());
  EXPECT_FALSE(toy->open);
  EXPECT_NE(toy->text.find("its speed is"), std::string::npos) << toy->text;
}

TEST_F(NewBackend, SaysWhichCountersSeeItsBytes) {
  EXPECT_EQ(measure::proof::realmOf("toy", "wire/toy0"), Realm::kRdma);
  EXPECT_EQ(measure::proof::realmOf("toy", "socket"), Realm::kSockets);
  EXPECT_EQ(measure::proof::realmOf("nobody", "socket"), Realm::kUnknown);
}

TEST_F(NewBackend, HasTheVariablesOfItsLibraryInReports) {
  ::setenv("TOY_DEVICE", "toy0", 1);
  EXPECT_EQ(recorded({.backends = {"toy"}}, "TOY_DEVICE"), "toy0");
  EXPECT_EQ(recorded({.backends = {"local"}}, "TOY_DEVICE"), "absent");
}

}  // namespace
}  // namespace viaduct
