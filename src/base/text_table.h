// Tables of text whose columns are as wide as their contents, within the width of a terminal.
// Threads: plain values.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::base {

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max() / 2;

// The width of the terminal behind `fd`. A file or a pipe has the width COLUMNS, or no limit.
std::size_t terminalWidth(int fd = STDOUT_FILENO);
// How a column changes if the table is too wide. A column that leaves the line of its row keeps its
// title: "copied by: kernel".
enum class Narrow : std::uint8_t {
  kStays,
  kHeading,  // becomes a line above the rows with the same text
  kBelow,    // moves to a line below its row
  kCut,      // is cut, but stays at least `least` wide
  kGoes,     // is left out
};

struct TextColumn {
  std::string_view title = {};  // must outlive the table
  bool left = false;            // for texts; figures are aligned at the right
  Narrow narrow = Narrow::kStays;
  std::size_t least = 0;  // the width if rows come one by one; the least width of kCut
};
constexpr TextColumn figure(std::string_view title, std::size_t least = 0) {
  return {.title = title, .least = least};
}
constexpr TextColumn figure(std::string_view title, Narrow narrow) {
  return {.title = title, .narrow = narrow};
}
constexpr TextColumn words(std::string_view title, Narrow narrow = Narrow::kStays,
                           std::size_t least = 0) {
  return {.title = title, .left = true, .narrow = narrow, .least = least};
}
using TextColumns = std::span<const TextColumn>;

// The texts of a row, from texts and whole numbers.
template <class... Values>
std::vector<std::string> cells(const Values&... values) {
  return {fmt::format("{}", values)...};
}

struct TextRow {
  std::vector<std::string> cells = {};
  std::string after = {};  // lines below the row
};

// Prints a whole table. Columns that have no room follow in a further table, which repeats the
// first column.
std::string tableText(TextColumns columns, const std::vector<TextRow>& rows, std::size_t limit);

// Prints a table whose rows come one by one. A text that is wider than its column takes blanks of
// the columns beside it.
class TextTable {
 public:
  TextTable(TextColumns columns, std::size_t limit);
  // The line of the titles, or two lines if that makes the table narrower. Empty without titles.
  std::string head() const;
  // The row's line. Texts that left the line stand above and below it. Missing cells are empty.
  std::string row(std::vector<std::string> cells);

 private:
  friend std::string tableText(TextColumns columns, const std::vector<TextRow>& rows,
                               std::size_t limit);
  struct Column : TextColumn {
    std::size_t width = 0;  // of the texts, without the title
    bool in_line = true;
  };
  // The lines of a title. A title that is wider than its column's texts can be broken.
  struct Title {
    std::string_view above, below;
  };
  Title titleOf(const Column& column) const;
  // Chooses the widest gap, and unbroken titles if there is room.
  void space();
  void fit();
  std::size_t widthOf(const Column& column) const;
  // The number of columns from the first one on that have room.
  std::size_t room() const;
  bool fits() const { return room() == columns_.size(); }
  // Moves the last text that can leave the line below its row, for this row and all further ones.
  bool moveBelow();
  std::string line(const std::vector<std::string>& cells) const;
  // The titles and texts of the columns that left the line in the way `which`.
  std::string outside(Narrow which, const std::vector<std::string>& cells) const;

  std::vector<Column> columns_;
  std::size_t most_gap_ = 1, gap_ = 1;  // between two columns
  std::size_t limit_;
  bool broken_titles_ = false;
  std::string heading_ = {};  // of the last row
};

}  // namespace viaduct::base
