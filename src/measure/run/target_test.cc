#include "measure/run/target.h"

#include <gtest/gtest.h>

#include <thread>

namespace viaduct::measure {
namespace {

// Answers what it is told to, and remembers what it was asked.
class FakeTarget final : public Target {
 public:
  Status prepare(const Workload& workload, const std::string& label) override {
    seen = workload;
    seen_label = label;
    return answer();
  }
  Status fill(std::uint64_t epoch) override {
    filled = epoch;
    return answer();
  }
  Result<std::optional<Mismatch>> verify(std::uint64_t epoch) override {
    verified = epoch;
    return wrong;
  }
  Result<double> cpu() override { return 1.25; }
  Status release() override { return answer(); }

  std::optional<Error> fails;
  std::optional<Mismatch> wrong;
  Workload seen;
  std::string seen_label;
  std::uint64_t filled = 0, verified = 0;

 private:
  Status answer() const { return fails ? Status(*fails) : Status(Ok{}); }
};

class RemoteTargetTest : public ::testing::Test {
 protected:
  RemoteTargetTest()
      : ends(*Channel::pair()),
        server([this] { served = serveTarget(ends.second, fake, stop).has_value(); }) {
    own.emplace(std::move(ends.first));
    remote.emplace(*own, stop);
  }
  ~RemoteTargetTest() override {
    own.reset();  // that is what ends the server
    server.join();
    EXPECT_TRUE(served);
  }
  StopFlag stop{false};
  FakeTarget fake;
  std::pair<Channel, Channel> ends;
  bool served = false;
  std::thread server;
  std::optional<Channel> own;
  std::optional<RemoteTarget> remote;
};

TEST_F(RemoteTargetTest, EveryCallArrives) {
  const Workload w{.backend = "tcp", .op = OpKind::kRead, .block_bytes = 77, .batch = 3};
  ASSERT_TRUE(remote->prepare(w, "here"));
  EXPECT_EQ(fake.seen, w);
  EXPECT_EQ(fake.seen_label, "here");
  ASSERT_TRUE(remote->fill(5));
  EXPECT_EQ(fake.filled, 5U);
  EXPECT_DOUBLE_EQ(*remote->cpu(), 1.25);
  EXPECT_FALSE(*remote->verify(6));
  EXPECT_EQ(fake.verified, 6U);
  fake.wrong = Mismatch{3, 64, "swapped"};
  const auto wrong = *remote->verify(6);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->block, 3U);
  EXPECT_EQ(wrong->offset, 64U);
  EXPECT_EQ(wrong->text, "swapped");
}

TEST_F(RemoteTargetTest, AnErrorComesBackWhole) {
  fake.fails = Error{.code = Code::kExhausted,
                     .operation = "allocate",
                     .detail = "no memory",
                     .os_errno = 12,
                     .remedy = "use less"};
  const auto failed = remote->prepare({.backend = "tcp", .block_bytes = 1}, "x");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, Code::kExhausted);
  EXPECT_EQ(failed.error().text(), fake.fails->text());
}

TEST(RemoteTargets, OnesThatAreLostAreNotWaitedFor) {
  auto ends = *Channel::pair();
  const StopFlag stop{false};
  RemoteTarget target(ends.first, stop, [] { return true; });
  EXPECT_EQ(target.fill(1).error().code, Code::kPeerLost);
}

TEST(Answers, GarbledOnesAreRefused) {
  const auto whole = encodeAnswer(Error{.detail = "no"});
  EXPECT_EQ(decodeAnswer(whole).error().detail, "no");
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_EQ(decodeAnswer(std::span<const std::byte>(whole).first(length)).error().code,
              Code::kProtocol);
}

}  // namespace
}  // namespace viaduct::measure
