#include "base/sort_numbers.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>

namespace viaduct::base {
namespace {

constexpr unsigned kDigitBits = 11;       // counters of 8 KiB stay in the first-level cache
constexpr std::size_t kFewNumbers = 256;  // clearing counters costs more than sorting these

struct Digit {
  std::uint64_t least;  // of all numbers
  unsigned from, bits;
  std::size_t of(std::uint64_t number) const {
    return (number - least) >> from & ((std::uint64_t{1} << bits) - 1);
  }
};

// Sorts by one digit; equal digits keep their order.
void sortByDigit(std::span<const std::uint64_t> in, std::span<std::uint64_t> out, Digit digit) {
  std::array<std::uint32_t, 1U << kDigitBits> next{};
  for (const std::uint64_t number : in) ++next[digit.of(number)];
  std::uint32_t sum = 0;
  for (std::uint32_t& n : next) sum += std::exchange(n, sum);
  for (const std::uint64_t number : in) out[next[digit.of(number)]++] = number;
}

}  // namespace

void sortNumbers(std::vector<std::uint64_t>& numbers) {
  if (numbers.size() < kFewNumbers) return std::sort(numbers.begin(), numbers.end());
  const std::uint64_t least = *std::min_element(numbers.begin(), numbers.end());
  std::uint64_t differ = 0;
  for (const std::uint64_t number : numbers) differ |= number - least;
  if (differ == 0) return;
  auto from = static_cast<unsigned>(std::countr_zero(differ));
  auto left = static_cast<unsigned>(std::bit_width(differ)) - from;
  std::vector<std::uint64_t> other(numbers.size());
  // Least significant digit first; all digits have about the same width.
  for (unsigned digits = (left + kDigitBits - 1) / kDigitBits; digits != 0; --digits) {
    const unsigned bits = (left + digits - 1) / digits;
    sortByDigit(numbers, other, {least, from, bits});
    numbers.swap(other);
    from += bits;
    left -= bits;
  }
}

}  // namespace viaduct::base
