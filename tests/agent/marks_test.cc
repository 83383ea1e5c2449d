// Streams of marks between agents of one host: through a ring beside the session, and over TCP.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

Agent open(std::string name) {
  auto agent = Agent::open({.name = std::move(name), .listen = {}, .detect = 10min});
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

class MarksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto peer = a_.importCard(b_.exportCard());
    ASSERT_TRUE(peer && peer->ready(60s));
    b_at_a_ = *peer;
    a_at_b_ = *b_.peer("a");
    ASSERT_TRUE(a_at_b_->ready(60s));
  }
  MarkStream openAtA(MarkStreamOptions options) { return *a_.openMarks(*b_at_a_, options); }
  MarkStream openAtB(MarkStreamOptions options) { return *b_.openMarks(*a_at_b_, options); }
  // Returns when b has handled all that a sent before.
  void settle() {
    ASSERT_TRUE(b_at_a_->note("settled"));
    ASSERT_TRUE(b_.waitNote(60s));
  }

  Agent a_ = open("a"), b_ = open("b");
  std::optional<Peer> b_at_a_, a_at_b_;
};

TEST_F(MarksTest, AMarkArrivesOnceAndCountsOnce) {
  const MarkStream out = openAtA({.number = 9}), in = openAtB({.number = 9, .marks = 100});
  ASSERT_TRUE(out.mark(70));
  ASSERT_TRUE(out.mark(70));
  ASSERT_TRUE(out.mark(3));
  ASSERT_TRUE(in.wait(3, 60s));
  EXPECT_TRUE(in.waitCount(2, 60s));
  EXPECT_EQ(in.count(), 2U);
  EXPECT_TRUE(in.has(70));
  EXPECT_FALSE(in.has(69));
  EXPECT_FALSE(in.has(100));
  EXPECT_EQ(in.wait(4, 0ms).error().code, Code::kTimeout);
  EXPECT_EQ(in.waitCount(3, 0ms).error().code, Code::kTimeout);
  EXPECT_EQ(in.wait(100, 60s).error().code, Code::kInvalid);
  EXPECT_EQ(in.waitCount(101, 60s).error().code, Code::kInvalid);
  EXPECT_FALSE(b_.takeNote());  // marks are no notes
}

