#include "base/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace viaduct::base {
namespace {

TEST(Environment, ShowsOnlyVariablesWithThePrefix) {
  EXPECT_EQ(environmentText("VIADUCT_ENVIRONMENT_TEST_"), "");
  ::setenv("VIADUCT_ENVIRONMENT_TEST_A", "eth0", 1);
  ::setenv("NOT_VIADUCT_ENVIRONMENT_TEST_B", "2", 1);
  EXPECT_EQ(environmentText("VIADUCT_ENVIRONMENT_TEST_"), "VIADUCT_ENVIRONMENT_TEST_A=eth0");
  ::setenv("VIADUCT_ENVIRONMENT_TEST_C", "", 1);
  ::setenv("VIADUCT_ENVIRONMENT_TEST_B", "two words", 1);
  EXPECT_EQ(environmentText("VIADUCT_ENVIRONMENT_TEST_"),
            "VIADUCT_ENVIRONMENT_TEST_A=eth0 VIADUCT_ENVIRONMENT_TEST_B=two words "
            "VIADUCT_ENVIRONMENT_TEST_C=");
  EXPECT_EQ(environmentOf("VIADUCT_ENVIRONMENT_TEST_").at(1),
            "VIADUCT_ENVIRONMENT_TEST_B=two words");
  for (const char* one : {"VIADUCT_ENVIRONMENT_TEST_A", "VIADUCT_ENVIRONMENT_TEST_B",
                          "NOT_VIADUCT_ENVIRONMENT_TEST_B", "VIADUCT_ENVIRONMENT_TEST_C"})
    ::unsetenv(one);
}

TEST(Environment, AMissingVariableIsAnEmptyText) {
  EXPECT_EQ(variableText("VIADUCT_ENVIRONMENT_TEST_A"), "");
  ::setenv("VIADUCT_ENVIRONMENT_TEST_A", "eth0", 1);
  EXPECT_EQ(variableText("VIADUCT_ENVIRONMENT_TEST_A"), "eth0");
  ::unsetenv("VIADUCT_ENVIRONMENT_TEST_A");
}

}  // namespace
}  // namespace viaduct::base
