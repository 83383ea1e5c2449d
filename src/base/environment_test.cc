#include "base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace viaduct::base {
namespace {

TEST(Environment, ShowsWhatBeginsWithThePrefixAndNothingElse) {
  EXPECT_EQ(environmentText("VIADUCT_ENVIRONMENT_TEST_"), "");
  ::setenv("VIADUCT_ENVIRONMENT_TEST_A", "eth0", 1);
  ::setenv("NOT_VIADUCT_ENVIRONMENT_TEST_B", "2", 1);
  EXPECT_EQ(environmentText("VIADUCT_ENVIRONMENT_TEST_"), "VIADUCT_ENVIRONMENT_TEST_A=eth0");
  ::setenv("VIADUCT_ENVIRONMENT_TEST_C", "", 1);
  const std::string both = environmentText("VIADUCT_ENVIRONMENT_TEST_");
  // In whatever order the system keeps them.
  EXPECT_TRUE(both == "VIADUCT_ENVIRONMENT_TEST_A=eth0 VIADUCT_ENVIRONMENT_TEST_C=" ||
              both == "VIADUCT_ENVIRONMENT_TEST_C= VIADUCT_ENVIRONMENT_TEST_A=eth0")
      << both;
  for (const char* one : {"VIADUCT_ENVIRONMENT_TEST_A", "NOT_VIADUCT_ENVIRONMENT_TEST_B",
                          "VIADUCT_ENVIRONMENT_TEST_C"})
    ::unsetenv(one);
}

}  // namespace
}  // namespace viaduct::base
