// The contract of backends over fabric libraries, tested at their links: fences, breaks and
// cancels. Here the libraries use TCP.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/sink_testing.h"
#include "move/fabric_backend.h"
#include "move/fabric_link.h"
#include "support/bytes.h"
#include "support/link_pair.h"
#include "support/ofi.h"

namespace viaduct::move {
namespace {

using core::Op;
using testing::LinkPair;
using Phase = core::LinkState::Phase;

class FabricContract : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::uint64_t kBytes = 16 << 20;
  // These are far more ops than are in flight at once, but a software device moves them in seconds.
  static constexpr std::size_t kMostOps = 16384;

  void SetUp() override {
    settings_.backends = {GetParam()};
    settings_.ofi_provider = testing::ofiProvider();
    const auto catalogue = core::backendCatalogue();
    const auto entry =
        std::find_if(catalogue.begin(), catalogue.end(),
                     [](const core::BackendEntry& one) { return one.name == GetParam(); });
    for (auto* one : {&a_, &b_}) {
      auto opened = entry->open({settings_, *poller_});
      ASSERT_TRUE(opened) << opened.error().text();
      *one = std::move(*opened);
    }
    core::LinkSeed seed;
    seed.epoch = 1;
    seed.same_host = true;
    pair_.emplace(*a_, *b_, *poller_, seed);
    ASSERT_TRUE(pair_->run([&] { return pair_->ready(); }, std::chrono::seconds(5)))
        << link(0).state().text << " / " << link(1).state().text;
    here_.assign(kBytes, std::byte{1});
    there_.assign(kBytes, std::byte{2});
    pair_->pin(0, 0, Segment::host(here_.data(), kBytes));
    pair_->pin(1, 0, Segment::host(there_.data(), kBytes));
  }

  FabricLink& link(int end) {
    return static_cast<FabricLink&>(*pair_->ends.at(static_cast<std::size_t>(end)).link);
  }
  // Whether the channel of rail 0 is up. channelFor(0) does not return a closed channel while
  // another rail's is open.
  bool up(int end) {
    const Channel* const channel = link(end).channelFor(0);
    return channel != nullptr && channel->up();
  }
  Channel& channel(int end) { return *link(end).channelFor(0); }
  core::Rail& rail(int end) { return *(end == 0 ? *a_ : *b_).rails()[0]; }

  // Ops over all of the memory, in blocks of that size, from a to b or back.
  std::span<const core::Op> blocks(std::uint64_t bytes) {
    ops_.clear();
    for (std::uint64_t at = 0; at < kBytes; at += bytes)
      ops_.push_back(
          {.local = address(here_) + at, .remote = address(there_) + at, .bytes = bytes});
    return ops_;
  }
  std::size_t post(std::uint64_t number, std::span<const core::Op> ops,
                   OpKind kind = OpKind::kWrite) {
    return rail(0).post(
        {.kind = kind, .slice = core::testing::sliceOf(number), .link = &link(0), .ops = ops});
  }
  static std::uint64_t address(const std::vector<std::byte>& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  struct Ended {
    std::uint64_t moved = 0, bytes = 0, failed = 0;
    std::optional<Error> why;
  };
  Ended ended(std::uint64_t number) {
    Ended out;
    for (const auto& one : pair_->done[0]) {
      if (const auto* moved = std::get_if<core::Moved>(&one);
          moved != nullptr && moved->slice.number == number) {
        out.moved += moved->ops;
        out.bytes += moved->bytes;
      }
      if (const auto* failed = std::get_if<core::Failed>(&one);
          failed != nullptr && failed->slice.number == number) {
        out.failed += failed->ops;
        out.why = failed->why;
      }
    }
    return out;
  }
  bool runToEnd(std::uint64_t number, std::size_t ops) {
    return pair_->run([&] { return ended(number).moved + ended(number).failed == ops; });
  }

  Settings settings_;
  std::unique_ptr<base::Poller> poller_ = std::move(*base::Poller::open());
  std::vector<std::byte> here_, there_;
  std::vector<core::Op> ops_;
  std::unique_ptr<core::Backend> a_, b_;
  std::optional<LinkPair> pair_;
};

TEST_P(FabricContract, NamesItsLibraryAndDevice) {
  EXPECT_EQ(a_->can().rdma, !a_->can().tcp);
  const auto& described = static_cast<const FabricBackend&>(*a_).description();
  EXPECT_FALSE(described.empty());
  EXPECT_NE(link(0).state().text.find(described), std::string::npos) << link(0).state().text;
  const auto way = link(0).reaches(OpKind::kWrite, 0, 0);
  ASSERT_TRUE(way);
  EXPECT_EQ(a_->can().tcp, way->starts_with("tcp")) << *way;
}

TEST_P(FabricContract, MovesEveryByteOfSmallAndOfLargeOps) {
  std::uint64_t number = 0;
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{4096}, kBytes}) {
      std::iota(reinterpret_cast<std::uint32_t*>((kind == OpKind::kWrite ? here_ : there_).data()),
                reinterpret_cast<std::uint32_t*>((kind == OpKind::kWrite ? here_ : there_).data()) +
                    kBytes / 4,
                static_cast<std::uint32_t>(bytes));
      auto ops = blocks(bytes);
      ops = ops.first(std::min(ops.size(), kMostOps));
      const std::uint64_t moved = ops.size() * bytes;
      ASSERT_EQ(post(++number, ops, kind), ops.size());
      ASSERT_TRUE(runToEnd(number, ops.size()));
      EXPECT_EQ(ended(number).moved, ops.size());
      EXPECT_EQ(ended(number).bytes, moved);
      EXPECT_EQ(std::memcmp(here_.data(), there_.data(), moved), 0) << opKindName(kind) << bytes;
    }
}

