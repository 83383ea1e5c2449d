#include "base/printable.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace viaduct::base {

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  for (const char c : text.substr(0, most)) {
    if (c >= ' ' && c <= '~')
      out += c;
    else if (c == '\t')
      out += ' ';
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text.size() > most ? out + "..." : out;
}

bool isPrintable(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::size_t size = characterSize(text, at);
    if (first < ' ' || first == 0x7f || size == 0) return false;
    at += size;
  }
  return true;
}

}  // namespace viaduct::base
