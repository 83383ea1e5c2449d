#include "measure/run/changing_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace viaduct::measure {
namespace {

// Has memory for two sets of four blocks. Each transfer uses one of the sets.
class Changing : public ::testing::Test {
 protected:
  using Way = ChangingWords::Way;
  ChangingWords words(Way way, bool whole = false) {
    return ChangingWords({.contents = contents_,
                          .end = {.memory = memory_},
                          .way = way,
                          .depth = 2,
                          .dice = 5,
                          .whole = whole});
  }
  std::size_t differences(const std::vector<std::byte>& before) const {
    std::size_t found = 0;
    for (std::size_t at = 0; at < before.size(); at += 8)
      found += std::equal(&before[at], &before[at] + 8, &memory_[at]) ? 0U : 1U;
    return found;
  }

  const Spec spec_{.rows = {{.block_bytes = 1024, .batch = 4}}, .depth = 2};
  const std::vector<Stream> streams_ = streamsOf(spec_.layout, 1, false);
  const StreamContents contents_{spec_, spec_.rows[0], streams_, *deviceBytes(spec_), 7};
  std::vector<std::byte> memory_{8192};
};

TEST_F(Changing, AWriteChangesOneWordOfItsSet) {
  ChangingWords words = this->words(Way::kWrite);
  for (std::uint64_t number = 0; number < 40; ++number) {
    const std::vector<std::byte> before = memory_;
    EXPECT_FALSE(words.posting(number, number % 2));
    EXPECT_EQ(differences(before), 1U);
    EXPECT_TRUE(std::equal(memory_.begin() + (number % 2 == 0 ? 4096 : 0),
                           memory_.begin() + (number % 2 == 0 ? 8192 : 4096),
                           before.begin() + (number % 2 == 0 ? 4096 : 0)));
    words.ended(number);
  }
  EXPECT_EQ(words.checked(), 0U);
}

TEST_F(Changing, AReadThatOverwritesNothingIsMissed) {
  ChangingWords words = this->words(Way::kRead);
  words.posting(0, 0);
  words.posting(1, 1);
  words.ended(0);
  std::fill(memory_.begin(), memory_.end(), std::byte{1});
  words.ended(1);
  EXPECT_EQ(words.checked(), 2U);
  EXPECT_EQ(words.missed(), 1U);
}

TEST_F(Changing, AnEchoHasToBringAWordBack) {
  ChangingWords words = this->words(Way::kBounce), echo = this->words(Way::kEcho);
  const std::vector<std::byte> before = memory_;
  words.posting(0, 0);
  echo.posting(0, 0);  // changes other words
  words.ended(0);
  EXPECT_EQ(words.missed(), 0U);
  words.posting(1, 1);
  memory_ = before;
  words.ended(1);
  EXPECT_EQ(words.missed(), 1U);
}

TEST_F(Changing, AllWordsOfAFreshTransferChange) {
  ChangingWords words = this->words(Way::kWrite, true);
  const std::vector<std::byte> before = memory_;
  EXPECT_TRUE(words.posting(0, 0));
  EXPECT_EQ(differences(before), 4096U / 8);
  const SetContents sent{.seed = words.seedOf(0), .epoch = 1, .changed = words.words(0)};
  EXPECT_FALSE(*contents_.differences({.memory = memory_}, sent));
}

}  // namespace
}  // namespace viaduct::measure
