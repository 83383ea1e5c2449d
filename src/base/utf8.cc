#include "base/utf8.h"

#include <array>
#include <cstdint>

namespace viaduct::base {
namespace {

// Whether a character with this code may have `size` bytes: the shortest encoding, not half of a
// surrogate pair, not a control character.
bool isCharacter(std::uint32_t code, std::size_t size) {
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0xa0, 0x800, 0x10000};
  return code >= kLeast[size] && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
}

}  // namespace

std::size_t characterSize(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return 1;
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > text.size()) return 0;
  std::uint32_t code = first & (0x7fU >> size);
  for (const char c : text.substr(at + 1, size - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80U) return 0;
    code = (code << 6U) | (byte & 0x3fU);
  }
  return isCharacter(code, size) ? size : 0;
}

}  // namespace viaduct::base
