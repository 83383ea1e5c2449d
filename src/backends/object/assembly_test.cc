#include "backends/object/assembly.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(*partNumberOf(object, {24 * kMiB, 40 * kMiB + 4}), 4U) << "the last one ends anywhere";
  EXPECT_EQ(*partNumberOf(object, {40 * kMiB, 40 * kMiB + 4}), 6U);
}

TEST(PartNumber, IsRefusedToBytesBetweenTheSteps) {
  const ObjectFacts object = objectOf(40 * kMiB + 5);
  for (const s3::ByteRange range :
       {s3::ByteRange{0, 8 * kMiB - 2}, s3::ByteRange{0, 2 * kMiB - 1}, s3::ByteRange{1, 8 * kMiB},
        s3::ByteRange{2 * kMiB, 40 * kMiB + 4}})
    expectRefused(object, range, {"PUT s3://b/k bytes", "no part of an upload", "multiples of 8"});
}

TEST(PartNumber, IsAtMostTenThousand) {
  const ObjectFacts largest = objectOf(80'000 * kMiB);
  EXPECT_EQ(*partNumberOf(largest, {79'992 * kMiB, 80'000 * kMiB - 1}), 10'000U);
  const ObjectFacts larger = objectOf(80'000 * kMiB + 1);
  expectRefused(larger, {8 * kMiB, 16 * kMiB - 1}, {"multiples of 16", "at most 10,000 parts"});
  EXPECT_EQ(*partNumberOf(larger, {16 * kMiB, 32 * kMiB - 1}), 2U);
  EXPECT_EQ(*partNumberOf(larger, {80'000 * kMiB, 80'000 * kMiB}), 5'001U);
}

}  // namespace
}  // namespace viaduct::object