// Data that the peer sent before the unpin must not arrive after it; the libraries do not check
// that.
TEST_P(FabricContract, AfterUnpinNothingLandsAndTheRestGoesOn) {
  pair_->pin(1, 1, Segment::host(there_.data() + kBytes / 2, kBytes / 2));
  const auto ops = blocks(64 << 10);
  std::vector<core::Op> others(ops.begin() + ops.size() / 2, ops.end());
  for (core::Op& op : others) op.remote_pin = 1;
  const std::size_t half = ops.size() / 2;
  ASSERT_EQ(post(1, ops.first(half)), half);
  ASSERT_EQ(post(2, others), others.size());
  ASSERT_TRUE(pair_->run([&] { return ended(1).moved > 2; }));
  ASSERT_TRUE(b_->unpin(0));
  std::fill_n(there_.begin(), kBytes / 2, std::byte{3});
  ASSERT_TRUE(runToEnd(1, half));
  ASSERT_TRUE(runToEnd(2, others.size()));
  EXPECT_GT(ended(1).failed, 0U);
  EXPECT_EQ(ended(1).why->code, Code::kDenied) << ended(1).why->text();
  EXPECT_EQ(ended(2).moved, others.size()) << ended(2).why->text();
  EXPECT_TRUE(testing::allAre(std::span(there_).first(kBytes / 2), std::byte{3}));
  EXPECT_TRUE(testing::allAre(std::span(there_).subspan(kBytes / 2), std::byte{1}));
  EXPECT_TRUE(pair_->ready());
}

TEST_P(FabricContract, ABrokenEndpointIsOpenedAgainAndUnfinishedOpsArePostedAgain) {
  for (const int end : {0, 1}) {
    testing::fillWith(there_, std::byte{9});
    const auto ops = blocks(64 << 10);
    const auto number = static_cast<std::uint64_t>(end) + 1;
    ASSERT_EQ(post(number, ops), ops.size());
    ASSERT_TRUE(pair_->run([&] { return ended(number).moved > 2; }));
    link(end).fence(channel(end));
    ASSERT_TRUE(runToEnd(number, ops.size()));
    EXPECT_EQ(ended(number).moved, ops.size());
    EXPECT_EQ(ended(number).bytes, kBytes);
    EXPECT_TRUE(testing::allAre(there_, std::byte{1})) << end;
  }
}

