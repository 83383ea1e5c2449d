#include "measure/workload/date_time.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;
constexpr std::uint64_t kDay = 86'400 * kSecond;

TEST(DateTime, ReadsFractionsAndZones) {
  EXPECT_EQ(microsecondsIn("1970-01-01 00:00:00"), 0U);
  EXPECT_EQ(microsecondsIn("1970-01-02T00:00:01Z"), kDay + kSecond);
  EXPECT_EQ(microsecondsIn("1970-01-02 00:00:00.9799609"), kDay + 979'960);
  EXPECT_EQ(microsecondsIn("1970-01-02 00:00:00.5+00:00"), kDay + 500'000);
  EXPECT_EQ(microsecondsIn("1970-01-02 01:30:00+01:30"), kDay);
  EXPECT_EQ(microsecondsIn("1970-01-01 22:30:00-0130"), kDay);
  EXPECT_EQ(microsecondsIn("1970-01-02 02:00:00+02"), kDay);
  EXPECT_EQ(microsecondsIn("2024-02-29 00:00:00"), 19'782 * kDay);
}

TEST(DateTime, ReadsNoOtherTexts) {
  for (const char* text : {"",
                           "2023",
                           "2023-11-16",
                           "2023-11-16 18:17",
                           "2023-11-16 18:17:",
                           "2023-11-16 18:17:03.",
                           "2023-11-16 18:17:03.1234567890",
                           "2023-11-16 18:17:03 ",
                           "2023-11-16 18:17:03+",
                           "2023-11-16 18:17:03+1",
                           "2023-11-16 18:17:03+24:00",
                           "2023-11-16 18:17:03+01:60",
                           "2023-11-16 18:17:03Zulu",
                           "2023-13-16 18:17:03",
                           "2023-02-29 00:00:00",
                           "2023-11-16 24:17:03",
                           "2023-11-16 18:60:03",
                           "2023-11-16 18:17:61",
                           "1969-12-31 23:59:59",
                           "1970-01-01 00:00:00+01:00",
                           "-023-11-16 18:17:03",
                           "16.11.2023 18:17:03"})
    EXPECT_FALSE(microsecondsIn(text)) << text;
}

TEST(DateTime, WritesTextsThatItReads) {
  for (const std::uint64_t time :
       {std::uint64_t{0}, kDay - 1, 19'782 * kDay + 3'661'000'001, 2'932'896 * kDay})
    EXPECT_EQ(microsecondsIn(dateTimeText(time)), time) << dateTimeText(time);
  EXPECT_EQ(dateTimeText(kDay + 3'661 * kSecond + 42), "1970-01-02 01:01:01.000042");
}

}  // namespace
}  // namespace viaduct::measure
