#include "core/landed_blocks.h"

#include <gtest/gtest.h>

namespace viaduct::core {
namespace {

Selection eightOf100() {
  return {*Blocks::strided({.base = 0, .stride = 1000, .bytes = 100, .count = 8}), {}};
}

TEST(LandedBlocks, AreOnlyThoseWithAllTheirBytes) {
  EXPECT_EQ(landedBlocks(eightOf100(), {}), Indices());
  EXPECT_EQ(landedBlocks(eightOf100(), {{0, 800}}), (Indices{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(landedBlocks(eightOf100(), {{0, 99}}), Indices());
  EXPECT_EQ(landedBlocks(eightOf100(), {{1, 200}}), (Indices{1}));
  EXPECT_EQ(landedBlocks(eightOf100(), {{100, 100}, {650, 150}}), (Indices{1, 7}));
}

TEST(LandedBlocks, MayLieInTwoStretchesThatTouch) {
  EXPECT_EQ(landedBlocks(eightOf100(), {{250, 150}, {150, 100}}), (Indices{2, 3}));
  EXPECT_EQ(landedBlocks(eightOf100(), {{251, 149}, {150, 100}}), (Indices{3}));
}

TEST(LandedBlocks, AreNumberedInTheOrderOfTheSelection) {
  Selection some = eightOf100();
  some.indices = {7, 0, 3};
  EXPECT_EQ(landedBlocks(some, {{100, 200}}), (Indices{1, 2}));
}

}  // namespace
}  // namespace viaduct::core
