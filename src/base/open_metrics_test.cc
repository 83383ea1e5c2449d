#include "base/open_metrics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace viaduct::base {
namespace {

std::string textOf(std::string_view agent, std::uint64_t value) {
  MetricsWriter out;
  const std::array labels{MetricLabel{"agent", agent}};
  out.family({.name = "moved_bytes", .type = "counter", .unit = "bytes", .help = "Bytes."});
  out.sample("_total", labels, value);
  out.family({.name = "peers", .type = "gauge", .unit = "", .help = "Peers."});
  out.sample("", labels, std::uint64_t{1});
  return std::move(out).finish();
}

TEST(OpenMetrics, WritesFamiliesWithTypeUnitAndHelp) {
  EXPECT_EQ(textOf("a", 7),
            "# TYPE moved_bytes counter\n# UNIT moved_bytes bytes\n# HELP moved_bytes Bytes.\n"
            "moved_bytes_total{agent=\"a\"} 7\n"
            "# TYPE peers gauge\n# HELP peers Peers.\npeers{agent=\"a\"} 1\n# EOF\n");
}

TEST(OpenMetrics, WritesNumbersWithAPointOrAnExponent) {
  EXPECT_EQ(metricNumber(1), "1.0");
  EXPECT_EQ(metricNumber(2e-7), "2e-07");
  EXPECT_EQ(metricNumber(0.25), "0.25");
  EXPECT_EQ(metricNumber(HUGE_VAL), "+Inf");
}

TEST(OpenMetrics, ReadsBackEveryLabelThatItWrites) {
  for (const std::string value :
       {"plain", "", "a \"quoted\" \\ word", "two\nlines", "} 7", "\xc3\xa4"}) {
    const auto samples = readMetrics(textOf(value, 7));
    ASSERT_EQ(samples.size(), 2U) << value;
    EXPECT_EQ(samples[0].name, "moved_bytes_total");
    EXPECT_EQ(samples[0].label("agent"), value);
    EXPECT_EQ(samples[0].label("none"), "");
    EXPECT_EQ(samples[0].value, 7);
  }
}

TEST(OpenMetrics, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(readMetrics(textOf("a\xff"
                               "b\x1b[2Jc",
                               7))
                .at(0)
                .label("agent"),
            "a\xef\xbf\xbd"
            "b\xef\xbf\xbd[2Jc");
}

TEST(OpenMetrics, SkipsLinesThatAreNoSamples) {
  for (const char* line : {"", " 1", "1a 1", "a", "a ", "a 1 2", "a{ 1", "a{} ", "a{b} 1",
                           "a{b=c} 1", "a{b=\"c} 1", "a{b=\"c\"", "a{b=\"\\x\"} 1", "a{b=\"c\",} 1",
                           "a{b=\"c\"d=\"e\"} 1", "a 1x", "a inf", "a 1e999", "# a"})
    EXPECT_FALSE(parseSample(line)) << line;
  EXPECT_EQ(parseSample("a{} 1")->value, 1);
  EXPECT_EQ(parseSample("a_bucket{le=\"+Inf\"} 3")->label("le"), "+Inf");
  EXPECT_TRUE(std::isinf(parseSample("a +Inf")->value));
}

TEST(OpenMetrics, JoinsTextsByFamily) {
  EXPECT_EQ(joinMetrics(std::array{textOf("a", 1), textOf("b", 2)}),
            "# TYPE moved_bytes counter\n# UNIT moved_bytes bytes\n# HELP moved_bytes Bytes.\n"
            "moved_bytes_total{agent=\"a\"} 1\nmoved_bytes_total{agent=\"b\"} 2\n"
            "# TYPE peers gauge\n# HELP peers Peers.\npeers{agent=\"a\"} 1\npeers{agent=\"b\"} 1\n"
            "# EOF\n");
}

TEST(OpenMetrics, JoinsMetricsThatOnlyAnotherVersionHas) {
  const std::string newer = "# TYPE later gauge\n# HELP later Later.\nlater 3\n# EOF\n";
  EXPECT_EQ(joinMetrics(std::array{textOf("a", 1), newer}),
            textOf("a", 1).substr(0, textOf("a", 1).size() - 6) +
                "# TYPE later gauge\n# HELP later Later.\nlater 3\n# EOF\n");
}

TEST(OpenMetrics, LeavesOutACutTextForeignLinesAndSeriesThatAreThere) {
  const std::string whole = textOf("a", 1);
  EXPECT_EQ(joinMetrics(std::array{whole, textOf("b", 2).substr(0, 150)}), whole);
  EXPECT_EQ(joinMetrics(std::array{whole, textOf("a", 9)}), whole);
  EXPECT_EQ(joinMetrics(std::array{
                whole, std::string("peers 4\n# TYPE peers gauge\nother 5\npeers\x01 6\n# EOF\n")}),
            whole);
  EXPECT_EQ(joinMetrics({}), "# EOF\n");
}

}  // namespace
}  // namespace viaduct::base
