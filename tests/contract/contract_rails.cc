// The contract: over several rails every byte arrives once, even if rails fail, and the path names
// the rails and their shares.
#include <algorithm>

#include "contract/backend_contract.h"
#include "support/bytes.h"

namespace viaduct::testing {

namespace {

std::uint64_t total(const std::vector<PathShare>& shares) {
  std::uint64_t bytes = 0;
  for (const PathShare& share : shares) bytes += share.bytes;
  return bytes;
}

}  // namespace

TEST_P(BackendContract, SeveralRailsTogetherCarryEveryByteOnce) {
  base_.sockets = 4;
  fake_ = "rails=4";
  if (backend() == "fake") inject("delay=0s@0.3");  // so that ops overtake each other
  open();
  const std::uint64_t kMost = sized(24 << 20);
  const auto here = allocateAtA(kMost);
  const auto there = allocateAtB(kMost, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  std::uint64_t salt = 0;
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (const std::uint64_t bytes : {8UL, 16384UL, 32768UL, 49152UL, 200'000UL, kMost}) {
      const Pin& from = kind == OpKind::kWrite ? *here : *there;
      const Pin& into = kind == OpKind::kWrite ? *there : *here;
      comeBehindTheAgents();
      fill(from, ++salt);
      auto transfer = plan(kind, blocks(*here, bytes, bytes, 1), blocks(*there, bytes, bytes, 1));
      ASSERT_TRUE(transfer) << transfer.error().text();
      for (int again = 0; again < 3; ++again) {
        fillWith(into, std::byte{0});
        ASSERT_TRUE(transfer->post());
        const auto done = transfer->wait(60s);
        ASSERT_TRUE(done) << done.error().text();
        comeBehindTheAgents();
        EXPECT_TRUE(holds(into, salt, {.bytes = bytes})) << bytes;
        EXPECT_TRUE(allAre(contents(into, {.offset = bytes}).bytes(), std::byte{0}));
        const Path path = transfer->path();
        EXPECT_EQ(total(carried(path)), bytes) << path.text();
        EXPECT_LE(carried(path).size(), std::max<std::uint64_t>(1, bytes / 16384)) << path.text();
      }
    }
}

TEST_P(BackendContract, OtherRailsCarryTheSlicesOfABrokenRail) {
  constexpr std::uint64_t kBytes = 3 << 20;
  int done = 0, ended = 0;
  fake_ = "rails=4";
  if (backend() == "ofi" || backend() == "ucx") base_.rails.assign(4, "lo");
  const int seeds = backend() == "fake" ? 10 : 2;
  for (int seed = 1; seed <= seeds; ++seed) {
    inject("delay=0s@0.1,drop-rail=2ms@0.02,seed=" + std::to_string(seed));
    open();
    if (railsOf(*a_) < 4) GTEST_SKIP() << "skipped: fewer than four rails";
    const auto here = allocateAtA(kBytes);
    const auto there = allocateAtB(kBytes, {.label = "there"});
    ASSERT_TRUE(here && there);
    waitForPin(*b_at_a_, "there");
    auto write = plan(OpKind::kWrite, whole(*here), whole(*there));
    ASSERT_TRUE(write) << write.error().text();
    for (std::uint64_t salt = 1; salt <= 20; ++salt, ++ended) {
      fill(*here, salt);
      ASSERT_TRUE(write->post());
      if (const auto ends = write->wait(60s); !ends) {
        EXPECT_EQ(ends.error().code, Code::kDevice) << ends.error().text();
        continue;
      }
      ++done;
      ASSERT_TRUE(holds(*there, salt));
      EXPECT_EQ(total(carried(write->path())), kBytes) << write->path().text();
    }
  }
  // A transfer fails only if all four rails are broken at once.
  EXPECT_GE(done, ended * 9 / 10);
}

TEST_P(BackendContract, StripingIsTurnedOnAndOff) {
  constexpr std::uint64_t kBytes = 1 << 20;
  fake_ = "rails=4";
  base_.sockets = 4;
  base_.striping = Toggle::kOff;
  open();
  int made = 0;
  const auto shares = [&](std::uint64_t bytes) {
    const std::string label = "there" + std::to_string(++made);
    const auto here = allocateAtA(kBytes);
    const auto there = allocateAtB(kBytes, {.label = label});
    waitForPin(*b_at_a_, label);
    auto transfer =
        plan(OpKind::kWrite, blocks(*here, bytes, bytes, 1), blocks(*there, bytes, bytes, 1));
    EXPECT_TRUE(transfer && transfer->post() && transfer->wait(60s));
    return carried(transfer->path()).size();
  };
  EXPECT_EQ(shares(kBytes), 1U);
  base_.striping = Toggle::kOn;
  open();
  const std::size_t all = shares(kBytes);
  EXPECT_EQ(shares(16384), all) << "as many as a long one";
  base_.striping = Toggle::kAuto;
  base_.min_chunk = 256 << 10;
  open();
  EXPECT_EQ(shares(400 << 10), 1U);
}

}  // namespace viaduct::testing
