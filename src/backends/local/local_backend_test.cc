// Tests the local backend between two agents of one process: direct copies, registrations that are
// withdrawn, works that are cancelled, links that close.
#include "backends/local/local_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/shared_memory.h"
#include "base/wide_copy.h"
#include "core/sink_testing.h"
#include "support/bytes.h"
#include "support/link_pair.h"
#include "support/shortage.h"

namespace viaduct::local {
namespace {

using core::Failed;
using core::Moved;
using core::Op;
using core::Work;

// Two backends on one host, one of which runs out of file descriptors.
TEST(LocalShortage, AnEndWithoutDescriptorsSaysSoAndEndsThePeersLink) {
  const auto poller = std::move(*base::Poller::open());
  const Settings settings;
  const auto poor = std::move(*open({settings, *poller})),
             rich = std::move(*open({settings, *poller}));
  core::LinkSeed seed;
  seed.same_host = seed.unix_socket = true;
  seed.pid = ::getpid();
  testing::LinkEnd here, there;
  {
    const testing::Shortage none;
    here.link = poor->link(seed, here);
  }
  there.link = rich->link(seed, there);
  using Phase = core::LinkState::Phase;
  EXPECT_EQ(here.link->state().phase, Phase::kUnusable);
  EXPECT_TRUE(here.link->state().exhausted);
  for (auto& letter : here.sent) there.link->receive(letter.bytes, std::move(letter.fds));
  EXPECT_EQ(there.link->state().phase, Phase::kUnusable) << "it would wait for a hello";
  EXPECT_FALSE(there.link->state().exhausted);
  core::Completions done;
  for (const auto* end : {&here, &there}) end->link->close(done);
}

class LocalDirect : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = std::uint64_t{32} << 20U;
  static constexpr std::uint32_t kHere = 3, kThere = 40;  // 40: beyond the first table

  void SetUp() override {
    settings_.copy_threads = threads();
    poller_ = std::move(*base::Poller::open());
    a_ = std::move(*open({settings_, *poller_}));
    b_ = std::move(*open({settings_, *poller_}));
    pair_.emplace(*a_, *b_, *poller_, seed());
    ASSERT_TRUE(pair_->run([&] { return pair_->ready(); }));
    here_.resize(kBytes);
    there_.resize(kBytes);
    pair_->pin(1, kThere, Segment::host(there_.data(), kBytes));
    ASSERT_TRUE(a_->pin(kHere, Segment::host(here_.data(), kBytes)));
    base::Random random(7);
    for (std::size_t i = 0; i < kBytes; i += 8) {
      const std::uint64_t word = random.next();
      std::memcpy(here_.data() + i, &word, 8);
    }
  }
  virtual std::uint32_t threads() { return 2; }
  core::LinkSeed seed() {
    core::LinkSeed seed;
    seed.epoch = 1;
    seed.same_process = seed.same_host = true;
    seed.pid = ::getpid();
    return seed;
  }

  core::Rail& rail() { return *a_->rails().front(); }
  core::Link& link() { return *pair_->ends[0].link; }
  Op op(std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
    return {.local = reinterpret_cast<std::uintptr_t>(here_.data()) + from,
            .remote = reinterpret_cast<std::uintptr_t>(there_.data()) + to,
            .bytes = bytes,
            .local_pin = kHere,
            .remote_pin = kThere};
  }
  std::size_t post(std::vector<Op> ops, OpKind kind = OpKind::kWrite, std::uint64_t number = 1) {
    posted_.push_back(std::move(ops));  // the ops stay until they have come back
    return rail().post({.kind = kind,
                        .slice = core::testing::sliceOf(number),
                        .link = &link(),
                        .ops = posted_.back()});
  }
  std::uint64_t back() const {
    std::uint64_t ops = 0;
    for (const auto& done : pair_->done[0]) ops += core::endedOps(done);
    return ops;
  }
  const Failed* failure() const {
    for (const auto& done : pair_->done[0])
      if (const auto* failed = std::get_if<Failed>(&done)) return failed;
    return nullptr;
  }
  bool finish(std::uint64_t ops) {
    return pair_->run([&] { return back() == ops; }, std::chrono::seconds(20));
  }

