// The contract: all bytes go to their places, and nowhere else.
#include <algorithm>
#include <numeric>
#include <thread>

#include "base/random.h"
#include "contract/backend_contract.h"
#include "host/rdma.h"
#include "support/bytes.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(seed);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

bool onlyNetworks(const Agent& agent) {
  return std::ranges::none_of(agent.backends(), [](const BackendInfo& backend) {
    return backend.open && backend.name != "ofi" && backend.name != "tcp" &&
           backend.name != "ucx" && backend.name != "staged";
  });
}

}  // namespace

TEST_P(BackendContract, ScatteredBlocksLandInTheirPlacesAndNowhereElse) {
  constexpr std::uint64_t kBytes = 1000, kStride = 1536, kCount = 900;
  const auto here = allocateAtA(kStride * kCount, {.label = "here"});
  const auto there = allocateAtB(kStride * kCount, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    const Pin& from = kind == OpKind::kWrite ? *here : *there;
    const Pin& into = kind == OpKind::kWrite ? *there : *here;
    fill(from, 1);
    fillWith(into, std::byte{0x5a});
    auto take = shuffled(kCount, 7);
    auto put = shuffled(kCount, 8);
    take.resize(kCount / 3);
    put.resize(kCount / 3);
    auto transfer = plan(kind, blocks(*here, kBytes, kStride, kCount, take),
                         blocks(*there, kBytes, kStride, kCount, put));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    const auto done = transfer->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    const Contents sent = contents(from), arrived = contents(into);
    std::vector<std::byte> expected(into.size(), std::byte{0x5a});
    for (std::size_t i = 0; i < take.size(); ++i) {
      const auto source = kind == OpKind::kWrite ? take[i] : put[i];
      const auto target = kind == OpKind::kWrite ? put[i] : take[i];
      std::memcpy(expected.data() + target * kStride, sent.bytes().data() + source * kStride,
                  kBytes);
    }
    EXPECT_TRUE(same(expected, arrived.bytes())) << opKindName(kind);
  }
}

