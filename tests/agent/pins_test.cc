// The limit on an agent's pins. Peers keep a bounded number, and end the session of an agent that
// announces more, so the agent itself refuses more.
#include <gtest/gtest.h>
#include <time.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

class Pins : public ::testing::Test {
 protected:
  static Agent opened(const char* name) {
    return *Agent::open({.name = name, .listen = {}, .backends = {"local"}, .detect = 60s});
  }
  Result<Pin> pin(std::string label = {}) {
    return agent_.pin(Segment::host(memory_.data(), memory_.size()), std::move(label));
  }
  // Expects that a peer accepts all of the pins.
  void expectWelcome(std::size_t pins) {
    Agent other = opened("other");
    const auto peer = other.importCard(agent_.exportCard());
    ASSERT_TRUE(peer);
    const Status ready = peer->ready(60s);
    ASSERT_TRUE(ready) << ready.error().text();
    EXPECT_EQ(peer->pins().size(), pins);
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(4096);
  Agent agent_ = opened("agent");
  std::vector<Pin> pins_;
};

TEST_F(Pins, AreNoMoreThanPeersAccept) {
  constexpr std::size_t kMost = 65'536;
  for (std::size_t i = 0; i < kMost; ++i) pins_.push_back(*pin());
  const auto more = pin();
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, Code::kExhausted);
  EXPECT_NE(more.error().text().find("65536"), std::string::npos) << more.error().text();
  expectWelcome(kMost);
  pins_.pop_back();
  EXPECT_TRUE(pin());
}

// The processor time of this thread.
std::chrono::nanoseconds timeUsed() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

// Releases the next pins, and returns the processor time that this takes.
std::chrono::nanoseconds releaseTime(std::span<Pin> pins) {
  const auto before = timeUsed();
  for (Pin& pin : pins) EXPECT_TRUE(pin.release());
  return timeUsed() - before;
}

TEST(ManyPins, AReleaseCostsTheSameAmongFewAndMany) {
  constexpr std::size_t kPins = 16'000, kEach = kPins / 16;
  Agent agent = *Agent::open({.name = "many", .listen = {}, .backends = {"local", "cuda"}});
  std::vector<std::byte> memory(kPins * 64);
  std::vector<Pin> pins;
  for (std::size_t i = 0; i < kPins; ++i)
    pins.push_back(*agent.pin(Segment::host(memory.data() + 64 * i, 64)));
  const std::span all(pins);
  const auto among_many = releaseTime(all.first(kEach));
  releaseTime(all.subspan(kEach, kPins - 2 * kEach));
  const auto among_few = releaseTime(all.last(kEach));
  EXPECT_LT(among_many, 5 * among_few);
}

TEST_F(Pins, LabelsCountAgainstTheLimit) {
  const std::string label(1000, 'x');
  auto one = pin(label);
  for (; one && pins_.size() < 65'536; one = pin(label)) pins_.push_back(*std::move(one));
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, Code::kExhausted);
  EXPECT_NE(one.error().text().find("33554432"), std::string::npos) << one.error().text();
  EXPECT_NE(one.error().remedy.find("shorter labels"), std::string::npos);
  expectWelcome(pins_.size());
  pins_.pop_back();
  EXPECT_TRUE(pin(label));
}

}  // namespace
}  // namespace viaduct