  Settings settings_;
  std::unique_ptr<base::Poller> poller_;
  std::unique_ptr<core::Backend> a_, b_;
  std::optional<testing::LinkPair> pair_;
  std::vector<std::byte> here_, there_;
  std::deque<std::vector<Op>> posted_;
};

// With one thread, only post() and poll() copy.
class LocalAlone : public LocalDirect {
  std::uint32_t threads() override { return 1; }
};

TEST_F(LocalDirect, NamesTheWayToThePeer) {
  EXPECT_EQ(link().state().text, "direct");
  EXPECT_EQ(link().reaches(OpKind::kWrite, kHere, kThere), "direct");
  EXPECT_FALSE(link().reaches(OpKind::kWrite, kHere + 1, kThere));
  EXPECT_FALSE(link().reaches(OpKind::kWrite, kHere, kThere + 1));
  EXPECT_FALSE(link().reaches(OpKind::kWrite, kHere, 0xffffffffU));
  EXPECT_TRUE(link().servedBy(rail()));
  EXPECT_FALSE(link().servedBy(*b_->rails().front()));
}

// A test of moves by the calling thread, with and without helpers.
class LocalMoves : public LocalDirect, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  using Outcome = core::DirectMover::Outcome;
  std::uint32_t threads() override { return GetParam(); }
  // Ops of several chunks, of one chunk, and of a few bytes.
  std::vector<Op> ops() {
    constexpr std::uint64_t kMiB = 1 << 20;
    return {op(0, 256, 2 * kMiB), op(2 * kMiB, 3 * kMiB, 8), op(3 * kMiB, 4 * kMiB, kMiB)};
  }
  Outcome move(const std::vector<Op>& ops, bool pauses) {
    pause_ = pauses;
    return rail().direct()->moveNow({.kind = OpKind::kWrite, .link = &link(), .ops = ops}, so_far_,
                                    pause_);
  }
  void expectMoved(const std::vector<Op>& ops) {
    std::uint64_t bytes = 0;
    for (const Op& op : ops) {
      bytes += op.bytes;
      EXPECT_EQ(std::memcmp(pointerTo(op.local), pointerTo(op.remote), op.bytes), 0);
    }
    EXPECT_EQ(so_far_.bytes, bytes);
  }

  core::DirectMover::Progress so_far_;
  std::atomic<bool> pause_{false};
};
INSTANTIATE_TEST_SUITE_P(Threads, LocalMoves, ::testing::Values(1U, 2U));

TEST_P(LocalMoves, MoveSeveralChunksInOneCall) {
  const auto all = ops();
  ASSERT_TRUE(rail().direct()->fits(all));
  EXPECT_EQ(move(all, false), Outcome::kMoved);
  expectMoved(all);
  EXPECT_FALSE(rail().busy());
}

TEST_P(LocalMoves, PauseAfterAChunkAndGoOnThere) {
  const auto all = ops();
  int calls = 1;
  for (; move(all, true) == Outcome::kPaused; ++calls) {
    const std::vector<std::byte> paused = there_;
    std::this_thread::yield();
    EXPECT_EQ(there_, paused) << "a thread copies during a pause";
  }
  if (GetParam() == 1) {
    EXPECT_GT(calls, 2) << "there is no helper that may copy the rest during the first chunk";
  }
  expectMoved(all);
}

TEST_P(LocalMoves, FailIfTheMemoryIsWithdrawnInAPause) {
  const auto all = ops();
  const Outcome first = move(all, true);
  ASSERT_TRUE(a_->unpin(kHere));
  if (GetParam() == 1) {
    ASSERT_EQ(first, Outcome::kPaused);
  }
  if (first == Outcome::kPaused) {
    EXPECT_EQ(move(all, false), Outcome::kFailed);
  }
  // The place in the pool is free again.
  ASSERT_TRUE(a_->pin(kHere, Segment::host(here_.data(), kBytes)));
  so_far_ = {};
  EXPECT_EQ(move(all, false), Outcome::kMoved);
  expectMoved(all);
}