TEST_P(BackendContract, PlainMemoryAndAllocatedMemoryMixBothWays) {
  const auto a_plain = a_->pin(plainAtA(300'000), "plain");
  const auto b_plain = b_->pin(plainAtB(300'000), "plain");
  const auto a_shared = allocateAtA(300'000, {.label = "shared"});
  const auto b_shared = allocateAtB(300'000, {.label = "shared"});
  ASSERT_TRUE(a_plain && b_plain && a_shared && b_shared);
  waitForPin(*b_at_a_, "shared");
  std::uint64_t salt = 0;
  for (const Pin* here : {&*a_plain, &*a_shared})
    for (const Pin* there : {&*b_plain, &*b_shared})
      for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
        fill(kind == OpKind::kWrite ? *here : *there, ++salt);
        auto transfer = plan(kind, whole(*here), whole(*there));
        ASSERT_TRUE(transfer) << transfer.error().text();
        ASSERT_TRUE(transfer->post());
        const auto done = transfer->wait(60s);
        ASSERT_TRUE(done) << done.error().text();
        EXPECT_TRUE(holds(kind == OpKind::kWrite ? *there : *here, salt));
      }
}

TEST_P(BackendContract, APlanIsPostedAgainAndAgain) {
  const auto here = allocateAtA(1 << 20);
  const auto there = allocateAtB(1 << 20, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer = plan(OpKind::kWrite, whole(*here), whole(*there));
  ASSERT_TRUE(transfer);
  for (std::uint64_t salt = 1; salt <= 20; ++salt) {
    fill(*here, salt);
    ASSERT_TRUE(transfer->post());
    const auto done = transfer->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    ASSERT_TRUE(holds(*there, salt)) << salt;
  }
}

TEST_P(BackendContract, ThePathNamesTheBackendAndEveryByte) {
  const auto here = allocateAtA(3 << 20);
  const auto there = allocateAtB(3 << 20, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  auto transfer =
      plan(OpKind::kWrite, whole(*here), whole(*there), {.require = "backend:" + backend()});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  std::uint64_t bytes = 0;
  for (const PathShare& share : carried(transfer->path())) {
    EXPECT_FALSE(share.way.empty());
    EXPECT_FALSE(share.rail.empty());
    bytes += share.bytes;
  }
  EXPECT_EQ(bytes, 3U << 20U);
}

TEST_P(BackendContract, ARequiredPathThatIsNotThereIsAnError) {
  const auto here = allocateAtA(4096);
  const auto there = allocateAtB(4096, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  std::vector<std::string> missing{"backend:carrier-pigeon", "same-host,rdma"};
  if (host::rdmaPorts().empty()) missing.emplace_back("rdma");
  for (const std::string& require : missing) {
    const auto planned = plan(OpKind::kWrite, whole(*here), whole(*there), {.require = require});
    ASSERT_FALSE(planned) << require;
    EXPECT_EQ(planned.error().code, Code::kUnsupported);
    EXPECT_FALSE(planned.error().remedy.empty());
  }
}

TEST_P(BackendContract, BothDirectionsAtOnceDoNotBlockEachOther) {
  const std::uint64_t kBytes = sized(24 << 20);
  const auto a_out = allocateAtA(kBytes), a_in = allocateAtA(kBytes, {.label = "in"});
  const auto b_out = allocateAtB(kBytes), b_in = allocateAtB(kBytes, {.label = "in"});
  ASSERT_TRUE(a_out && a_in && b_out && b_in);
  waitForPin(*b_at_a_, "in");
  waitForPin(*a_at_b_, "in");
  fill(*a_out, 1);
  fill(*b_out, 2);
  auto forth = plan(OpKind::kWrite, whole(*a_out), whole(*b_in));
  auto back = plan(*b_, *a_at_b_, OpKind::kWrite, whole(*b_out), whole(*a_in));
  ASSERT_TRUE(forth && back);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(forth->post());
    ASSERT_TRUE(back->post());
    const auto forth_done = forth->wait(60s), back_done = back->wait(60s);
    ASSERT_TRUE(forth_done) << forth_done.error().text();
    ASSERT_TRUE(back_done) << back_done.error().text();
  }
  EXPECT_TRUE(holds(*b_in, 1));
  EXPECT_TRUE(holds(*a_in, 2));
}

TEST_P(BackendContract, AnyThreadMayCall) {
  constexpr int kThreads = 4, kRounds = 50;
  constexpr std::uint64_t kPart = 64 << 10;
  const auto here = allocateAtA(kPart * kThreads);
  const auto there = allocateAtB(kPart * kThreads, {.label = "there"});
  ASSERT_TRUE(here && there);
  waitForPin(*b_at_a_, "there");
  fill(*here, 3);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const Selection mine{.blocks =
                               *Blocks::strided({.base = here->info().address +
                                                         kPart * static_cast<std::uint64_t>(t),
                                                 .bytes = kPart,
                                                 .count = 1})};
      const Selection theirs{.blocks =
                                 *Blocks::strided({.base = there->info().address +
                                                           kPart * static_cast<std::uint64_t>(t),
                                                   .bytes = kPart,
                                                   .count = 1})};
      auto transfer = plan(OpKind::kWrite, mine, theirs);
      ASSERT_TRUE(transfer) << transfer.error().text();
      for (int i = 0; i < kRounds; ++i) {
        ASSERT_TRUE(transfer->post());
        const auto done = transfer->wait(60s);
        ASSERT_TRUE(done) << done.error().text();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(holds(*there, 3));
}

TEST_P(BackendContract, AnAgentIsItsOwnPeer) {
  const auto here = allocateAtA(1 << 20, {.label = "here"});
  const auto there = allocate(*a_, subject().gpu_at_b, 1 << 20, {.label = "there"});
  ASSERT_TRUE(here && there);
  auto self = a_->self();
  ASSERT_TRUE(self) << self.error().text();
  const auto ready = self->ready(60s);
  ASSERT_TRUE(ready) << ready.error().text();
  fill(*here, 9);
  auto transfer = a_->plan(OpKind::kWrite, *self, whole(*here), whole(*there));
  if (onlyNetworks(*a_)) {
    ASSERT_FALSE(transfer);
    EXPECT_EQ(transfer.error().code, Code::kUnsupported);
    EXPECT_TRUE(has(transfer.error().cause, "no network reaches the agent's own memory"))
        << transfer.error().text();
    return;
  }
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post({.note = std::as_bytes(std::span("to myself", 9))}));
  const auto done = transfer->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(holds(*there, 9));
  const auto note = a_->waitNote(60s);
  ASSERT_TRUE(note) << note.error().text();
  EXPECT_EQ(note->text(), "to myself");
  EXPECT_EQ(note->from, "a");
}

}  // namespace viaduct::testing
