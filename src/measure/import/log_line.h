// One line of a pod's log: freed from colours, and taken apart. Threads: pure functions.
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

// Of one file: more is no log of a tool.
inline constexpr std::size_t kMostRows = 100'000, kMostRuns = 1'000;

// Finite and not negative, as all figures are.
std::optional<double> figureIn(std::string_view word);

// Versions of a tool differ in the columns they have, so their titles tell which is which.
template <class Column>
struct ColumnTitle {
  std::string_view text;
  Column column;
};
// Up to the first unknown title.
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

// Without escape sequences and carriage returns; nothing of a line too long to be one of a table.
std::string plainLine(std::string_view line);

// Who wrote a line: what collectors of logs put in front ("[pod/a/bench] ", "a | "), without times.
std::string sourceOf(std::string_view line);
// "2026-07-28T10:17:33Z" where such a time stands before `end`; else nothing.
std::string timeIn(std::string_view line, std::size_t end);

// A line of a banner: "Label (--flag=[...])   : value".
struct LogSetting {
  std::string name = {};  // the flag
  std::string value = {};
};
std::optional<LogSetting> settingIn(std::string_view line);
// Keys, tokens and passwords, which nixlbench prints and we do not keep.
bool isSecret(std::string_view flag);

}  // namespace viaduct::measure
