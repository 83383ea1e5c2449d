// Removes colours from a line of a pod's log, and finds its parts. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace viaduct::measure {

// Limits for one file; a log of these tools has fewer.
inline constexpr std::size_t kMostRows = 100'000, kMostRuns = 1'000;

// Parses a figure, which is finite and not negative.
std::optional<double> figureIn(std::string_view word);

// A column's title. Versions of a tool have different columns, so the titles identify the columns.
template <class Column>
struct ColumnTitle {
  std::string_view text;
  Column column;
};
// Returns the columns up to the first unknown title.
template <class Column>
std::vector<Column> columnsIn(std::string_view head, std::span<const ColumnTitle<Column>> titles) {
  std::vector<Column> out;
  for (;;) {
    head = base::trimmed(head);
    const auto known = std::find_if(titles.begin(), titles.end(),
                                    [&](const auto& t) { return head.starts_with(t.text); });
    if (known == titles.end()) return out;
    out.push_back(known->column);
    head.remove_prefix(known->text.size());
  }
}

// Returns the line without escape sequences and carriage returns. Empty if the line is too long for
// a line of a table.
std::string plainLine(std::string_view line);

// Returns the prefix by which a log collector names the writer of a line ("[pod/a/bench] ", "a |
// "), without times.
std::string sourceOf(std::string_view line);
// Returns a time such as "2026-07-28T10:17:33Z" if one stands before `end`, or an empty text.
std::string timeIn(std::string_view line, std::size_t end);

// A line of nixlbench's banner: "Label (--flag=[...])   : value".
struct LogSetting {
  std::string name = {};  // the flag's name
  std::string value = {};
};
std::optional<LogSetting> settingIn(std::string_view line);
// True for flags of keys, tokens and passwords. nixlbench prints their values, and reports do not
// keep them.
bool isSecret(std::string_view flag);

}  // namespace viaduct::measure
