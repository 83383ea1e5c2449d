#include "viaduct/help_text.h"

#include <algorithm>

#include "measure/result/text.h"

namespace viaduct::app {

std::string wrapText(std::string_view text) {
  std::string out;
  for (const std::string_view line : measure::linesOf(text)) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    out += line.empty() ? "\n" : measure::wrapped(std::string(line.substr(indent)), indent);
  }
  return out;
}

std::string helpEntry(std::string_view name, std::string_view about) {
  constexpr std::size_t kAboutColumn = 30;
  const std::string entry = "  " + std::string(name),
                    text = measure::wrapped(std::string(about), kAboutColumn);
  if (entry.size() + 2 > kAboutColumn) return entry + "\n" + text;
  return entry + text.substr(entry.size());
}

std::string withDefault(std::string_view about, std::string_view fallback) {
  std::string out(about);
  if (!fallback.empty()) out.append(" [").append(fallback).append("]");
  return out;
}

}  // namespace viaduct::app
