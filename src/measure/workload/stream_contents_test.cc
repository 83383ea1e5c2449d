#include "measure/workload/stream_contents.h"

#include <gtest/gtest.h>

#include "support/text.h"

namespace viaduct::measure {
namespace {

// A read of storage whose bytes are the user's.
class OriginalContents : public ::testing::Test {
 protected:
  // Copies each block from its place at the storage to its place here.
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
  const StreamContents contents_{spec_, spec_.rows[0], streams_, *deviceBytes(spec_)};
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

TEST_F(OriginalContents, HaveSpotsThatATransferBrings) {
  storage_.assign(storage_.size(), std::byte{9});
  read();
  const SpotCheck check{.epoch = 5};
  EXPECT_FALSE(*contents_.verify(end(), check, 1));
  ASSERT_TRUE(contents_.spoil(end(), check));
  EXPECT_TRUE(*contents_.verify(end(), check, 1)) << "a transfer that is skipped";
  read();
  EXPECT_FALSE(*contents_.verify(end(), check, 1));
}

}  // namespace
}  // namespace viaduct::measure
