#include "diag/node_card.h"

#include <gtest/gtest.h>

#include "diag/fixtures_testing.h"
#include "support/text.h"

namespace viaduct::diag {
namespace {

using viaduct::testing::has;

TEST(NodeCard, EveryQuantityHasItsUnit) {
  const auto folder = testing::laptop();
  folder.write(
      "/proc/meminfo",
      "MemTotal:       24694036 kB\nHugePages_Total:     512\nHugepagesize:       2048 kB\n");
  folder.write("/proc/self/limits",
               "Max locked memory         8388608              unlimited            bytes\n");
  const std::string card = nodeCard(folder.node());
  EXPECT_TRUE(has(card, "| memory | 23.6 GiB, 512 huge pages of 2 MiB |\n")) << card;
  EXPECT_TRUE(has(card, "| locked memory | 8MiB, hard limit unlimited |\n")) << card;
  EXPECT_TRUE(has(card, ", MTU 1500 bytes")) << card;
}

}  // namespace
}  // namespace viaduct::diag
