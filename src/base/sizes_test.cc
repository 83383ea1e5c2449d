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
  EXPECT_EQ(formatSize(1001), "1001");
  EXPECT_EQ(formatSize(1'000'000), "1MB");
  EXPECT_EQ(formatSize(0), "0");
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t bytes = random.next() >> random.below(64) << random.below(40);
    EXPECT_EQ(*parseSize(formatSize(bytes)), bytes);
  }
}

TEST(Sizes, AreShownAsPeopleTypeThem) {
  for (const char* const text :
       {"0 B",    "1 B",      "1001 B", "4095 B", "4 KiB", "4 KB",  "64 KiB", "64 KB",  "128 KiB",
        "128 KB", "256 KB",   "512 KB", "28 KiB", "1 MiB", "1 MB",  "16 MB",  "64 MiB", "64 MB",
        "128 MB", "1000 MiB", "1 GiB",  "1 GB",   "3 GiB", "2 TiB", "1 TB"})
    EXPECT_EQ(showSize(*parseSize(text)), text);
  EXPECT_EQ(showSize(1536), "1536 B");
  EXPECT_EQ(showSize((1U << 20U) - 1), "1048575 B");
  EXPECT_EQ(showSize(33'895'219), "32.3 MiB");
  std::uint64_t size = 4'000;  // 4KB..64MB doubles
  for (const char* const text : {"4 KB", "8 KB", "16 KB", "32 KB", "64 KB", "128 KB", "256 KB",
                                 "512 KB", "1024 KB", "2048 KB"}) {
    EXPECT_EQ(showSize(size), text);
    size *= 2;
  }
}

TEST(Sizes, RoundedSizesHaveOneDecimal) {
  EXPECT_EQ(roundedSize(100), "100 B");
  EXPECT_EQ(roundedSize(1536), "1.5 KiB");
  EXPECT_EQ(roundedSize((1U << 20U) - 1), "1.0 MiB");
  EXPECT_EQ(roundedSize(~0ULL), "16.0 EiB");
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
