#include "base/sizes.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace viaduct::base {
namespace {

using std::chrono::nanoseconds;

TEST(Sizes, ReadsSizesWithUnits) {
  EXPECT_EQ(*parseSize("4096"), 4096U);
  EXPECT_EQ(*parseSize("4K"), 4096U);
  EXPECT_EQ(*parseSize("4k"), 4096U);
  EXPECT_EQ(*parseSize("4KiB"), 4096U);
  EXPECT_EQ(*parseSize("4 KiB"), 4096U);
  EXPECT_EQ(*parseSize("1MB"), 1'000'000U);
  EXPECT_EQ(*parseSize("1GiB"), 1U << 30U);
  EXPECT_EQ(*parseSize("1.5G"), 3ULL << 29U);
  EXPECT_EQ(*parseSize("2.25kB"), 2250U);
  EXPECT_EQ(*parseSize("17b"), 17U);
  EXPECT_EQ(*parseSize("0"), 0U);
  EXPECT_EQ(*parseSize("18446744073709551615"), ~0ULL);
}

TEST(Sizes, RefusesOtherTextsAndShowsTheForm) {
  for (const char* text : {"", "K", "-1", "4X", "4KK", "1.K", ".5K", "0.3", "1.0001K", "4 4",
                           "18446744073709551616", "18014398509481984K", "1e3", "4K "}) {
    const auto parsed = parseSize(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().text().find("64KiB"), std::string::npos);
  }
}

TEST(Sizes, FormattedSizesReadBack) {
  EXPECT_EQ(formatSize(64U << 20U), "64MiB");
  EXPECT_EQ(formatSize(1000), "1000");
  EXPECT_EQ(formatSize(0), "0");
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = random.next() >> random.below(64) << random.below(40);
    EXPECT_EQ(*parseSize(formatSize(bytes)), bytes);
  }
}

TEST(Sizes, ShownSizesHaveOneDecimal) {
  EXPECT_EQ(showSize(100), "100 B");
  EXPECT_EQ(showSize(1536), "1.5 KiB");
  EXPECT_EQ(showSize((1U << 20U) - 1), "1.0 MiB");
  EXPECT_EQ(showSize(~0ULL), "16.0 EiB");
}

TEST(Durations, ReadAndFormat) {
  EXPECT_EQ(*parseDuration("2s"), nanoseconds(2'000'000'000));
  EXPECT_EQ(*parseDuration("500ms"), nanoseconds(500'000'000));
  EXPECT_EQ(*parseDuration("20us"), nanoseconds(20'000));
  EXPECT_EQ(*parseDuration("1.5s"), nanoseconds(1'500'000'000));
  EXPECT_EQ(*parseDuration("2m"), nanoseconds(120'000'000'000));
  EXPECT_EQ(*parseDuration("0"), nanoseconds(0));
  for (const char* text : {"2", "s", "-2s", "2 seconds", "99999999999h", "0.5ns"})
    EXPECT_FALSE(parseDuration(text)) << text;
  for (const char* text : {"2s", "500ms", "20us", "7ns", "1500us", "90s"})
    EXPECT_EQ(formatDuration(*parseDuration(text)), text);
  EXPECT_EQ(formatDuration(nanoseconds(0)), "0s");
}

TEST(Counts, AreWholeNumbers) {
  EXPECT_EQ(*parseCount("12"), 12U);
  for (const char* text : {"", "1.0", "-1", "1K", " 1", "99999999999999999999"})
    EXPECT_FALSE(parseCount(text)) << text;
}

}  // namespace
}  // namespace viaduct::base
