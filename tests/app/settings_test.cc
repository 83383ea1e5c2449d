#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "app/program.h"

namespace viaduct::testing {
namespace {

TEST(SettingsCommand, ThePageIsCurrent) {
  Program run({"settings", "--markdown"});
  EXPECT_EQ(run.finish(), 0);
  std::ifstream page(VIADUCT_SOURCE_DIR "/docs/settings.md");
  std::ostringstream text;
  text << page.rdbuf();
  EXPECT_EQ(run.out(), text.str()) << "viaduct settings --markdown > docs/settings.md";
}

TEST(SettingsCommand, PrintsEveryVariable) {
  Program run({"settings"});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_NE(run.out().find("VIADUCT_DETECT=2s\n"), std::string::npos);
  EXPECT_NE(run.out().find("VIADUCT_WEATHER\n"), std::string::npos);
}

TEST(SettingsCommand, WhatCannotBePrintedIsAFailure) {
  const int status = std::system("'" VIADUCT_PROGRAM "' settings > /dev/full 2> /dev/null");
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Version, IsPrinted) {
  Program run({"--version"});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.out().rfind("viaduct 0.", 0), 0U) << run.out();
}

}  // namespace
}  // namespace viaduct::testing
