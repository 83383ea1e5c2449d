#include "core/fabric/worth.h"

#include <gtest/gtest.h>

namespace viaduct::core::fabric {
namespace {

TEST(Worth, ABackendIsNamedByItsWholeName) {
  EXPECT_FALSE(namedIn({}, "ofi"));
  EXPECT_FALSE(namedIn({.backends = {"tcp", "ofi2"}}, "ofi"));
  EXPECT_TRUE(namedIn({.backends = {"tcp", "ofi"}}, "ofi"));
}

TEST(Worth, WhoIsRefusedHearsOfWhichBackendAndHowToHaveIt) {
  const Error why = notWorthIt("ofi", "this host has no RDMA device");
  EXPECT_EQ(why.code, Code::kUnsupported);
  EXPECT_EQ(why.operation, "open ofi");
  EXPECT_EQ(why.detail, "this host has no RDMA device");
  EXPECT_EQ(why.device, "ofi");
  EXPECT_EQ(why.remedy, "name ofi among the backends to use it over TCP all the same");
}

}  // namespace
}  // namespace viaduct::core::fabric
