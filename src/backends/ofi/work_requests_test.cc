#include "backends/ofi/work_requests.h"

#include <gtest/gtest.h>

#include <vector>

namespace viaduct::ofi {
namespace {

using move::Piece;

// A fake endpoint that records requests, and accepts as many as the test allows.
struct FakeEndpoint : fid_ep {
  struct Taken {
    OpKind kind;
    std::uint64_t flags, to, key, bytes;
    void* context;
    bool operator==(const Taken&) const = default;
  };
  FakeEndpoint() : fid_ep{} {
    table.size = sizeof table;
    table.writemsg = [](fid_ep* self, const fi_msg_rma* message, std::uint64_t flags) {
      return static_cast<FakeEndpoint*>(self)->take(OpKind::kWrite, *message, flags);
    };
    table.readmsg = [](fid_ep* self, const fi_msg_rma* message, std::uint64_t flags) {
      return static_cast<FakeEndpoint*>(self)->take(OpKind::kRead, *message, flags);
    };
    rma = &table;
  }
  ssize_t take(OpKind kind, const fi_msg_rma& message, std::uint64_t flags) {
    if (refuses_inject && (flags & FI_INJECT) != 0) return -FI_EOPNOTSUPP;
    if (room == 0) return refusal;
    --room;
    taken.push_back({kind, flags, message.rma_iov->addr, message.rma_iov->key, message.rma_iov->len,
                     message.context});
    return 0;
  }
  std::uint64_t flags(std::size_t i) const { return taken.at(i).flags; }

  fi_ops_rma table{};
  std::size_t room = 1000;
  ssize_t refusal = -FI_EAGAIN;
  bool refuses_inject = false;
  std::vector<Taken> taken;
};

constexpr EndpointProfile kOrdered{.inject = 0, .doorbell = true, .ordered = true, .depth = 16};
constexpr EndpointProfile kLoose{.inject = 0, .doorbell = true, .ordered = false, .depth = 16};
constexpr std::uint64_t kTold = FI_COMPLETION | FI_DELIVERY_COMPLETE;

class WorkRequestsTest : public ::testing::Test {
 protected:
  WorkRequestsTest() {
    for (std::size_t i = 0; i < 32; ++i)
      pieces_.push_back({.here = bytes_, .there = 1000 + i * 64, .bytes = 64});
  }
  std::span<const Piece> some(std::size_t count) const { return std::span(pieces_).first(count); }