// A channel survives only a few breaks in a row, but a fence is no break: memory may be withdrawn
// any number of times.
TEST_P(FabricContract, AFenceThatTheLibraryTellsOfFirstIsNoBreak) {
  for (int i = 0; i < 6; ++i) {
    link(1).fence(channel(1));
    // Polls only the rail, so that a report of the library comes before the peer's message about
    // the fence. Some libraries report nothing.
    const auto until = Clock::now() + std::chrono::seconds(1);
    while (up(0) && Clock::now() < until) rail(0).poll(pair_->done[0]);
    ASSERT_TRUE(pair_->run([&] { return !pair_->ready() || (up(0) && up(1)); }));
    ASSERT_TRUE(pair_->ready()) << i << ": " << link(0).state().text;
  }
}

TEST_P(FabricContract, ACancelledPostComesBackWhenItsLastFlushHas) {
  const auto ops = blocks(kBytes);
  ASSERT_EQ(post(1, ops), 1U);
  ASSERT_TRUE(pair_->run([&] { return !rail(0).busy() || channel(0).up(); }));
  rail(0).cancel(core::testing::sinkOf(1));
  ASSERT_TRUE(runToEnd(1, 1));
  EXPECT_EQ(ended(1).why->code, Code::kCancelled);
  testing::fillWith(there_, std::byte{3});
  for (int i = 0; i < 1000; ++i) pair_->progress();
  EXPECT_TRUE(testing::allAre(there_, std::byte{3})) << "bytes came late";
}

TEST_P(FabricContract, OpsOutsideTheRegistrationAreRefused) {
  auto ops = blocks(kBytes);
  for (const std::uint64_t off : {std::uint64_t{1}, kBytes}) {
    core::Op op = ops[0];
    op.remote += off;
    ASSERT_EQ(post(off, std::span(&op, 1)), 1U);
    ASSERT_TRUE(runToEnd(off, 1));
    EXPECT_EQ(ended(off).why->code, Code::kDenied);
  }
  EXPECT_TRUE(testing::allAre(there_, std::byte{2}));
}

TEST_P(FabricContract, AfterCloseNothingTouchesTheMemory) {
  const auto ops = blocks(64 << 10);
  ASSERT_EQ(post(1, ops), ops.size());
  ASSERT_TRUE(pair_->run([&] { return ended(1).moved > 2; }));
  link(1).close(pair_->done[1]);
  testing::fillWith(there_, std::byte{3});
  link(0).close(pair_->done[0]);
  EXPECT_EQ(ended(1).moved + ended(1).failed, ops.size());
  for (int i = 0; i < 100; ++i) pair_->progress();
  EXPECT_TRUE(testing::allAre(there_, std::byte{3}));
  EXPECT_TRUE(link(1).settled());
}

TEST_P(FabricContract, NonsenseFromThePeerEndsTheLinkOnBothEnds) {
  const std::vector<std::byte> nonsense(3, std::byte{0x5a});
  link(1).receive(nonsense, {});
  EXPECT_EQ(link(1).state().phase, Phase::kUnusable);
  ASSERT_TRUE(pair_->run([&] { return link(0).state().phase == Phase::kUnusable; }));
  EXPECT_NE(link(0).state().text.find("another version"), std::string::npos)
      << link(0).state().text;
  const auto ops = blocks(4096);
  ASSERT_EQ(post(1, ops), ops.size());
  ASSERT_TRUE(runToEnd(1, ops.size()));
  EXPECT_EQ(ended(1).failed, ops.size());
}

TEST_P(FabricContract, IdleRailsAreNotBusy) {
  const auto ops = blocks(4096);
  ASSERT_EQ(post(1, ops), ops.size());
  ASSERT_TRUE(runToEnd(1, ops.size()));
  EXPECT_TRUE(pair_->run([&] { return !rail(0).busy() && !rail(1).busy(); }));
  // Ends that are not busy still notice new ops.
  ASSERT_EQ(post(2, ops.first(1)), 1U);
  EXPECT_TRUE(runToEnd(2, 1));
}

std::vector<std::string> fabrics() {
  std::vector<std::string> out;
  for (const core::BackendEntry& one : core::backendCatalogue())
    if (one.name == "ofi" || one.name == "ucx") out.emplace_back(one.name);
  return out;
}
// A build with neither library has none of these tests.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FabricContract);
INSTANTIATE_TEST_SUITE_P(Fabrics, FabricContract, ::testing::ValuesIn(fabrics()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace viaduct::move