TEST_P(LocalMoves, RunInSeveralThreadsBesidePostedWork) {
  constexpr std::uint64_t kMiB = 1 << 20;
  ASSERT_EQ(post({op(24 * kMiB, 24 * kMiB, 8 * kMiB)}), 1U);
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 0; i < 3; ++i)
    threads.emplace_back([&, mine = std::vector{op(i * 4 * kMiB, i * 4 * kMiB, 4 * kMiB)}] {
      for (int round = 0; round < 10; ++round) {
        core::DirectMover::Progress so_far;
        const std::atomic<bool> never{false};
        EXPECT_EQ(rail().direct()->moveNow({.kind = OpKind::kWrite, .link = &link(), .ops = mine},
                                           so_far, never),
                  Outcome::kMoved);
        EXPECT_EQ(so_far.bytes, 4 * kMiB);
      }
    });
  ASSERT_TRUE(finish(1));
  threads.clear();
  EXPECT_EQ(std::memcmp(there_.data(), here_.data(), 12 * kMiB), 0);
  EXPECT_EQ(std::memcmp(there_.data() + 24 * kMiB, here_.data() + 24 * kMiB, 8 * kMiB), 0);
}

TEST_F(LocalDirect, LargeWorkIsNotMovedByTheCallingThreadAlone) {
  EXPECT_FALSE(rail().direct()->fits(std::vector{op(0, 0, (4 << 20) + 1)}));
  EXPECT_FALSE(rail().direct()->fits(std::vector<Op>((16 << 10) + 1, op(0, 0, 1))));
}

