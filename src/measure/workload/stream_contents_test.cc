#include "measure/workload/stream_contents.h"

#include <gtest/gtest.h>

#include "support/text.h"

namespace viaduct::measure {
namespace {

// A read of storage whose bytes are the user's.
class OriginalContents : public ::testing::Test {
 protected:
  // Copies each block from its index in the storage to its index in local memory.
  void read() {
    const auto here = blockOrder(4, spec_.seed, Role::kInitiator);
    const auto there = blockOrder(4, spec_.seed, Role::kTarget);
    for (std::size_t k = 0; k < 4; ++k)
      std::copy_n(storage_.begin() + there[k] * 1000, 1000, memory_.begin() + here[k] * 1000);
  }
  StreamEnd end() { return {.memory = memory_, .original = storage_}; }

  const Spec spec_{.layout = {.targets = 0},
                   .rows = {{.op = OpKind::kRead, .block_bytes = 1000, .batch = 4}},
                   .verify = Verified::kFull};
  const std::vector<Stream> streams_ = streamsOf(spec_.layout, 1, false);
  const StreamContents contents_{spec_, spec_.rows[0], streams_, *deviceBytes(spec_), 7};
  std::vector<std::byte> memory_{4096}, storage_{4096};
};

TEST_F(OriginalContents, AreComparedWithTheStorage) {
  for (std::size_t i = 0; i < storage_.size(); ++i) storage_[i] = static_cast<std::byte>(i * 7);
  EXPECT_TRUE(*contents_.verify(end(), 1, contents_.all(0)));
  read();
  EXPECT_FALSE(*contents_.verify(end(), 1, contents_.all(0)));
  memory_[3999] ^= std::byte{1};
  const auto wrong = *contents_.verify(end(), 1, contents_.all(0));
  ASSERT_TRUE(wrong);
  EXPECT_TRUE(testing::has(*wrong, "from offset 999: the storage has other bytes there")) << *wrong;
}

// The memory of both ends of a write.
class SentContents : public ::testing::Test {
 protected:
  StreamEnd here() { return {.role = Role::kInitiator, .memory = source_}; }
  StreamEnd there() { return {.role = Role::kTarget, .memory = sink_}; }
  void send() {
    const auto from = blockOrder(4, spec_.seed, Role::kInitiator);
    const auto to = blockOrder(4, spec_.seed, Role::kTarget);
    for (std::size_t k = 0; k < 4; ++k)
      std::copy_n(source_.begin() + from[k] * 1000, 1000, sink_.begin() + to[k] * 1000);
  }
  // Gives words at the source new values.
  SetContents changed() {
    base::Random random(++dice_);
    SetContents out{.seed = 7, .epoch = 3, .changed = contents_.places(0, random)};
    for (ChangedWord& word : out.changed) word.value = random.next();
    EXPECT_TRUE(contents_.change(here(), 0, out.changed));
    return out;
  }
  bool alike() { return *contents_.sum(here(), 11, 0) == *contents_.sum(there(), 11, 0); }
  std::string difference(const SetContents& sent) {
    return contents_.differences(there(), sent)->value_or("");
  }

  const Spec spec_{.rows = {{.block_bytes = 1000, .batch = 4}}};
  const std::vector<Stream> streams_ = streamsOf(spec_.layout, 1, false);
  const StreamContents contents_{spec_, spec_.rows[0], streams_, *deviceBytes(spec_), 7};
  std::vector<std::byte> source_{4096}, sink_{4096};
  std::uint64_t dice_ = 0;
};

TEST_F(SentContents, HaveTheSameSumAtBothEnds) {
  ASSERT_TRUE(contents_.fill(here(), 3, contents_.all(0)));
  EXPECT_FALSE(alike());
  send();
  EXPECT_TRUE(alike());
  changed();
  EXPECT_FALSE(alike()) << "a transfer that is skipped";
  send();
  EXPECT_TRUE(alike());
}

TEST_F(SentContents, AreDescribedWhereTheyDiffer) {
  ASSERT_TRUE(contents_.fill(here(), 3, contents_.all(0)));
  send();
  const SetContents sent = changed();
  const std::vector<std::byte> before = sink_;
  EXPECT_TRUE(testing::has(difference(sent), "stale: an older word is there"));
  EXPECT_EQ(sink_, before);
  send();
  EXPECT_EQ(difference(sent), "");
  std::fill_n(sink_.begin(), 4000, std::byte{0});
  EXPECT_TRUE(testing::has(difference(sent), "block 0 of set 0 is wrong from offset 0: zeros"));
}

}  // namespace
}  // namespace viaduct::measure
