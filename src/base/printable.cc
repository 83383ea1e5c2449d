#include "base/printable.h"

#include <fmt/format.h>

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

}  // namespace viaduct::base
