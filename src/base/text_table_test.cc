#include "base/text_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <array>
#include <cstdlib>

#include "base/fd.h"
#include "base/utf8.h"

namespace viaduct::base {
namespace {

const std::vector<TextColumn> kColumns{{.title = "name", .left = true},
                                       {.title = "rate GB/s"},
                                       {.title = "way", .left = true, .narrow = Narrow::kBelow}};
const std::vector<TextRow> kRows{{{"a", "1.00", "x"}, "  note\n"}, {{"long name", "12345", ""}}};

TEST(TextTable, ColumnsAreAsWideAsTheirContents) {
  EXPECT_EQ(tableText(kColumns, kRows, kNoLimit),
            "name       rate GB/s  way\n"
            "a               1.00  x\n"
            "  note\n"
            "long name      12345\n");
}

TEST(TextTable, GapsShrinkFirstThenTitlesAreBroken) {
  EXPECT_EQ(tableText(kColumns, kRows, 23),
            "name      rate GB/s way\n"
            "a              1.00 x\n"
            "  note\n"
            "long name     12345\n");
  EXPECT_EQ(tableText(kColumns, kRows, 22),
            "           rate\n"
            "name       GB/s way\n"
            "a          1.00 x\n"
            "  note\n"
            "long name 12345\n");
}

TEST(TextTable, ATextMovesBelowItsRowAndAFigureStays) {
  EXPECT_EQ(tableText(kColumns, kRows, 16),
            "           rate\n"
            "name       GB/s\n"
            "a          1.00\n"
            "         way: x\n"
            "  note\n"
            "long name 12345\n");
}

TEST(TextTable, AColumnBecomesAHeadingOfTheRowsThatShareIt) {
  const std::vector<TextColumn> columns{{.title = "op", .left = true, .narrow = Narrow::kHeading},
                                        {.title = "size"},
                                        {.title = "rate"}};
  const std::vector<TextRow> rows{
      {{"write", "1", "2"}}, {{"write", "3", "4"}}, {{"read", "5", "6"}}};
  EXPECT_EQ(tableText(columns, rows, 14),
            "size  rate\n"
            "op: write\n"
            "   1     2\n"
            "   3     4\n"
            "op: read\n"
            "   5     6\n");
}

TEST(TextTable, ColumnsGiveWayFromTheRightAndNoFurtherThanNeeded) {
  const std::vector<TextColumn> columns{
      {.title = "agent", .left = true, .narrow = Narrow::kCut, .least = 8},
      {.title = "pins", .narrow = Narrow::kGoes},
      {.title = "rate"}};
  const std::vector<TextRow> rows{{{"a-long-agent", "12", "1.00"}}};
  EXPECT_EQ(tableText(columns, rows, 22), "agent        pins rate\na-long-agent   12 1.00\n");
  EXPECT_EQ(tableText(columns, rows, 21), "agent         rate\na-long-agent  1.00\n");
  EXPECT_EQ(tableText(columns, rows, 15), "agent      rate\na-long-... 1.00\n");
}

TEST(TextTable, ColumnsWithoutRoomFollowInAFurtherTable) {
  const std::vector<TextColumn> columns{{.title = "from"}, {.title = "to 1"}, {.title = "to 2"}};
  const std::vector<TextRow> rows{{{"0", "12345678", "23456789"}, "note\n"}};
  EXPECT_EQ(tableText(columns, rows, 20),
            "from      to 1\n"
            "   0  12345678\n"
            "note\n"
            "\n"
            "from      to 2\n"
            "   0  23456789\n");
  EXPECT_EQ(
      tableText(std::array{figure("wider than the limit")}, {{{"1"}}}, 8).find("wider than the"),
      0U);
}

TEST(TextTable, AWideTextTakesBlanksOfItsNeighbours) {
  TextTable table{std::array{figure("size", 6), figure("rate", 6), figure("", 4)}, 80};
  EXPECT_EQ(table.head(), "  size   rate\n");
  EXPECT_EQ(table.row({"12345678", "1.0", "x"}), "12345678  1.0    x\n");
  EXPECT_EQ(table.row({"1", "123456789", "x"}), "     1 123456789 x\n")
      << "it never runs into another";
  EXPECT_EQ(table.row({"1", "123", ""}), "     1    123\n") << "no trailing blanks";
}

TEST(TextTable, ALongTextOfARowThatComesAloneMovesBelow) {
  TextTable table{std::array{figure("size", 4), words("way", Narrow::kBelow, 6)}, 20};
  EXPECT_EQ(table.row({"1", "short"}), "   1 short\n");
  EXPECT_EQ(table.row({"2", "sixteen letters."}),
            "   2\n         way:\n         sixteen\n         letters.\n");
  EXPECT_EQ(table.row({"3", "short"}), "   3\n         way: short\n") << "as the row before it";
}

TEST(TextTable, AnEmptyTableHasOnlyItsTitles) {
  EXPECT_EQ(tableText(std::array{words("name"), figure("rate")}, {}, 80), "name  rate\n");
  EXPECT_EQ(tableText(std::array{figure(""), figure("")}, {}, 80), "");
  EXPECT_EQ(tableText({}, {}, 80), "");
}

TEST(TextTable, CharactersAreCountedAndNotBytes) {
  EXPECT_EQ(shownWidth("abc"), 3U);
  EXPECT_EQ(shownWidth("\xc3\xa4\xe2\x82\xac"), 2U) << "a with dots, the sign of the euro";
  EXPECT_EQ(shownWidth("\xe6\x97\xa5\xf0\x9f\x9a\x80"), 4U) << "a sign of Japanese, a picture";
  EXPECT_EQ(shownWidth("e\xcc\x81"), 1U) << "an accent of its own";
  EXPECT_EQ(shownWidth("\xff\xfe"), 2U) << "no characters";
  EXPECT_EQ(tableText(std::array{words(""), figure("")}, {{{"\xc3\xa4", "1"}}, {{"bc", "2"}}}, 80),
            "\xc3\xa4   1\nbc  2\n");
}

TEST(TextTable, AShortenedTextHasWholeCharacters) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 5), "ab...");
  EXPECT_EQ(shortened("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 4), "\xc3\xa4...");
  EXPECT_EQ(shortened("\xe6\x97\xa5\xe6\x97\xa5\xe6\x97\xa5", 4), "...") << "half a sign is none";
  EXPECT_EQ(shortened("abcdef", 2), "..");
  EXPECT_EQ(shortened("abcdef", 0), "");
}

TEST(TerminalWidth, IsThatOfTheTerminalAndOfCOLUMNSElsewhere) {
  winsize size{.ws_row = 24, .ws_col = 132, .ws_xpixel = 0, .ws_ypixel = 0};
  int master = -1, terminal = -1;
  ASSERT_EQ(::openpty(&master, &terminal, nullptr, nullptr, &size), 0);
  const Fd both[] = {Fd(master), Fd(terminal)};
  ::setenv("COLUMNS", "100", 1);
  EXPECT_EQ(terminalWidth(terminal), 132U);
  const Fd file(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(terminalWidth(file.get()), 100U);
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(terminalWidth(file.get()), kNoLimit);
  ::unsetenv("COLUMNS");
  EXPECT_EQ(terminalWidth(file.get()), kNoLimit);
  size.ws_col = 0;
  ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(terminalWidth(terminal), 80U) << "a terminal of an unknown width";
}

}  // namespace
}  // namespace viaduct::base
