#include "measure/report/html.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

TEST(Html, TextFromOutsideIsEscaped) {
  EXPECT_EQ(escaped("<a href=\"x\" on='y'>&amp;"),
            "&lt;a href=&quot;x&quot; on=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escaped("grün → 日本 \xf0\x9f\x9a\x82\n\t"), "grün → 日本 \xf0\x9f\x9a\x82\n\t");
}

TEST(Html, InvalidCharactersAreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(escaped("a\xff"
                    "b"),
            "a" + bad + "b");
  EXPECT_EQ(escaped(std::string_view("\0", 1)), bad);
  EXPECT_EQ(escaped("\x1b[1m"), bad + "[1m");
  EXPECT_EQ(escaped("\xc0\xaf"), bad + bad) << "an overlong slash";
  EXPECT_EQ(escaped("\xe2\x82"), bad + bad) << "cut off";
  EXPECT_EQ(escaped("\xed\xa0\x80"), bad + bad + bad) << "half of a pair";
  EXPECT_EQ(escaped("\xc2\x85"), bad + bad) << "a control character";
}

TEST(Html, NumbersForDrawings) {
  EXPECT_EQ(px(1), "1");
  EXPECT_EQ(px(1.5), "1.5");
  EXPECT_EQ(px(1.256), "1.26");
  EXPECT_EQ(px(100), "100");
  EXPECT_EQ(px(-0.001), "0");
}

TEST(Html, ATableHasACaptionAndHeads) {
  const std::string html = tableHtml(
      {.caption = "a<b", .columns = {"x", "y"}, .rows = {{headCell("<"), numberCell("1")}}});
  for (const char* part : {"<caption><span>a&lt;b</span></caption>",
                           "role=\"region\" tabindex=\"0\" aria-label=\"a&lt;b\"",
                           "<th scope=\"col\">x</th><th scope=\"col\" class=\"n\">y</th>",
                           "<tr><th scope=\"row\">&lt;</th><td class=\"n\">1</td></tr>"})
    EXPECT_NE(html.find(part), std::string::npos) << part << "\nis not in\n" << html;
}

TEST(Html, ColumnsWithoutFiguresAreLeftOut) {
  const HtmlTable table =
      withoutEmptyColumns({.columns = {"a", "b", "c"},
                           .rows = {{textCell("1"), textCell(""), textCell("–")},
                                    {textCell(""), textCell("–"), textCell("2")}}});
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(table.rows[1][1].html, "2");
}

}  // namespace
}  // namespace viaduct::measure