  std::byte bytes_[64]{};
  std::vector<Piece> pieces_;
  FakeEndpoint endpoint_;
  const RemoteMemory there_{.key = 7, .base = 1000};
};

TEST_F(WorkRequestsTest, OrderedWritesHaveOneCompletionForAll) {
  WorkRequests requests(kOrdered, endpoint_);
  EXPECT_EQ(requests.post(OpKind::kWrite, some(3), there_).pieces, 3U);
  ASSERT_EQ(endpoint_.taken.size(), 3U);
  EXPECT_EQ(endpoint_.flags(0), FI_MORE);
  EXPECT_EQ(endpoint_.flags(1), FI_MORE);
  EXPECT_EQ(endpoint_.flags(2), kTold);
  EXPECT_EQ(endpoint_.taken[2].to, 128U) << "counted from the start of the peer's memory";
  EXPECT_EQ(endpoint_.taken[2].key, 7U);
}

TEST_F(WorkRequestsTest, UnorderedWritesHaveACompletionEach) {
  WorkRequests requests(kLoose, endpoint_);
  requests.post(OpKind::kWrite, some(2), there_);
  EXPECT_EQ(endpoint_.flags(0), FI_MORE | kTold);
  EXPECT_EQ(endpoint_.flags(1), kTold);
}

TEST_F(WorkRequestsTest, EveryReadHasACompletion) {
  WorkRequests requests(kOrdered, endpoint_);
  requests.post(OpKind::kRead, some(2), there_);
  EXPECT_EQ(endpoint_.flags(0), FI_MORE | FI_COMPLETION);
  EXPECT_EQ(endpoint_.flags(1), FI_COMPLETION);
}

TEST_F(WorkRequestsTest, WithoutSharedDoorbellsNoRequestWaitsForMore) {
  WorkRequests requests({.doorbell = false, .ordered = true, .depth = 16}, endpoint_);
  requests.post(OpKind::kWrite, some(3), there_);
  for (const auto& one : endpoint_.taken) EXPECT_EQ(one.flags & FI_MORE, 0U);
}

TEST_F(WorkRequestsTest, OnlyWritesThatFitAreInjected) {
  WorkRequests requests({.inject = 64, .doorbell = false, .ordered = true, .depth = 16}, endpoint_);
  pieces_[1].bytes = 65;
  EXPECT_EQ(requests.post(OpKind::kWrite, some(3), there_).injected, 2U);
  EXPECT_EQ(endpoint_.flags(0), FI_INJECT);
  EXPECT_EQ(endpoint_.flags(1), 0U);
  EXPECT_EQ(endpoint_.flags(2), FI_INJECT | kTold);
  EXPECT_EQ(requests.post(OpKind::kRead, some(1), there_).injected, 0U);
  EXPECT_EQ(endpoint_.flags(3), FI_COMPLETION);
}

TEST_F(WorkRequestsTest, AfterARefusedInjectNothingIsInjected) {
  WorkRequests requests({.inject = 64, .doorbell = false, .ordered = true, .depth = 16}, endpoint_);
  endpoint_.refuses_inject = true;
  const auto posted = requests.post(OpKind::kWrite, some(2), there_);
  EXPECT_EQ(posted.pieces, 2U);
  EXPECT_EQ(posted.injected, 0U);
  EXPECT_EQ(requests.refusal(), 0);
  EXPECT_EQ(endpoint_.flags(1), kTold);
}

TEST_F(WorkRequestsTest, AFlushEndsWithTheLastEarlierCompletion) {
  WorkRequests requests(kLoose, endpoint_);
  EXPECT_EQ(requests.flush().request, nullptr) << "nothing was asked for";
  requests.post(OpKind::kWrite, some(2), there_);
  auto first = requests.flush();
  requests.post(OpKind::kWrite, some(1), there_);
  auto second = requests.flush();
  requests.ended(endpoint_.taken[2].context);
  EXPECT_FALSE(requests.over(second)) << "older ones are under way";
  requests.ended(endpoint_.taken[1].context);
  EXPECT_FALSE(requests.over(first));
  requests.ended(endpoint_.taken[0].context);
  EXPECT_TRUE(requests.over(second));
  EXPECT_TRUE(requests.over(first));
  WorkRequests::letGo(first);
  WorkRequests::letGo(second);
  EXPECT_EQ(requests.flush().request, nullptr);
}

// The refused request was to ring the doorbell for the accepted ones.
TEST_F(WorkRequestsTest, AfterARefusalARepeatedRequestRingsTheDoorbell) {
  WorkRequests requests(kOrdered, endpoint_);
  endpoint_.room = 2;
  EXPECT_EQ(requests.post(OpKind::kWrite, some(4), there_).pieces, 2U);
  auto flush = requests.flush();
  EXPECT_FALSE(requests.settle());
  EXPECT_EQ(requests.post(OpKind::kWrite, some(4), there_).pieces, 0U) << "first what is owed";
  EXPECT_FALSE(requests.over(flush)) << "nothing has told of the two";

  endpoint_.room = 1;
  EXPECT_TRUE(requests.settle());
  ASSERT_EQ(endpoint_.taken.size(), 3U);
  EXPECT_EQ(endpoint_.flags(2), kTold);
  EXPECT_EQ(endpoint_.taken[2].to, endpoint_.taken[1].to) << "the last once more";
  EXPECT_EQ(endpoint_.taken[2].bytes, 8U);
  EXPECT_FALSE(requests.over(flush));
  requests.ended(endpoint_.taken[2].context);
  EXPECT_TRUE(requests.over(flush));
  EXPECT_TRUE(requests.settle());
  EXPECT_EQ(endpoint_.taken.size(), 3U) << "once is enough";
}

TEST_F(WorkRequestsTest, TheRepeatedRequestIsPostedAtOnceIfPossible) {
  WorkRequests requests(kLoose, endpoint_);
  endpoint_.room = 1;
  // The endpoint refuses the second request, and then has room again.
  endpoint_.table.readmsg = [](fid_ep* self, const fi_msg_rma* message, std::uint64_t flags) {
    auto& me = *static_cast<FakeEndpoint*>(self);
    if (me.room > 0) return me.take(OpKind::kRead, *message, flags);
    me.room = 1;
    return static_cast<ssize_t>(-FI_EAGAIN);
  };
  EXPECT_EQ(requests.post(OpKind::kRead, some(3), there_).pieces, 1U);
  ASSERT_EQ(endpoint_.taken.size(), 2U);
  EXPECT_EQ(endpoint_.flags(1), FI_COMPLETION);
}

TEST_F(WorkRequestsTest, NoMoreRequestsAreInFlightThanTheQueueHolds) {
  WorkRequests requests(kOrdered, endpoint_);
  EXPECT_EQ(requests.post(OpKind::kWrite, some(10), there_).pieces, 10U);
  EXPECT_EQ(requests.post(OpKind::kWrite, some(10), there_).pieces, 5U) << "one place is kept free";
  EXPECT_EQ(endpoint_.flags(14), kTold) << "the last that goes, not the last that was given";
  EXPECT_EQ(requests.post(OpKind::kWrite, some(10), there_).pieces, 0U);
  requests.ended(endpoint_.taken[9].context);
  EXPECT_EQ(requests.post(OpKind::kWrite, some(20), there_).pieces, 10U) << "it told of ten";
}

TEST_F(WorkRequestsTest, ManyFlushesMayBeOpenAndThoseInOneSlotEndTogether) {
  WorkRequests requests({.doorbell = true, .ordered = true, .depth = 1024}, endpoint_);
  std::vector<move::Flush> open;
  for (int i = 0; i < 200; ++i) {
    requests.post(OpKind::kWrite, some(1), there_);
    open.push_back(requests.flush());
  }
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_FALSE(requests.over(open[i])) << i;
    if (i == 100) {
      EXPECT_TRUE(requests.over(open[99]));
    }
    requests.ended(endpoint_.taken[i].context);
  }
  for (auto& flush : open) {
    EXPECT_TRUE(requests.over(flush));
    WorkRequests::letGo(flush);
  }
}

TEST_F(WorkRequestsTest, AfterAPermanentRefusalNothingIsPosted) {
  WorkRequests requests(kOrdered, endpoint_);
  endpoint_.room = 1;
  endpoint_.refusal = -FI_ECONNRESET;
  EXPECT_EQ(requests.post(OpKind::kWrite, some(3), there_).pieces, 1U);
  EXPECT_EQ(requests.refusal(), -FI_ECONNRESET);
  endpoint_.room = 10;
  EXPECT_EQ(requests.post(OpKind::kWrite, some(3), there_).pieces, 0U);
}

TEST(RemoteMemory, IsReadBackAndMalformedBytesAreRefused) {
  const RemoteMemory memory{.key = 0x0123456789abcdef, .base = 4096};
  const auto whole = packed(memory);
  EXPECT_EQ(unpacked(whole), memory);
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(unpacked({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)}));
  auto longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(unpacked(longer));
  auto foreign = whole;
  foreign[0] = std::byte{1};
  EXPECT_FALSE(unpacked(foreign));
}

}  // namespace
}  // namespace viaduct::ofi
