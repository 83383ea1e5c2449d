#include "base/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace viaduct::base {
namespace {

TEST(Nearest, CountsLettersChangedAddedAndLeftOut) {
  EXPECT_EQ(distance("eth0", "eth0"), 0U);
  EXPECT_EQ(distance("eth0", "eht0"), 2U);
  EXPECT_EQ(distance("", "abc"), 3U);
  EXPECT_EQ(distance("mlx5_0:1", "mlx5_0"), 2U);
}

TEST(Nearest, NamesAllThatAreWithinTwoLetters) {
  const std::vector<std::string> names{"eth0", "eth1", "lo"};
  EXPECT_EQ(nearest("eth2", names), "eth0 or eth1");
  EXPECT_EQ(nearest("lq", names), "lo");
  EXPECT_EQ(nearest("wlan0", names), "");
  EXPECT_EQ(nearest("all", names), "") << "two letters are all that lo has";
  EXPECT_EQ(nearest("ETH1", names), "eth0 or eth1") << "large or small";
}

}  // namespace
}  // namespace viaduct::base
