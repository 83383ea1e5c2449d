// The benchmark's contents in memory of a GPU, whose bytes the CPU cannot touch.
#include <gtest/gtest.h>

#include <cstring>

#include "cuda/memory.h"
#include "device/fake_cuda.h"
#include "measure/workload/stream_contents.h"
#include "support/text.h"

namespace viaduct::measure {
namespace {

class ContentsOnGpu : public ::testing::Test {
 protected:
  Gpu gpu(std::uint32_t first, std::uint32_t number = 0, Mode mode = Mode::kMg) {
    auto found =
        gpuOf({.others = {{"VIADUCT_CUDA_LIBRARY", testing::kFakeCuda}}}, mode, first, number);
    EXPECT_TRUE(found) << found.error().text();
    return *std::move(found);
  }
  StreamEnd end() { return {.memory = mirror_->bytes(), .mirror = mirror_.get()}; }
  unsigned char* device() { return testing::fakeCudaAlias(memory_->address()); }
  void forget() { std::ranges::fill(mirror_->bytes(), std::byte{0}); }

  const Spec spec_{.rows = {{.block_bytes = 1000, .batch = 4}}, .verify = Verified::kFull};
  const std::vector<Stream> streams_ = streamsOf(spec_.layout, 1, false);
  const StreamContents contents_{spec_, spec_.rows[0], streams_, *deviceBytes(spec_), 7};
  const Gpu gpu_ = gpu(1);
  const std::shared_ptr<const cuda::Allocation> memory_ = *cuda::Allocation::make(gpu_, 4096);
  const std::unique_ptr<Mirror> mirror_ = *Mirror::make(gpu_, memory_->address(), 4096);
};

TEST_F(ContentsOnGpu, AreFilledAndCheckedThere) {
  ASSERT_TRUE(contents_.fill(end(), 1, contents_.all(0)));
  forget();
  EXPECT_FALSE(*contents_.verify(end(), 1, contents_.all(0)));
  EXPECT_TRUE(*contents_.verify(end(), 2, contents_.all(0))) << "of another epoch";
  device()[1700] ^= 1;
  const Wrong wrong = *contents_.verify(end(), 1, contents_.all(0));
  ASSERT_TRUE(wrong);
  EXPECT_TRUE(testing::has(*wrong, "of set 0 is wrong from offset 700")) << *wrong;
}

TEST_F(ContentsOnGpu, ChangedWordsTouchNoOtherBytes) {
  ASSERT_TRUE(contents_.fill(end(), 1, contents_.all(0)));
  const std::string before(reinterpret_cast<const char*>(device()), 4000);
  base::Random random(5);
  std::vector<ChangedWord> words = contents_.places(0, random);
  std::vector<ChangedWord> old = words;
  for (ChangedWord& word : old)
    std::memcpy(&word.value, contents_.wordAt(end(), 0, word).data(), sizeof word.value);
  forget();
  ASSERT_TRUE(contents_.change(end(), 0, words));
  EXPECT_NE(std::string(reinterpret_cast<const char*>(device()), 4000), before);
  ASSERT_TRUE(contents_.change(end(), 0, old));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(device()), 4000), before);
}

TEST_F(ContentsOnGpu, OfADestinationAreCopiedToBeSummedUp) {
  ASSERT_TRUE(contents_.fill(end(), 1, contents_.all(0)));
  const WordSum sent = *contents_.sum(end(), 3, 0);
  StreamEnd sink = end();
  sink.role = Role::kTarget;
  forget();
  ASSERT_TRUE(contents_.sum(sink, 3, 0));
  EXPECT_EQ(*contents_.sum(end(), 3, 0), sent);
}

TEST_F(ContentsOnGpu, AreCopiedAtOnceWhereTheyLieClose) {
  const auto copies = [before = testing::fakeCudaCount("cuMemcpy")] {
    return testing::fakeCudaCount("cuMemcpy") - before;
  };
  ASSERT_TRUE(contents_.fill(end(), 1, contents_.all(0)));
  EXPECT_EQ(copies(), 1U) << "four blocks that touch";
  EXPECT_FALSE(*contents_.verify(end(), 1, contents_.all(0)));
  EXPECT_EQ(copies(), 2U);
  forget();
  const Contents words(Pattern{.seed = spec_.seed, .block_bytes = 8, .blocks = 9});
  const CellList apart = [&](const CellVisit& visit) {
    for (const std::size_t at : {0U, 3000U}) visit({.memory = mirror_->bytes().subspan(at, 8)});
    return Wrong();
  };
  EXPECT_TRUE(words.verify(apart, Verified::kFull, mirror_.get()));
  EXPECT_EQ(copies(), 4U) << "two words that lie far apart";
  EXPECT_EQ(mirror_->bytes()[1500], std::byte{0});
}

TEST_F(ContentsOnGpu, FailWithTheDriver) {
  ASSERT_TRUE(contents_.fill(end(), 1, contents_.all(0)));
  testing::fakeCudaFail("cuMemcpy", 1, 700);
  const auto checked = contents_.verify(end(), 1, contents_.all(0));
  ASSERT_FALSE(checked);
  EXPECT_TRUE(testing::has(checked.error().text(), "cuMemcpy")) << checked.error().text();
  testing::fakeCudaFail("cuMemcpy", 1, 700);
  EXPECT_FALSE(contents_.change(end(), 0, std::vector<ChangedWord>(1)));
}

TEST_F(ContentsOnGpu, AreOfTheGpuThatTheDeviceHas) {
  EXPECT_EQ(gpu(0, 1)->ordinal(), 1U);
  EXPECT_EQ(gpu(1, 0, Mode::kSg)->ordinal(), 1U);
  const auto none =
      gpuOf({.others = {{"VIADUCT_CUDA_LIBRARY", testing::kFakeCuda}}}, Mode::kMg, 0, 7);
  ASSERT_FALSE(none);
  EXPECT_TRUE(testing::has(none.error().text(), "there is no GPU 7; the driver shows 2"))
      << none.error().text();
}

}  // namespace
}  // namespace viaduct::measure
