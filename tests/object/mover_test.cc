// The mover without an agent: random posts, cancels and closes, while the server has faults.
#include "base/random.h"
#include "object/mover_testing.h"

namespace viaduct::object {
namespace {

class MoverTest : public MoverFixture {
 protected:
  static constexpr std::uint64_t kBytes = 64 << 10U;

  // The server completes no upload with parts as small as this, so each write ends with an abort.
  MoverTest() : MoverFixture({.part = 16 << 10U, .connections = 4, .retries = 3}) {
    tell("put kv old " + std::to_string(kBytes));
    open();
  }
  void pin() {
    pinOld(kOld, "old", kAddress);
    pinNew(kNew, "new", 2 * kAddress - kBytes, kBytes);
  }
  void move(OpKind kind) {
    const bool reads = kind == OpKind::kRead;
    post(kind, {{.local = reinterpret_cast<std::uintptr_t>(memory_.data()),
                 .remote = reads ? kAddress : 2 * kAddress - kBytes,
                 .bytes = kBytes,
                 .local_pin = kHost,
                 .remote_pin = reads ? kOld : kNew}});
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
};

TEST_F(MoverTest, EachPostComesBackOnceAmongCancelsAndFaults) {
  pin();
  for (const char* fault : {"GET 503 5", "GET reset 5", "PUT 500 5", "GET wrongrange 3"})
    tell(std::string("fault ") + fault);
  base::Random random(7);
  for (int step = 0; step < 400; ++step) {
    switch (random.below(8)) {
      case 0:
        mover_->cancel(core::testing::sinkOf(last_ - random.below(4)));
        break;
      case 1:
        mover_->close(*link(random.below(2)), done_);
        take(done_);
        break;
      case 2:
      case 3:
        poll();
        break;
      default:
        move(random.chance(0.7) ? OpKind::kRead : OpKind::kWrite);
    }
  }
  static_cast<void>(mover_->unpin(kNew));  // its posts end soon
  while (!ops_.empty() && !HasFatalFailure()) pollOnce();
  EXPECT_TRUE(mover_->idle());
  mover_.reset();  // waits for the aborts
  EXPECT_EQ(tell("uploads"), "0");
}

TEST_F(MoverTest, EndsWithPostsInFlight) {
  pin();
  for (int i = 0; i < 100; ++i) move(i % 2 == 0 ? OpKind::kRead : OpKind::kWrite);
  EXPECT_LT(ops_.size(), 100U) << "there is room for 64";
  mover_->close(*link(0), done_);
  mover_->close(*link(1), done_);
  take(done_);
  EXPECT_TRUE(ops_.empty());
}

class OneConnectionTest : public MoverFixture {
 protected:
  OneConnectionTest() : MoverFixture({.part = 16 << 10U, .connections = 1, .retries = 100}) {}
};

TEST_F(OneConnectionTest, ALookThatTimedOutHoldsUpNoOther) {
  open();
  tell("put kv slow 8");
  tell("put kv fast 8");
  tell("fault HEAD hang 1000 slow");
  // The second look takes less than the 20 s after which libcurl cuts the first look's connection.
  const auto slow = mover_->look({"kv", "slow"}, 300ms);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Code::kTimeout) << slow.error().text();
  const auto fast = mover_->look({"kv", "fast"}, 15s);
  EXPECT_TRUE(fast) << fast.error().text();
}

}  // namespace
}  // namespace viaduct::object
