#include "viaduct/help_text.h"

#include <algorithm>

namespace viaduct::app {
namespace {

constexpr std::size_t kColumns = 80, kAboutColumn = 30;

// Appends `text`, whose first line starts at column `at`. A word never breaks.
void wrapInto(std::string& out, std::string_view text, std::size_t at, std::size_t indent) {
  while (at + text.size() > kColumns) {
    const std::size_t room = at < kColumns ? kColumns - at : 0;
    std::size_t end = text.rfind(' ', room);
    if (end == std::string_view::npos || end == 0) end = text.find(' ', 1);
    if (end == std::string_view::npos) break;
    out.append(text.substr(0, end)).append("\n").append(indent, ' ');
    text.remove_prefix(end + 1);
    at = indent;
  }
  out.append(text);
}

}  // namespace

std::string wrapText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out.append(indent, ' ');
    wrapInto(out, line.substr(indent), indent, indent);
    text.remove_prefix(end);
    if (!text.empty()) {
      out += '\n';
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string helpEntry(std::string_view name, std::string_view about) {
  std::string out = "  " + std::string(name);
  if (out.size() + 2 > kAboutColumn) out += '\n';
  const std::size_t at = out.back() == '\n' ? 0 : out.size();
  out.append(kAboutColumn - at, ' ');
  wrapInto(out, about, kAboutColumn, kAboutColumn);
  return out + "\n";
}

std::string withDefault(std::string_view about, std::string_view fallback) {
  std::string out(about);
  if (!fallback.empty()) out.append(" [").append(fallback).append("]");
  return out;
}

}  // namespace viaduct::app
