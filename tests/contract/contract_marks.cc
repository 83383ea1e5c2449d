// The contract: a mark comes after the data of its transfer, and no mark is lost.
#include <atomic>
#include <thread>

#include "contract/backend_contract.h"

namespace viaduct::testing {

TEST_P(BackendContract, AMarkComesAfterTheDataItAnnounces) {
  constexpr std::uint64_t kBytes = 200'000;
  const auto here = allocateAtA(kBytes);
  const auto there = allocateAtB(kBytes, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
  ASSERT_TRUE(transfer);
  constexpr std::uint32_t kMarks = 50;
  const auto in = b_->openMarks(*a_at_b_, {.number = 1, .marks = kMarks});
  ASSERT_TRUE(in) << in.error().text();
  for (std::uint32_t mark = 0; mark < kMarks; ++mark) {
    fill(*here, mark);
    ASSERT_TRUE(transfer->post({.mark = Mark{.stream = 1, .number = mark}}));
    // The test makes no call on the initiator until the mark has arrived.
    const Status arrived = in->wait(mark, 60s);
    ASSERT_TRUE(arrived) << arrived.error().text();
    ASSERT_TRUE(holds(*there, mark)) << mark;
    ASSERT_TRUE(transfer->wait(60s));
  }
}

// More marks than a ring of notes has room for, some of them before the stream is opened.
TEST_P(BackendContract, NoMarkOfSeveralThreadsIsLost) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint64_t kBytes = 64;
  const std::uint32_t marks = kThreads * (onGpus() ? 250 : 2500);  // fake GPUs are slow
  const auto here = allocateAtA(kThreads * kBytes);
  const auto there = allocateAtB(kThreads * kBytes, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  std::atomic<std::uint32_t> failed{0};
  std::vector<std::jthread> posters;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    posters.emplace_back([&, i] {
      auto transfer = plan(OpKind::kWrite, blocks(*here, kBytes, kBytes, kThreads, {i}),
                           blocks(*there, kBytes, kBytes, kThreads, {i}));
      for (std::uint32_t mark = i; mark < marks; mark += kThreads)
        if (!transfer || !transfer->post({.mark = Mark{.stream = 1, .number = mark}}) ||
            !transfer->wait(60s))
          ++failed;
    });
  const auto in = b_->openMarks(*a_at_b_, {.number = 1, .marks = marks});
  ASSERT_TRUE(in) << in.error().text();
  const Status arrived = in->waitCount(marks, 60s);
  posters.clear();
  EXPECT_EQ(failed, 0U);
  ASSERT_TRUE(arrived) << arrived.error().text();
  for (std::uint32_t mark = 0; mark < marks; ++mark) ASSERT_TRUE(in->has(mark)) << mark;
}

}  // namespace viaduct::testing
