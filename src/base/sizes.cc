#include "base/sizes.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <span>
#include <utility>

#include "base/text.h"

namespace viaduct::base {
namespace {

struct Unit {
  std::string_view name;  // in lower case
  std::uint64_t factor;
};

constexpr std::uint64_t kKi = 1024;
constexpr std::array kSizes{
    Unit{"", 1},
    Unit{"b", 1},
    Unit{"k", kKi},
    Unit{"kib", kKi},
    Unit{"kb", 1000},
    Unit{"m", kKi* kKi},
    Unit{"mib", kKi* kKi},
    Unit{"mb", 1'000'000},
    Unit{"g", kKi* kKi* kKi},
    Unit{"gib", kKi* kKi* kKi},
    Unit{"gb", 1'000'000'000},
    Unit{"t", kKi* kKi* kKi* kKi},
    Unit{"tib", kKi* kKi* kKi* kKi},
    Unit{"tb", 1'000'000'000'000},
};
constexpr std::array kTimes{
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
};
constexpr std::array kCounts{Unit{"", 1}};

Error bad(std::string_view text, std::string detail, const char* form) {
  return {.code = Code::kInvalid,
          .operation = "parse",
          .detail = fmt::format("\"{}\" {}", text, detail),
          .remedy = form};
}

bool digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits off the front of `text`. False: the number is too large.
bool takeDigits(std::string_view& text, std::uint64_t& value, int& digits) {
  while (!text.empty() && digit(text.front())) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(text.front() - '0'), &value))
      return false;
    ++digits;
    text.remove_prefix(1);
  }
  return true;
}

const Unit* findUnit(std::string_view text, std::span<const Unit> units) {
  const std::string name = lower(text);
  for (const Unit& unit : units)
    if (unit.name == name) return &unit;
  return nullptr;
}

// A decimal number: digits / 10^fraction, in the unit that `rest` names.
struct Decimal {
  std::uint64_t digits = 0;
  int fraction = 0;
  std::string_view rest;
};

Result<Decimal> parseDecimal(std::string_view text, const char* form) {
  Decimal out{.rest = text};
  int whole = 0;
  bool fits = takeDigits(out.rest, out.digits, whole);
  if (fits && whole != 0 && out.rest.starts_with('.')) {
    out.rest.remove_prefix(1);
    fits = takeDigits(out.rest, out.digits, out.fraction);
    if (out.fraction == 0) whole = 0;
  }
  if (!fits) return bad(text, "is too large", form);
  if (whole == 0) return bad(text, "does not start with a number", form);
  while (out.rest.starts_with(' ')) out.rest.remove_prefix(1);
  return out;
}

// Parses NUMBER[.FRACTION][ ][UNIT] exactly, in multiples of the smallest unit.
Result<std::uint64_t> parseWithUnit(std::string_view text, std::span<const Unit> units,
                                    const char* form) {
  VIADUCT_TRY(Decimal value, parseDecimal(text, form));
  if (value.digits == 0 && value.rest.empty()) return std::uint64_t{0};
  const Unit* unit = findUnit(value.rest, units);
  if (unit == nullptr) return bad(text, "has an unknown or no unit", form);
  std::uint64_t factor = unit->factor;
  for (; value.fraction != 0 && factor % 10 == 0; --value.fraction) factor /= 10;
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(value.digits, factor, &total)) return bad(text, "is too large", form);
  for (; value.fraction != 0 && total % 10 == 0; --value.fraction) total /= 10;
  if (value.fraction != 0) return bad(text, "is not a whole number of the smallest unit", form);
  return total;
}

struct ExactSize {
  std::uint64_t count = 0;
  std::string_view unit = {};  // empty: bytes
};

// Returns the size in a unit that divides it. 128000 bytes are 125 KiB and 128 KB: people double
// sizes, so a power of two is preferred, then the smaller number.
ExactSize exactSize(std::uint64_t bytes) {
  struct Name {
    std::string_view name;
    std::uint64_t factor;
  };
  constexpr std::array kNames{Name{"KiB", kKi},
                              Name{"KB", 1000},
                              Name{"MiB", kKi * kKi},
                              Name{"MB", 1'000'000},
                              Name{"GiB", kKi * kKi * kKi},
                              Name{"GB", 1'000'000'000},
                              Name{"TiB", kKi * kKi * kKi * kKi},
                              Name{"TB", 1'000'000'000'000}};
  constexpr std::uint64_t kShort = 65536;
  const auto rank = [](std::uint64_t count) {
    return std::pair(count > kShort || !std::has_single_bit(count), count);
  };
  ExactSize best{bytes};
  for (const auto& [name, factor] : kNames)
    if (bytes != 0 && bytes % factor == 0 && rank(bytes / factor) < rank(best.count))
      best = {bytes / factor, name};
  return best;
}

}  // namespace

Result<std::uint64_t> parseSize(std::string_view text) {
  return parseWithUnit(text, kSizes, "write a size like 4096, 64K, 64KiB, 1.5GiB or 1MB (10^6)");
}

std::string formatSize(std::uint64_t bytes) {
  const ExactSize size = exactSize(bytes);
  return fmt::format("{}{}", size.count, size.unit);
}

std::string showSize(std::uint64_t bytes) {
  constexpr std::uint64_t kMost = 9'999'999;
  const ExactSize size = exactSize(bytes);
  if (size.count > kMost) return roundedSize(bytes);
  return fmt::format("{} {}", size.count, size.unit.empty() ? "B" : size.unit);
}

std::string roundedSize(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kNames{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < kKi) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes) / static_cast<double>(kKi);
  std::size_t unit = 0;
  // "1024.0" of one unit is shown in the next unit.
  for (; value >= 1023.95 && unit + 1 < kNames.size(); ++unit) value /= static_cast<double>(kKi);
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

Result<std::chrono::nanoseconds> parseDuration(std::string_view text) {
  constexpr auto kForm = "write a duration like 2s, 500ms or 20us";
  VIADUCT_TRY(const std::uint64_t count, parseWithUnit(text, kTimes, kForm));
  if (count > std::uint64_t{1} << 62U) return bad(text, "is too long", kForm);
  return std::chrono::nanoseconds(count);
}

std::string formatDuration(std::chrono::nanoseconds time) {
  const auto count = static_cast<std::uint64_t>(time.count());
  if (count == 0) return "0s";
  std::size_t unit = 0;
  constexpr std::size_t kSeconds = 3;
  while (unit < kSeconds && count % kTimes[unit + 1].factor == 0) ++unit;
  return fmt::format("{}{}", count / kTimes[unit].factor, kTimes[unit].name);
}

Result<std::uint64_t> parseCount(std::string_view text) {
  constexpr auto kForm = "write a whole number";
  if (text.find_first_not_of("0123456789") != std::string_view::npos)
    return bad(text, "is not a whole number", kForm);
  return parseWithUnit(text, kCounts, kForm);
}

}  // namespace viaduct::base
