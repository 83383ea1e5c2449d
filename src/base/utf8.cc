#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace viaduct::base {
namespace {

constexpr std::string_view kDots = "...";

// Whether a character with this code may have `size` bytes: the shortest encoding, not half of a
// surrogate pair, not a control character.
bool isCharacter(std::uint32_t code, std::size_t size) {
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0xa0, 0x800, 0x10000};
  return code >= kLeast[size] && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
}

struct CharacterRange {
  std::uint32_t first, last;
};
// Letters that are drawn over the one before them.
constexpr std::array kMarks{CharacterRange{0x300, 0x36f}, CharacterRange{0x200b, 0x200f},
                            CharacterRange{0x20d0, 0x20ff}, CharacterRange{0xfe00, 0xfe0f}};
// Letters of East Asia and pictures.
constexpr std::array kWide{CharacterRange{0x1100, 0x115f},   CharacterRange{0x2e80, 0xa4cf},
                           CharacterRange{0xac00, 0xd7a3},   CharacterRange{0xf900, 0xfaff},
                           CharacterRange{0xfe30, 0xfe6f},   CharacterRange{0xff00, 0xff60},
                           CharacterRange{0xffe0, 0xffe6},   CharacterRange{0x1f300, 0x1f64f},
                           CharacterRange{0x1f680, 0x1f6ff}, CharacterRange{0x1f900, 0x1f9ff},
                           CharacterRange{0x20000, 0x3fffd}};

template <class Ranges>
bool isIn(const Ranges& ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges, [&](const CharacterRange& range) {
    return code >= range.first && code <= range.last;
  });
}

// A character of a text. Its size is 0 if there is none.
struct Decoded {
  std::uint32_t code = 0;
  std::size_t size = 0;
};
Decoded decodedAt(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + size > text.size()) return {};
  std::uint32_t code = first & (0x7fU >> size);
  for (const char c : text.substr(at + 1, size - 1)) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xc0U) != 0x80U) return {};
    code = (code << 6U) | (byte & 0x3fU);
  }
  return isCharacter(code, size) ? Decoded{code, size} : Decoded{};
}

// The bytes and the width of a text's first character. A byte that is no character counts as one.
struct Shown {
  std::size_t bytes, width;
};
Shown firstShown(std::string_view text) {
  const auto [code, size] = decodedAt(text, 0);
  return {std::max<std::size_t>(size, 1), isIn(kMarks, code) ? 0U : isIn(kWide, code) ? 2U : 1U};
}

}  // namespace

std::size_t characterSize(std::string_view text, std::size_t at) {
  return decodedAt(text, at).size;
}

std::size_t shownWidth(std::string_view text) {
  std::size_t out = 0;
  while (!text.empty()) {
    const Shown next = firstShown(text);
    out += next.width;
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t width) {
  if (shownWidth(text) <= width) return std::string(text);
  const std::size_t dots = std::min(kDots.size(), width);
  std::size_t end = 0, taken = 0;
  for (Shown next = firstShown(text); taken + next.width + dots <= width;
       next = firstShown(text.substr(end))) {
    end += next.bytes;
    taken += next.width;
  }
  return std::string(text.substr(0, end)).append(kDots.substr(0, dots));
}

}  // namespace viaduct::base
