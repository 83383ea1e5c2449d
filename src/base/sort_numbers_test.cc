#include "base/sort_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace viaduct::base {
namespace {

// Few and many numbers of all widths, with and without low bits that are equal in all of them.
TEST(SortNumbers, SortsAsStdSortDoes) {
  for (const std::size_t count : {0UL, 1UL, 2UL, 255UL, 256UL, 257UL, 5000UL})
    for (unsigned width = 0; width <= 64; ++width)
      for (const unsigned shared : {0U, 12U}) {
        Random random(width * 1000 + count + shared);
        std::vector<std::uint64_t> numbers(count);
        const std::uint64_t mask = width == 64 ? ~0ULL : (1ULL << width) - 1;
        for (std::uint64_t& n : numbers) n = ((random.next() & mask) >> shared << shared) + shared;
        std::vector<std::uint64_t> expected = numbers;
        std::sort(expected.begin(), expected.end());
        sortNumbers(numbers);
        EXPECT_EQ(numbers, expected) << count << " numbers of " << width << " bits";
      }
}

}  // namespace
}  // namespace viaduct::base
