#include "base/text.h"

#include <algorithm>
#include <cctype>

namespace viaduct::base {
namespace {

constexpr std::string_view kWhiteSpace = " \t\n\r\v\f";

char small(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
char large(char c) { return static_cast<char>(std::toupper(static_cast<unsigned char>(c))); }

std::string changed(std::string_view text, char (*change)(char)) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), change);
  return out;
}

}  // namespace

std::string lower(std::string_view text) { return changed(text, small); }
std::string upper(std::string_view text) { return changed(text, large); }

bool sameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return small(x) == small(y); });
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

std::string withoutUser(std::string_view url) {
  constexpr std::string_view kMark = "://";
  const auto scheme = url.find(kMark), at = url.rfind('@');
  if (scheme == std::string_view::npos || at == std::string_view::npos || at < scheme)
    return std::string(url);
  std::string out(url.substr(0, scheme + kMark.size()));
  return out.append("***").append(url.substr(at));
}

std::vector<std::string_view> wordsOf(std::string_view text) {
  std::vector<std::string_view> out;
  for (text = trimmed(text); !text.empty();) {
    const auto end = std::min(text.find_first_of(kWhiteSpace), text.size());
    out.push_back(text.substr(0, end));
    text = trimmed(text.substr(end));
  }
  return out;
}

std::vector<std::string> partsOf(std::string_view text, char between) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(between));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    if (!one.empty()) out.emplace_back(one);
  }
  return out;
}

std::string paragraph(std::string_view lead, std::string_view text, std::size_t width) {
  const std::size_t room = width - lead.size();
  std::string out, indent(lead);
  do {
    std::size_t end = text.size();
    if (end > room) {
      end = text.rfind(' ', room);
      if (end == std::string_view::npos || end == 0) end = room;
    }
    out.append(indent).append(text.substr(0, end)).append("\n");
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
    indent.assign(lead.size(), ' ');
  } while (!text.empty());
  return out;
}

}  // namespace viaduct::base
