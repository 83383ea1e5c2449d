#include "measure/report/chart.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "measure/report/marks.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

using testing::has;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

Chart someChart() {
  return {.id = "rate",
          .title = "Rate <over> size",
          .note = "a note",
          .x_title = "block size",
          .y_title = "GB/s",
          .lines = {{"tcp",
                     {{.x = 4096, .y = 2, .low = 1, .high = 3, .tip = "tcp & 4 KiB"},
                      {.x = 8192, .y = 4},
                      {.x = 16384, .y = 5}}},
                    {"none", {}}},
          .levels = {{"link eth0", {{4096, 12.5}}}}};
}

TEST(ChartHtml, IsAnImageWithANameAndWords) {
  const std::string html = chartHtml(someChart());
  EXPECT_EQ(count(html, "role=\"img\""), 2U) << "for wide and for narrow pages";
  for (const char* part :
       {"aria-labelledby=\"rate-wide-t rate-wide-d\"",
        "<title id=\"rate-wide-t\">Rate &lt;over&gt; size</title>",
        "tcp: lowest 2.00 at 4 KiB, highest 5.00 at 16 KiB. Ceiling: link eth0.",
        "<title>tcp &amp; 4 KiB</title>", ">A</text>", "ceiling A: link eth0</li>",
        ">16 KiB</text>", "<figcaption>a note</figcaption>"})
    EXPECT_TRUE(has(html, part)) << part << "\nis not in\n" << html;
  EXPECT_FALSE(has(html, "none</li>")) << "a line without points has no legend";
  EXPECT_FALSE(has(html, "nan") || has(html, "inf"));
}

TEST(ChartHtml, LongLabelsOfTheAxisDoNotReachItsTitle) {
  Chart chart = someChart();
  chart.levels.clear();
  EXPECT_TRUE(has(chartHtml(chart), "<path class=\"grid\" d=\"M64 "));
  chart.y_axis = YAxis::kChange;
  chart.lines[0].points = {{.x = 4096, .y = -50}, {.x = 8192, .y = 250}};
  const std::string html = chartHtml(chart);
  EXPECT_TRUE(has(html, ">+250 %</text>")) << html;
  EXPECT_FALSE(has(html, "<path class=\"grid\" d=\"M64 ")) << html;
}

// Radio buttons with one name are one tab stop. A line without points has no tab stop.
TEST(ChartHtml, TheKeyboardReachesEveryPoint) {
  Chart chart = someChart();
  chart.lines.push_back({"local", {{.x = 4096, .y = 12, .tip = "local, 12 GB/s"}}});
  const std::string html = chartHtml(chart);
  EXPECT_EQ(count(html, "role=\"radiogroup\""), 4U) << "two lines, wide and narrow";
  EXPECT_EQ(count(html, "name=\"rate-wide-0\""), 3U);
  EXPECT_EQ(count(html, "name=\"rate-narrow-2\""), 1U);
  EXPECT_EQ(count(html, " checked>"), 4U) << "where Tab comes in";
  for (const char* part : {"aria-label=\"Points of tcp\"", "<span>tcp &amp; 4 KiB</span>"})
    EXPECT_TRUE(has(html, part)) << part << "\nis not in\n" << html;
}

TEST(ChartHtml, AnInvalidPointIsMarkedAndInterruptsTheLine) {
  Chart chart = someChart();
  chart.lines[0].points[1].bad = "INVALID";
  const std::string html = chartHtml(chart);
  EXPECT_EQ(count(html, ">INVALID</text>"), 2U);
  const auto track = html.find("class=\"line\" d=\"");
  ASSERT_NE(track, std::string::npos);
  const std::string path = html.substr(track + 16, html.find('"', track + 16) - track - 16);
  EXPECT_EQ(count(path, "M"), 2U) << path;
  EXPECT_EQ(count(path, "L"), 0U) << path;
}

