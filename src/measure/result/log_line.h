// One line of a pod's log: freed from colours, and taken apart. Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::measure {

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> wordsOf(std::string_view text);

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