TEST_F(MarksTest, MarksThatCameBeforeTheStreamWasOpenedAreThere) {
  for (const std::uint32_t number : {0U, 64U, 9999U})
    ASSERT_TRUE(openAtA({.number = number}).mark(number));
  settle();
  for (const std::uint32_t number : {0U, 64U, 9999U}) {
    const MarkStream in = openAtB({.number = number, .marks = 10'000});
    EXPECT_TRUE(in.has(number));
    EXPECT_EQ(in.count(), 1U);
  }
}

TEST_F(MarksTest, UnopenedStreamsAreBoundedAndTheOldestGoesFirst) {
  constexpr std::uint64_t kStreams = 2600;  // a little more than are kept
  const MarkStream out = openAtA({.number = 1'000'000});
  for (std::uint64_t i = 0; i < kStreams; ++i) {
    const MarkStream stream = openAtA({.number = i});
    ASSERT_TRUE(stream.mark(i < kStreams / 2 ? 0 : 4095));
  }
  settle();
  EXPECT_TRUE(openAtB({.number = kStreams - 1, .marks = kMaxMarks}).has(4095));
  const auto dropped = [&] {
    std::uint64_t first = 0;
    while (first < kStreams && !b_.openMarks(*a_at_b_, {.number = first, .marks = 1})) ++first;
    return first;
  }();
  EXPECT_GT(dropped, 0U);
  EXPECT_LT(dropped, kStreams / 2);
  const auto refused = b_.openMarks(*a_at_b_, {.number = 0, .marks = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted) << refused.error().text();
  EXPECT_EQ(refused.error().peer, "a");
}

TEST_F(MarksTest, ANumberIsUsedOnce) {
  {
    const MarkStream in = openAtB({.number = 5, .marks = 1});
    EXPECT_EQ(b_.openMarks(*a_at_b_, {.number = 5}).error().code, Code::kInvalid);
  }
  const auto again = b_.openMarks(*a_at_b_, {.number = 5, .marks = 1});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kInvalid) << again.error().text();
  EXPECT_EQ(b_.openMarks(*a_at_b_, {.number = 6, .marks = kMaxMarks + 1}).error().code,
            Code::kInvalid);
}

TEST_F(MarksTest, ALateMarkOfAClosedStreamIsForgotten) {
  const MarkStream out = openAtA({.number = 5});
  static_cast<void>(openAtB({.number = 5, .marks = 0}));
  ASSERT_TRUE(out.mark(0));
  settle();
  EXPECT_EQ(b_.openMarks(*a_at_b_, {.number = 5, .marks = 1}).error().code, Code::kInvalid);
}

TEST_F(MarksTest, AnEndReachesBothEndsWithItsReason) {
  for (const bool by_receiver : {false, true}) {
    const std::uint64_t number = by_receiver ? 2 : 1;
    std::optional<MarkStream> out = openAtA({.number = number});
    const MarkStream in = openAtB({.number = number, .marks = 2});
    ASSERT_TRUE(out->mark(0));
    ASSERT_TRUE(in.wait(0, 60s));
    const Error why{.code = Code::kDevice, .operation = "layer 1", .detail = "no memory"};
    (by_receiver ? in : *out).end(why);
    const Status missing = in.wait(1, 60s);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::kDevice);
    EXPECT_EQ(missing.error().operation, "layer 1");
    EXPECT_EQ(missing.error().detail, "no memory");
    EXPECT_EQ(missing.error().peer, "a");
    EXPECT_TRUE(in.wait(0, 0ms));  // it is there
    if (by_receiver) {
      EXPECT_EQ(in.over(0ms).error().code, Code::kTimeout);
      while (out->ended()) std::this_thread::yield();
      EXPECT_EQ(out->mark(1).error().code, Code::kDevice);
      out.reset();
    }
    EXPECT_TRUE(in.over(60s));
  }
}

TEST_F(MarksTest, AnEndBeforeTheOtherEndIsOpenIsKept) {
  const MarkStream in = openAtB({.number = 1, .marks = 2});
  in.end({.code = Code::kCancelled, .operation = "request", .detail = "not wanted"});
  ASSERT_TRUE(a_at_b_->note("ended"));
  ASSERT_TRUE(a_.waitNote(60s));
  {
    const MarkStream out = openAtA({.number = 1});
    EXPECT_EQ(out.mark(0).error().code, Code::kCancelled);
  }
  EXPECT_TRUE(in.over(60s));
}

TEST_F(MarksTest, AnEndThatIsClosedEarlyEndsTheOther) {
  std::optional<MarkStream> in = openAtB({.number = 1, .marks = 2});
  const MarkStream out = openAtA({.number = 1});
  in.reset();
  while (out.ended()) std::this_thread::yield();
  EXPECT_EQ(out.ended().error().code, Code::kCancelled);
  out.end({.code = Code::kCancelled, .operation = "reply"});
  EXPECT_TRUE(out.over(60s));
}

TEST_F(MarksTest, BothEndsThatCloseAtOnceAreOver) {
  std::optional<MarkStream> in = openAtB({.number = 1, .marks = 2});
  std::optional<MarkStream> out = openAtA({.number = 1, .marks = 2});
  std::thread closer([&] { in.reset(); });
  out.reset();
  closer.join();
  settle();
}

TEST_F(MarksTest, AMarkBeyondTheStreamEndsItAtBothEnds) {
  const MarkStream in = openAtB({.number = 1, .marks = 2});
  const MarkStream out = openAtA({.number = 1});
  ASSERT_TRUE(out.mark(2));
  EXPECT_EQ(in.wait(0, 60s).error().code, Code::kProtocol);
  while (out.ended()) std::this_thread::yield();
  EXPECT_EQ(out.ended().error().code, Code::kProtocol);
  EXPECT_EQ(b_at_a_->state(), PeerState::kReady);
  EXPECT_EQ(out.mark(kMaxMarks).error().code, Code::kProtocol);
  EXPECT_EQ(openAtA({.number = 2}).mark(kMaxMarks).error().code, Code::kInvalid);
}

TEST_F(MarksTest, TheCallbackRunsAfterMarksAndTheEnd) {
  std::atomic<int> changes{0};
  const auto until = [&](int count) {
    while (changes < count) std::this_thread::yield();
  };
  const MarkStream out = openAtA({.number = 1});
  ASSERT_TRUE(out.mark(0));
  settle();
  const MarkStream in = openAtB({.number = 1, .marks = 3, .on_change = [&] { ++changes; }});
  until(1);
  ASSERT_TRUE(out.mark(1));
  until(2);
  EXPECT_TRUE(in.has(1));
  out.end({.code = Code::kCancelled, .operation = "test"});
  until(3);
  EXPECT_FALSE(in.ended());
}

TEST_F(MarksTest, APostCarriesAMark) {
  const auto here = a_.allocate(4096);
  const auto there = b_.allocate(4096, {.label = "there"});
  ASSERT_TRUE(here && there && b_at_a_->waitPin("there", 60s));
  const auto whole = [](const Pin& pin) {
    return Selection{
        .blocks =
            *Blocks::of({{.base = pin.info().address, .stride = 4096, .bytes = 4096, .count = 1}})};
  };
  auto transfer = a_.plan(OpKind::kWrite, *b_at_a_, whole(*here), whole(*there));
  ASSERT_TRUE(transfer) << transfer.error().text();
  const MarkStream in = openAtB({.number = 1, .marks = 2});
  const MarkStream out = openAtA({.number = 1});
  ASSERT_TRUE(transfer->post({.mark = Mark{.stream = 1, .number = 0}}));
  EXPECT_TRUE(in.wait(0, 60s));
  in.end({.code = Code::kCancelled, .operation = "test"});
  while (out.ended()) std::this_thread::yield();
  ASSERT_TRUE(transfer->wait(60s));
  const Status refused = transfer->post({.mark = Mark{.stream = 1, .number = 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kCancelled);
}

TEST_F(MarksTest, ALostPeerEndsItsStreamsAndKeepsWhatCame) {
  const MarkStream in = openAtB({.number = 1, .marks = 2});
  ASSERT_TRUE(openAtA({.number = 1}).mark(0));
  ASSERT_TRUE(openAtA({.number = 2}).mark(0));
  std::optional<Status> missing;
  std::thread waiter([&] { missing = in.wait(1, 60s); });
  ASSERT_TRUE(in.wait(0, 60s));
  settle();
  a_.close();
  waiter.join();
  ASSERT_FALSE(*missing);
  EXPECT_EQ(missing->error().code, Code::kPeerLost) << missing->error().text();
  EXPECT_TRUE(in.wait(0, 0ms));
  EXPECT_TRUE(in.over(0ms));
  const auto early = b_.openMarks(*a_at_b_, {.number = 2, .marks = 2});
  ASSERT_TRUE(early) << early.error().text();
  EXPECT_TRUE(early->wait(0, 0ms));
  EXPECT_EQ(early->wait(1, 60s).error().code, Code::kPeerLost);
  EXPECT_EQ(b_.openMarks(*a_at_b_, {.number = 3}).error().code, Code::kPeerLost);
}

}  // namespace
}  // namespace viaduct
