#include "base/text_table.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/environment.h"
#include "base/lists.h"
#include "base/text.h"
#include "base/utf8.h"

namespace viaduct::base {
namespace {

constexpr std::size_t kUsual = 80, kNarrowest = 20;
constexpr std::size_t kMostGap = 2;  // between two columns
constexpr std::size_t kBelowIndent = 9;

// The first value, and those from `at` on.
template <class Values>
auto rest(const Values& values, std::size_t at) {
  return joined(std::span(values).first(1), std::span(values).subspan(at));
}

}  // namespace

std::size_t terminalWidth(int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0)
    return size.ws_col == 0 ? kUsual : std::max<std::size_t>(size.ws_col, kNarrowest);
  const char* const columns = variable("COLUMNS");
  const auto asked = numberIn<std::size_t>(columns == nullptr ? "" : columns);
  return asked ? std::clamp(*asked, kNarrowest, kNoLimit) : kNoLimit;
}

TextTable::TextTable(TextColumns columns, std::size_t limit) : limit_(limit) {
  for (const TextColumn& column : columns) columns_.push_back({{column}, column.least});
  fit();
}

TextTable::Title TextTable::titleOf(const Column& column) const {
  const std::string_view title = column.title;
  const std::size_t blank = title.rfind(' ');
  if (!broken_titles_ || shownWidth(title) <= column.width || blank == std::string::npos)
    return {"", title};
  return {title.substr(0, blank), title.substr(blank + 1)};
}

std::size_t TextTable::widthOf(const Column& column) const {
  const auto [above, below] = titleOf(column);
  return std::max({column.width, shownWidth(above), shownWidth(below)});
}

std::size_t TextTable::room() const {
  std::size_t end = 0, number = 0;
  for (const Column& column : columns_) {
    if (column.in_line) end += (end == 0 ? 0 : gap_) + widthOf(column);
    if (end > limit_) break;
    ++number;
  }
  return number;
}

void TextTable::space() {
  broken_titles_ = false;
  for (gap_ = most_gap_; !fits() && gap_ > 1;) --gap_;
  broken_titles_ = !fits();
}

// Each step is taken only if those before it were not enough. Columns give way from the right.
void TextTable::fit() {
  space();
  if (fits()) return;
  for (Column& column : columns_) column.in_line = column.narrow != Narrow::kHeading;
  for (auto column = columns_.rbegin(); column != columns_.rend() && !fits(); ++column) {
    if (column->narrow == Narrow::kBelow || column->narrow == Narrow::kGoes)
      column->in_line = false;
    if (column->narrow == Narrow::kCut)
      while (!fits() && column->width > column->least) --column->width;
  }
  space();
}

bool TextTable::moveBelow() {
  const auto last = std::find_if(columns_.rbegin(), columns_.rend(), [](const Column& column) {
    return column.in_line && column.narrow == Narrow::kBelow;
  });
  if (last == columns_.rend()) return false;
  last->in_line = false;
  return true;
}

std::string TextTable::line(const std::vector<std::string>& cells) const {
  std::string out;
  std::size_t at = 0, end = 0;  // the ends of the text so far and of its column
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (!column.in_line) continue;
    const std::size_t start = end == 0 ? 0 : end + gap_;
    end = start + widthOf(column);
    const std::string text =
        column.narrow == Narrow::kCut ? shortened(cells[i], widthOf(column)) : cells[i];
    const std::size_t width = shownWidth(text);
    if (width == 0) continue;
    const std::size_t wanted = column.left ? start : end - std::min(width, end);
    const std::size_t from = std::max(wanted, out.empty() ? 0 : at + 1);
    out.append(from - at, ' ').append(text);
    at = from + width;
  }
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

std::string TextTable::outside(Narrow which, const std::vector<std::string>& cells) const {
  std::string out;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (!columns_[i].in_line && columns_[i].narrow == which && !cells[i].empty() && cells[i] != "-")
      out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", columns_[i].title,
                         columns_[i].title.empty() ? "" : ": ", cells[i]);
  return out;
}

std::string TextTable::head() const {
  std::vector<std::string> above, below;
  for (const Column& column : columns_) {
    const Title title = titleOf(column);
    above.emplace_back(title.above);
    below.emplace_back(title.below);
  }
  std::string out;
  for (const auto& titles : {above, below})
    if (const std::string one = line(titles); !one.empty()) out += one + "\n";
  return out;
}

std::string TextTable::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  std::string out;
  if (std::string heading = outside(Narrow::kHeading, cells); heading != heading_) {
    heading_ = std::move(heading);
    out += paragraph("", heading_, limit_);
  }
  std::string main = line(cells);
  while (shownWidth(main) > limit_ && moveBelow()) main = line(cells);
  out += main + "\n";
  if (const std::string below = outside(Narrow::kBelow, cells); !below.empty())
    out += paragraph(std::string(kBelowIndent, ' '), below, limit_);
  return out;
}

std::string tableText(TextColumns columns, const std::vector<TextRow>& rows, std::size_t limit) {
  TextTable table({}, limit);
  table.most_gap_ = kMostGap;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    std::size_t width = 0;
    for (const TextRow& row : rows) width = std::max(width, shownWidth(row.cells[i]));
    table.columns_.push_back({{columns[i]}, width});
  }
  table.fit();
  const std::size_t room = std::max<std::size_t>(table.room(), 2);
  if (room < columns.size()) {
    const auto further =
        mapped(rows, [&](const TextRow& row) { return TextRow{.cells = rest(row.cells, room)}; });
    return tableText(columns.first(room), rows, limit) + "\n" +
           tableText(rest(columns, room), further, limit);
  }
  std::string out = table.head();
  for (const TextRow& row : rows) out += table.row(row.cells) + row.after;
  return out;
}

}  // namespace viaduct::base