TEST(ChartHtml, ACeilingMayFollowTheBlockSize) {
  Chart chart = someChart();
  EXPECT_TRUE(has(chartHtml(chart), "class=\"level\" d=\"M64 "));
  chart.levels[0].points.emplace_back(16384, 20);
  const std::string html = chartHtml(chart);
  EXPECT_TRUE(has(html, "class=\"level\" d=\"M76 ")) << "from the first block size";
}

TEST(ChartHtml, AnEmptyChartHasNoHtml) {
  Chart chart = someChart();
  chart.lines[0].points.clear();
  EXPECT_TRUE(isEmpty(chart));
  EXPECT_EQ(chartHtml(chart), "");
}

TEST(ChartHtml, TheChartSaysThatItOmitsLines) {
  Chart chart = someChart();
  chart.lines.assign(kMostLines + 3, chart.lines[0]);
  EXPECT_TRUE(has(chartHtml(chart), "has 24 of 27 lines"));
}

TEST(ChartHtml, EachLineOfADrawingHasItsOwnColour) {
  Chart chart = someChart();
  chart.lines.assign(2 * kLinesOfDrawing, chart.lines[0]);
  const std::string html = chartHtml(chart);
  std::size_t drawings = 0;
  for (auto at = html.find("<svg class=\"chart"); at != std::string::npos;
       at = html.find("<svg class=\"chart", at + 1)) {
    const std::string drawing = html.substr(at, html.find("</svg>", at) - at);
    std::set<std::string> colours;
    for (auto s = drawing.find("\"series "); s != std::string::npos;
         s = drawing.find("\"series ", s + 1))
      EXPECT_TRUE(colours.insert(drawing.substr(s, drawing.find('"', s + 1) - s)).second);
    EXPECT_EQ(colours.size(), kLinesOfDrawing);
    ++drawings;
  }
  EXPECT_EQ(drawings, 4U) << "two parts, wide and narrow";
  EXPECT_TRUE(has(html, ">Rate &lt;over&gt; size, 2 of 2</title>")) << html;
}

// Returns the heights of the ceilings' letters in the order of the drawing.
std::vector<double> heightsOfNames(const std::string& html) {
  std::vector<double> out;
  const std::string drawing = html.substr(0, html.find("</svg>"));
  for (auto at = drawing.find("\"levelname\""); at != std::string::npos;
       at = drawing.find("\"levelname\"", at + 1))
    out.push_back(std::stod(drawing.substr(drawing.find(" y=\"", at) + 4)));
  return out;
}

TEST(ChartHtml, LettersOfCeilingsDoNotOverlapAndStayInside) {
  for (const double first : {12.5, 0.9, 2.5}) {  // above, below and among the points
    Chart chart = someChart();
    chart.levels.clear();
    for (int i = 0; i < 6; ++i)
      chart.levels.push_back({"link " + std::to_string(i), {{4096, first * (1 + 0.001 * i)}}});
    const auto heights = heightsOfNames(chartHtml(chart));
    ASSERT_EQ(heights.size(), 6U);
    for (std::size_t i = 1; i < heights.size(); ++i)
      EXPECT_GE(heights[i] - heights[i - 1], 13.9) << first;
    EXPECT_GE(heights.front(), 0) << first;
    EXPECT_LE(heights.back(), 440) << first;
  }
}

TEST(Marks, NoTwoOfFortyLinesLookTheSame) {
  std::set<std::string> looks;
  for (std::size_t i = 0; i < 40; ++i) looks.insert(colourClass(i) + dashes(i) + mark(i, 0, 0, 1));
  EXPECT_EQ(looks.size(), 40U);
  // Colour alone must not tell lines apart: the first eight also differ in dashes and marks.
  looks.clear();
  for (std::size_t i = 0; i < 8; ++i) looks.insert(dashes(i) + mark(i, 0, 0, 1));
  EXPECT_EQ(looks.size(), 8U);
}

}  // namespace
}  // namespace viaduct::measure
