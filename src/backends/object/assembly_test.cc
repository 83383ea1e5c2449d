#include "backends/object/assembly.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/sizes.h"

namespace viaduct::object {
namespace {

using base::kMiB;

ObjectFacts objectOf(std::uint64_t bytes) { return {.name = {"b", "k"}, .bytes = bytes}; }

void expectRefused(const ObjectFacts& object, s3::ByteRange range,
                   std::initializer_list<std::string_view> texts) {
  const auto number = partNumberOf(object, range);
  ASSERT_FALSE(number) << *number;
  EXPECT_EQ(number.error().code, Code::kUnsupported);
  for (const std::string_view text : texts)
    EXPECT_NE(number.error().text().find(text), std::string::npos) << number.error().text();
}

TEST(PartNumber, FollowsFromTheOffset) {
  const ObjectFacts object = objectOf(40 * kMiB + 5);
  EXPECT_EQ(*partNumberOf(object, {0, 8 * kMiB - 1}), 1U);
  EXPECT_EQ(*partNumberOf(object, {8 * kMiB, 24 * kMiB - 1}), 2U) << "a part may be larger";
  EXPECT_EQ(*partNumberOf(object, {24 * kMiB, 40 * kMiB + 4}), 4U);
  EXPECT_EQ(*partNumberOf(object, {40 * kMiB, 40 * kMiB + 4}), 6U) << "the last may be smaller";
}

TEST(PartNumber, IsDifferentForEachPartOfAnySize) {
  const ObjectFacts object = objectOf(1'000 * kMiB + 1);
  for (const std::uint64_t part : {8 * kMiB, 9 * kMiB, 12 * kMiB + 1, 100 * kMiB}) {
    std::uint32_t before = 0;
    for (std::uint64_t at = 0; at < object.bytes; at += part) {
      const auto number = partNumberOf(object, {at, std::min(at + part, object.bytes) - 1});
      ASSERT_TRUE(number) << number.error().text();
      EXPECT_GT(*number, before);
      before = *number;
    }
  }
}

TEST(PartNumber, IsRefusedToSmallParts) {
  const ObjectFacts object = objectOf(40 * kMiB + 5);
  for (const s3::ByteRange range : {s3::ByteRange{0, 8 * kMiB - 2}, s3::ByteRange{0, 2 * kMiB - 1}})
    expectRefused(object, range, {"PUT s3://b/k bytes", "too small for a part", "at least 8"});
}

TEST(PartNumber, IsAtMostTenThousand) {
  const ObjectFacts largest = objectOf(80'000 * kMiB);
  EXPECT_EQ(*partNumberOf(largest, {79'992 * kMiB, 80'000 * kMiB - 1}), 10'000U);
  const ObjectFacts larger = objectOf(160'000 * kMiB);
  expectRefused(larger, {8 * kMiB, 16 * kMiB - 1},
                {"at least 16", "at most 10,000 parts", "VIADUCT_STAGING_CHUNK"});
  EXPECT_EQ(*partNumberOf(larger, {16 * kMiB, 32 * kMiB - 1}), 2U);
  EXPECT_EQ(*partNumberOf(larger, {160'000 * kMiB - 1, 160'000 * kMiB - 1}), 10'000U);
}

}  // namespace
}  // namespace viaduct::object