TEST_F(LocalDirect, SmallWorkIsDoneInsidePost) {
  ASSERT_EQ(post({op(8, 16, 8)}), 1U);
  EXPECT_EQ(std::memcmp(there_.data() + 16, here_.data() + 8, 8), 0);
  EXPECT_TRUE(rail().busy());  // its completion waits for poll()
  core::Completions out;
  rail().poll(out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(std::get<Moved>(out[0]).bytes, 8U);
  EXPECT_FALSE(rail().busy());
}

TEST_F(LocalDirect, ScatteredUnequalBlocksBothWays) {
  base::Random random(3);
  std::vector<Op> ops;
  std::uint64_t from = 0, to = kBytes / 2, bytes = 0;
  while (true) {  // lengths from 1 byte to some chunks, at odd addresses
    const std::uint64_t length = 1 + random.below(random.chance(0.05) ? 900'000 : 9'000);
    if (from + length > kBytes / 2 || to + length + 64 > kBytes) break;
    ops.push_back(op(from, to, length));
    from += length, to += length + random.below(64), bytes += length;
  }
  std::shuffle(ops.begin(), ops.end(), std::mt19937_64(1));
  ASSERT_EQ(post(ops), ops.size());
  ASSERT_TRUE(finish(ops.size()));
  EXPECT_EQ(std::get<Moved>(pair_->done[0][0]).bytes, bytes);
  for (const Op& o : ops)
    ASSERT_EQ(
        std::memcmp(reinterpret_cast<void*>(o.local), reinterpret_cast<void*>(o.remote), o.bytes),
        0);
  // Bytes outside the blocks are unchanged.
  std::vector<std::byte> expected(kBytes);
  for (const Op& o : ops)
    std::memcpy(expected.data() + (o.remote - reinterpret_cast<std::uintptr_t>(there_.data())),
                reinterpret_cast<void*>(o.local), o.bytes);
  ASSERT_EQ(std::memcmp(expected.data(), there_.data(), kBytes), 0);

  testing::fillWith(here_, std::byte{0});
  ASSERT_EQ(post(ops, OpKind::kRead, 2), ops.size());
  ASSERT_TRUE(finish(2 * ops.size()));
  for (const Op& o : ops)
    ASSERT_EQ(
        std::memcmp(reinterpret_cast<void*>(o.local), reinterpret_cast<void*>(o.remote), o.bytes),
        0);
}

TEST_F(LocalDirect, OneHugeOpIsSharedOut) {
  ASSERT_EQ(post({op(3, 5, kBytes - 8)}), 1U);
  ASSERT_TRUE(finish(1));
  EXPECT_EQ(std::memcmp(there_.data() + 5, here_.data() + 3, kBytes - 8), 0);
  EXPECT_EQ(there_[4], std::byte{0});
  EXPECT_EQ(there_[kBytes - 2], std::byte{0});
}

TEST_F(LocalAlone, ATakenOpComesBackExactlyOnceWhateverTheRailTakes) {
  const std::vector<Op> ops{op(0, 0, 4096), op(8192, 8192, 1 << 20)};
  std::uint64_t taken = 0;
  for (std::uint64_t number = 1; number <= 200; ++number) {
    const std::size_t took = post(ops, OpKind::kWrite, number);
    if (took == 0) {
      ASSERT_GE(taken, 64U);
      break;
    }
    taken += took;
  }
  ASSERT_LT(taken, 400U) << "the queue has no end";
  ASSERT_TRUE(finish(taken));
  for (int i = 0; i < 10; ++i) pair_->progress();
  EXPECT_EQ(back(), taken);
  EXPECT_EQ(failure(), nullptr);
}

TEST_F(LocalAlone, CancelReturnsTheOpsThatNobodyHasStarted) {
  std::vector<Op> ops;
  for (std::uint64_t at = 0; at < kBytes; at += 4096) ops.push_back(op(at, at, 4096));
  ASSERT_EQ(post(ops), ops.size());
  rail().cancel(core::testing::sinkOf(1));
  ASSERT_TRUE(finish(ops.size()));
  ASSERT_NE(failure(), nullptr);
  EXPECT_EQ(failure()->why.code, Code::kCancelled);
  // The work is over: nothing of it is written over these new bytes.
  testing::fillWith(there_, std::byte{0xee});
  for (int i = 0; i < 100; ++i) pair_->progress();
  EXPECT_TRUE(testing::allAre(there_, std::byte{0xee}));
}

TEST_F(LocalDirect, CancelOfAnUnknownSinkDoesNothing) {
  ASSERT_EQ(post({op(0, 0, kBytes)}), 1U);
  rail().cancel(core::testing::sinkOf(99));
  ASSERT_TRUE(finish(1));
  EXPECT_EQ(failure(), nullptr);
}

TEST_F(LocalDirect, OpsBeyondTheRegistrationAreRefused) {
  for (const Op& bad : {op(0, kBytes - 4, 8), op(0, kBytes + 4096, 8), op(0, 0, kBytes + 1),
                        op(0, ~std::uint64_t{0} - 100, 8), op(0, 8, ~std::uint64_t{0} - 4)}) {
    pair_->done[0].clear();
    ASSERT_EQ(post({bad}), 1U);
    ASSERT_TRUE(finish(1));
    ASSERT_NE(failure(), nullptr);
    EXPECT_EQ(failure()->why.code, Code::kInvalid);
  }
}

TEST_F(LocalDirect, WithdrawnMemoryIsRefusedOnEitherSide) {
  const auto refused = [&](const Op& o) {
    pair_->done[0].clear();
    EXPECT_EQ(post({o}), 1U);
    EXPECT_TRUE(finish(1));
    return failure() != nullptr && failure()->why.code == Code::kDenied;
  };
  ASSERT_TRUE(testing::withdraw(*b_, kThere));  // the other end has not got the announcement yet
  EXPECT_TRUE(refused(op(0, 0, 8)));
  pair_->pin(1, kThere, Segment::host(there_.data(), kBytes));
  EXPECT_FALSE(refused(op(0, 0, 8)));
  ASSERT_TRUE(testing::withdraw(*a_, kHere));
  EXPECT_TRUE(refused(op(0, 0, 8)));
  EXPECT_FALSE(link().reaches(OpKind::kWrite, kHere, kThere));
  pair_->ends[0].link->dropPin(kThere);
  EXPECT_FALSE(link().reaches(OpKind::kWrite, kHere, kThere));
}

TEST_F(LocalAlone, AnEarlierPostCannotUseAReusedSlot) {
  const std::vector<Op> ops(8192, op(0, 0, 4096));  // 32 MiB: too much for post() to copy itself
  ASSERT_EQ(post(ops), ops.size());
  ASSERT_TRUE(testing::withdraw(*a_, kHere));
  ASSERT_TRUE(a_->pin(kHere, Segment::host(here_.data(), kBytes)));
  ASSERT_TRUE(finish(ops.size()));
  ASSERT_NE(failure(), nullptr);
  EXPECT_EQ(failure()->why.code, Code::kDenied);
}

TEST_F(LocalDirect, UnpinDuringTrafficLeavesTheMemoryAlone) {
  std::vector<Op> ops;
  for (std::uint64_t at = 0; at < kBytes; at += 4096) ops.push_back(op(at, at, 4096));
  for (int round = 0; round < 20; ++round) {
    pair_->done[0].clear();
    ASSERT_EQ(post(ops), ops.size());
    if (round % 2 == 1) pair_->progress();
    ASSERT_TRUE(testing::withdraw(*b_, kThere));
    testing::fillWith(there_, std::byte{0xdd});
    ASSERT_TRUE(finish(ops.size()));
    ASSERT_TRUE(testing::allAre(there_, std::byte{0xdd}));
    pair_->pin(1, kThere, Segment::host(there_.data(), kBytes));
  }
}

TEST_F(LocalDirect, CloseReturnsEverythingAndEndsAllAccess) {
  ASSERT_EQ(post({op(8, 8, kBytes - 8)}), 1U);
  ASSERT_EQ(post({op(0, 0, 8)}, OpKind::kWrite, 2), 1U);
  core::Completions out;
  link().close(out);
  std::uint64_t ops = 0;
  for (const auto& done : out) ops += core::endedOps(done);
  EXPECT_EQ(ops, 2U);
  testing::fillWith(there_, std::byte{0xcc});
  EXPECT_EQ(post({op(0, 0, 8)}), 0U);
  for (int i = 0; i < 10; ++i) pair_->progress();
  EXPECT_TRUE(testing::allAre(there_, std::byte{0xcc}));
  EXPECT_TRUE(link().settled());
  EXPECT_EQ(link().state().phase, core::LinkState::Phase::kUnusable);
}

TEST_F(LocalDirect, TheOwnersFenceStopsTheInitiator) {
  core::Completions out;
  pair_->ends[1].link->close(out);  // the owner's agent has lost us, and we do not know yet
  ASSERT_EQ(post({op(0, 0, kBytes)}), 1U);
  ASSERT_TRUE(finish(1));
  ASSERT_NE(failure(), nullptr);
  EXPECT_EQ(failure()->why.code, Code::kPeerLost);
  EXPECT_EQ(failure()->why.peer, "b");
  EXPECT_TRUE(testing::allAre(there_, std::byte{0}));
  EXPECT_TRUE(pair_->ends[1].link->settled());
}

TEST_F(LocalDirect, SeveralWorksShareTheCopyPool) {
  // The short work does not wait until the long one is over.
  std::vector<Op> lengthy;
  for (int i = 0; i < 64; ++i) lengthy.push_back(op(0, 0, kBytes));
  ASSERT_EQ(post(lengthy, OpKind::kRead, 1), lengthy.size());
  ASSERT_EQ(post({op(0, 0, 1 << 20)}, OpKind::kRead, 2), 1U);
  ASSERT_TRUE(pair_->run([&] { return !pair_->done[0].empty(); }, std::chrono::seconds(20)));
  EXPECT_EQ(std::get<Moved>(pair_->done[0][0]).slice.number, 2U);
  rail().cancel(core::testing::sinkOf(1));
  ASSERT_TRUE(finish(65));
}

TEST_F(LocalDirect, AnEndOfItselfIsAPeerToo) {
  testing::LinkPair self(*a_, *a_, *poller_, seed());
  ASSERT_TRUE(self.run([&] { return self.ready(); }));
  self.pin(1, 7, Segment::host(there_.data(), kBytes));
  Op o = op(0, 0, kBytes);
  o.remote_pin = 7;
  ASSERT_EQ(rail().post({.slice = core::testing::sliceOf(5),
                         .link = self.ends[0].link.get(),
                         .ops = std::span(&o, 1)}),
            1U);
  ASSERT_TRUE(self.run([&] { return self.done[0].size() + self.done[1].size() == 1; }));
  EXPECT_EQ(std::memcmp(there_.data(), here_.data(), kBytes), 0);
  EXPECT_TRUE(testing::withdraw(*a_, 7));
}

class LocalUnusable : public LocalDirect {
  void SetUp() override {}
};

TEST_F(LocalUnusable, WithoutAWayItSaysWhy) {
  poller_ = std::move(*base::Poller::open());
  a_ = std::move(*open({settings_, *poller_}));
  testing::LinkEnd host;
  const auto remote = a_->link({}, host);
  EXPECT_EQ(remote->state().phase, core::LinkState::Phase::kUnusable);
  EXPECT_FALSE(remote->state().text.empty());
  EXPECT_TRUE(host.sent.empty());
  core::LinkSeed seed;
  seed.same_host = true;
  const auto no_unix = a_->link(seed, host);
  EXPECT_EQ(no_unix->state().phase, core::LinkState::Phase::kUnusable);
  EXPECT_NE(no_unix->state().text.find("Unix socket"), std::string::npos);
  core::Completions out;
  remote->close(out);
  no_unix->close(out);
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(remote->settled());
}

TEST(WideCopy, CopiesEveryLengthAndAlignment) {
  std::vector<std::byte> from(5000), to(5000);
  base::Random random(11);
  for (auto& byte : from) byte = static_cast<std::byte>(random.next());
  for (int round = 0; round < 3000; ++round) {
    const std::size_t a = random.below(200), b = random.below(200);
    const std::size_t bytes = random.below(from.size() - 200);
    testing::fillWith(to, std::byte{0x5a});
    base::copyWide(to.data() + b, from.data() + a, bytes);
    base::finishWide();
    ASSERT_EQ(std::memcmp(to.data() + b, from.data() + a, bytes), 0);
    ASSERT_TRUE(b == 0 || to[b - 1] == std::byte{0x5a});
    ASSERT_EQ(to[b + bytes], std::byte{0x5a});
  }
}

TEST(Gate, CountsEntriesBeforeATurnSeparately) {
  Gate gate;
  const auto before = gate.enter();
  const auto leaving = gate.turn();
  const auto after = gate.enter();
  EXPECT_FALSE(gate.left(leaving));
  gate.leave(before);
  EXPECT_TRUE(gate.left(leaving));  // later entries are not waited for
  EXPECT_FALSE(gate.empty());
  gate.leave(after);
  EXPECT_TRUE(gate.empty());
}

class OwnGateTest : public ::testing::Test {
 protected:
  std::shared_ptr<OwnGate> own_ = *OwnGate::make("peer", 1);
  Gate& gate_ = own_->gate();
};

TEST_F(OwnGateTest, AWithdrawalWaitsOnlyForEarlierEntries) {
  const auto before = gate_.enter();
  const auto turn = own_->withdraw();
  EXPECT_FALSE(own_->left(turn));
  EXPECT_FALSE(own_->settled());
  const auto after = gate_.enter();
  gate_.leave(before);
  EXPECT_TRUE(own_->left(turn));
  EXPECT_TRUE(own_->settled()) << "who is inside now can only be at memory that is pinned";
  gate_.leave(after);
}

TEST_F(OwnGateTest, AWithdrawalDuringAnotherWaitsForEntriesBetweenTheTwo) {
  const auto stuck = gate_.enter();
  const auto first = own_->withdraw();
  const auto between = gate_.enter();
  const auto second = own_->withdraw();
  const auto third = own_->withdraw();
  const auto after = gate_.enter();
  gate_.leave(stuck);
  EXPECT_TRUE(own_->left(first));
  EXPECT_FALSE(own_->left(second));
  EXPECT_FALSE(own_->settled());
  gate_.leave(after);
  EXPECT_FALSE(own_->left(third));
  gate_.leave(between);
  EXPECT_TRUE(own_->left(second));
  EXPECT_TRUE(own_->left(third));
  EXPECT_TRUE(own_->settled());
}

// Two threads of a busy peer overlap, so that one of them is always inside.
TEST_F(OwnGateTest, AWithdrawalEndsThoughThePeerNeverPauses) {
  auto inside = gate_.enter();
  for (int i = 0; i < 10; ++i) {
    const auto one = own_->withdraw();
    const auto two = own_->withdraw();
    for (int turn = 0; turn < 2; ++turn) {
      const auto next = gate_.enter();
      gate_.leave(inside);
      inside = next;
      static_cast<void>(own_->left(two));
    }
    EXPECT_TRUE(own_->left(one));
    EXPECT_TRUE(own_->left(two));
    EXPECT_TRUE(own_->settled());
  }
}

TEST_F(OwnGateTest, IsStuckFromAWaitInVainUntilEarlierChunksEnd) {
  const auto frozen = gate_.enter();
  const auto turn = own_->withdraw();
  EXPECT_FALSE(own_->stuck());
  own_->giveUp();
  EXPECT_TRUE(own_->stuck());
  own_->withdraw();
  EXPECT_TRUE(own_->stuck());
  const auto goes_on = gate_.enter();
  gate_.leave(frozen);
  EXPECT_TRUE(own_->left(turn));
  EXPECT_FALSE(own_->stuck()) << "it runs";
  gate_.leave(goes_on);
}

TEST_F(OwnGateTest, AFencedGateIsSettledOnceItIsEmpty) {
  const auto inside = gate_.enter();
  const auto turn = own_->withdraw();
  const auto after = gate_.enter();
  own_->fence();
  gate_.leave(inside);
  EXPECT_TRUE(own_->left(turn));
  EXPECT_FALSE(own_->settled());
  gate_.leave(after);
  EXPECT_TRUE(own_->settled());
}

TEST(Gate, RefusesEntriesOnceFenced) {
  Gate gate;
  const auto inside = gate.enter();
  gate.fence();
  EXPECT_FALSE(gate.enter());
  EXPECT_FALSE(gate.empty());
  gate.leave(inside);
  EXPECT_TRUE(gate.empty());
}

// Enough threads to use every word of a gate.
TEST(Gate, CountsTheEntriesOfEveryThread) {
  Gate gate;
  const auto enter = [&gate] {
    Gate::Pass pass;
    std::thread([&] { pass = gate.enter(); }).join();
    return pass;
  };
  std::vector<Gate::Pass> before, after;
  for (int i = 0; i < 16; ++i) before.push_back(enter());
  const auto leaving = gate.turn();
  for (int i = 0; i < 16; ++i) after.push_back(enter());
  for (const Gate::Pass& pass : before) {
    EXPECT_FALSE(gate.left(leaving));
    gate.leave(pass);
  }
  EXPECT_TRUE(gate.left(leaving));
  gate.fence();
  for (int i = 0; i < 16; ++i) EXPECT_FALSE(enter());
  for (const Gate::Pass& pass : after) {
    EXPECT_FALSE(gate.empty());
    gate.leave(pass);
  }
  EXPECT_TRUE(gate.empty());
}

std::size_t mappedFiles() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:") != std::string::npos) ++count;
  return count;
}

TEST(LocalLives, ThatAreOverLeaveNothingMapped) {
  const Settings settings;
  const auto poller = std::move(*base::Poller::open());
  const auto backend = std::move(*open({settings, *poller}));
  const std::size_t before = mappedFiles();
  for (int i = 0; i < 50; ++i) {
    testing::LinkEnd host;
    core::LinkSeed seed;
    seed.same_host = seed.unix_socket = true;
    const auto link = backend->link(seed, host);
    core::Completions out;
    link->close(out);
  }
  EXPECT_LE(mappedFiles(), before + 2);
}

}  // namespace
}  // namespace viaduct::local
