// The ucx backend seen from its links: fences, breaks, cancels. Over whatever UCX has here: TCP.
#include "backends/ucx/ucx_backend.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstring>
#include <numeric>

#include "backends/ucx/ucx_link.h"
#include "backends/ucx/ucx_rail.h"
#include "support/link_pair.h"
#include "support/ucx.h"

namespace viaduct::ucx {
Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context);
namespace {

using core::Op;
using testing::LinkPair;
using Phase = core::LinkState::Phase;

class UcxBackendTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 16 << 20;

  void SetUp() override {
    VIADUCT_SKIP_IF_IT_MAY_ABORT("ucx");
    settings_.backends = {"ucx"};
    for (auto* one : {&a_, &b_}) {
      auto opened = open({settings_, *poller_});
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

  UcxLink& link(int end) {
    return static_cast<UcxLink&>(*pair_->ends.at(static_cast<std::size_t>(end)).link);
  }
  Channel& channel(int end) { return *link(end).channelFor(0); }
  core::Rail& rail(int end) { return *(end == 0 ? *a_ : *b_).rails()[0]; }

  // Blocks of that size, all of the memory, from a to b or back.
  std::span<const Op> blocks(std::uint64_t bytes) {
    ops_.clear();
    for (std::uint64_t at = 0; at < kBytes; at += bytes)
      ops_.push_back(
          {.local = address(here_) + at, .remote = address(there_) + at, .bytes = bytes});
    return ops_;
  }
  std::size_t post(core::Tag tag, std::span<const Op> ops, OpKind kind = OpKind::kWrite) {
    return rail(0).post({.kind = kind, .tag = tag, .link = &link(0), .ops = ops});
  }
  static std::uint64_t address(const std::vector<std::byte>& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  struct Ended {
    std::uint64_t moved = 0, bytes = 0, failed = 0;
    std::optional<Error> why;
  };
  Ended ended(core::Tag tag) {
    Ended out;
    for (const auto& one : pair_->done[0]) {
      if (const auto* moved = std::get_if<core::Moved>(&one);
          moved != nullptr && moved->tag == tag) {
        out.moved += moved->ops;
        out.bytes += moved->bytes;
      }
      if (const auto* failed = std::get_if<core::Failed>(&one);
          failed != nullptr && failed->tag == tag) {
        out.failed += failed->ops;
        out.why = failed->why;
      }
    }
    return out;
  }
  bool runToEnd(core::Tag tag, std::size_t ops) {
    return pair_->run([&] { return ended(tag).moved + ended(tag).failed == ops; },
                      std::chrono::seconds(10));
  }
  static bool all(const std::vector<std::byte>& memory, int value) {
    return std::all_of(memory.begin(), memory.end(),
                       [&](std::byte one) { return one == std::byte(value); });
  }

  Settings settings_;
  std::unique_ptr<base::Poller> poller_ = std::move(*base::Poller::open());
  std::vector<std::byte> here_, there_;
  std::vector<Op> ops_;
  std::unique_ptr<core::Backend> a_, b_;
  std::optional<LinkPair> pair_;
};

TEST_F(UcxBackendTest, SaysWhatIsInForce) {
  EXPECT_EQ(a_->can().rdma, !a_->can().tcp);
  EXPECT_NE(link(0).state().text.find("UCX 1."), std::string::npos) << link(0).state().text;
  const auto way = link(0).reaches(OpKind::kWrite, 0, 0);
  ASSERT_TRUE(way);
  EXPECT_EQ(a_->can().tcp, *way == "tcp") << *way;
}

TEST_F(UcxBackendTest, MovesEveryByteOfSmallAndOfLargeOps) {
  core::Tag tag = 0;
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (const std::uint64_t bytes : {std::uint64_t{64}, std::uint64_t{4096}, kBytes}) {
      std::iota(reinterpret_cast<std::uint32_t*>((kind == OpKind::kWrite ? here_ : there_).data()),
                reinterpret_cast<std::uint32_t*>((kind == OpKind::kWrite ? here_ : there_).data()) +
                    kBytes / 4,
                static_cast<std::uint32_t>(bytes));
      const auto ops = blocks(bytes);
      ASSERT_EQ(post(++tag, ops, kind), ops.size());
      ASSERT_TRUE(runToEnd(tag, ops.size()));
      EXPECT_EQ(ended(tag).moved, ops.size());
      EXPECT_EQ(ended(tag).bytes, kBytes);
      EXPECT_TRUE(here_ == there_) << opKindName(kind) << bytes;
    }
}

// What the peer had sent before the pin went must not land after it: UCX itself does not look.
TEST_F(UcxBackendTest, AfterUnpinNothingLandsAndTheRestGoesOn) {
  pair_->pin(1, 1, Segment::host(there_.data() + kBytes / 2, kBytes / 2));
  const auto ops = blocks(64 << 10);
  std::vector<Op> others(ops.begin() + ops.size() / 2, ops.end());
  for (Op& op : others) op.remote_pin = 1;
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
  EXPECT_TRUE(std::all_of(there_.begin(), there_.begin() + kBytes / 2,
                          [](std::byte one) { return one == std::byte{3}; }));
  EXPECT_TRUE(std::all_of(there_.begin() + kBytes / 2, there_.end(),
                          [](std::byte one) { return one == std::byte{1}; }));
  EXPECT_TRUE(pair_->ready());
}

TEST_F(UcxBackendTest, ABrokenConduitIsOpenedAgainAndWhatWasUnderWayIsPostedAgain) {
  for (const int end : {0, 1}) {
    std::fill(there_.begin(), there_.end(), std::byte{9});
    const auto ops = blocks(64 << 10);
    const auto tag = static_cast<core::Tag>(end + 1);
    ASSERT_EQ(post(tag, ops), ops.size());
    ASSERT_TRUE(pair_->run([&] { return ended(tag).moved > 2; }));
    link(end).fence(channel(end));
    ASSERT_TRUE(runToEnd(tag, ops.size()));
    EXPECT_EQ(ended(tag).moved, ops.size());
    EXPECT_EQ(ended(tag).bytes, kBytes);
    EXPECT_TRUE(all(there_, 1)) << end;
  }
}

TEST_F(UcxBackendTest, ACancelledPostComesBackWhenItsLastFlushHas) {
  const auto ops = blocks(kBytes);
  ASSERT_EQ(post(1, ops), 1U);
  ASSERT_TRUE(pair_->run([&] { return !rail(0).busy() || channel(0).up(); }));
  rail(0).cancel(1);
  ASSERT_TRUE(runToEnd(1, 1));
  EXPECT_EQ(ended(1).why->code, Code::kCancelled);
  std::fill(there_.begin(), there_.end(), std::byte{3});
  for (int i = 0; i < 1000; ++i) pair_->turn();
  EXPECT_TRUE(all(there_, 3)) << "bytes came late";
}

TEST_F(UcxBackendTest, OpsOutsideOfWhatIsRegisteredAreRefused) {
  auto ops = blocks(kBytes);
  for (const std::uint64_t off : {std::uint64_t{1}, kBytes}) {
    Op op = ops[0];
    op.remote += off;
    ASSERT_EQ(post(off, std::span(&op, 1)), 1U);
    ASSERT_TRUE(runToEnd(off, 1));
    EXPECT_EQ(ended(off).why->code, Code::kDenied);
  }
  EXPECT_TRUE(all(there_, 2));
}

TEST_F(UcxBackendTest, AfterCloseNobodyTouchesAnything) {
  const auto ops = blocks(64 << 10);
  ASSERT_EQ(post(1, ops), ops.size());
  ASSERT_TRUE(pair_->run([&] { return ended(1).moved > 2; }));
  link(1).close(pair_->done[1]);
  std::fill(there_.begin(), there_.end(), std::byte{3});
  link(0).close(pair_->done[0]);
  EXPECT_EQ(ended(1).moved + ended(1).failed, ops.size());
  for (int i = 0; i < 100; ++i) pair_->turn();
  EXPECT_TRUE(all(there_, 3));
  EXPECT_TRUE(link(1).settled());
}

TEST_F(UcxBackendTest, NonsenseFromThePeerEndsTheLinkOnBothEnds) {
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

TEST_F(UcxBackendTest, WithNothingToDoNobodyIsBusy) {
  const auto ops = blocks(4096);
  ASSERT_EQ(post(1, ops), ops.size());
  ASSERT_TRUE(runToEnd(1, ops.size()));
  EXPECT_TRUE(pair_->run([&] { return !rail(0).busy() && !rail(1).busy(); }));
  // And is woken all the same.
  ASSERT_EQ(post(2, ops.first(1)), 1U);
  EXPECT_TRUE(runToEnd(2, 1));
}

TEST(UcxOpen, NamesTheDevicesThereAreWhenARailIsMisspelt) {
  auto poller = std::move(*base::Poller::open());
  Settings settings;
  settings.backends = {"ucx"};
  settings.rails = {"lo0"};
  const auto opened = open({settings, *poller});
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().text().find("lo"), std::string::npos);
  EXPECT_EQ(opened.error().remedy, "did you mean lo?") << opened.error().text();
}

// UCX's constructor takes SIGHUP and others for itself.
TEST(UcxOpen, LeavesTheProgramsSignalsAlone) {
  ASSERT_TRUE(library());
  for (const char* theirs : {"UCX_HANDLE_ERRORS", "UCX_ERROR_SIGNALS", "UCX_DEBUG_SIGNO"})
    if (userHasSet(theirs)) GTEST_SKIP() << "skipped: " << theirs << " is set";
  struct sigaction now{};
  ASSERT_EQ(::sigaction(SIGHUP, nullptr, &now), 0);
  EXPECT_TRUE(now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN);
}

TEST(UcxOpen, UnaskedOnlyWhereThereIsRdma) {
  auto poller = std::move(*base::Poller::open());
  const Settings settings;
  const auto opened = open({settings, *poller});
  if (opened) GTEST_SKIP() << "skipped: this host has RDMA devices";
  EXPECT_EQ(opened.error().code, Code::kUnsupported) << opened.error().text();
}

}  // namespace
}  // namespace viaduct::ucx
