#include "measure/pipeline/flows_at_once.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/run/group_testing.h"

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFlowBytes = 4096;

// Two flows in the memory of one agent.
class FlowsAtOnce : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Agent::open(Settings{.listen = {}, .backends = {"local"}});
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
    auto self = agent_->self();
    ASSERT_TRUE(self && self->ready(60s));
    self_.emplace(*std::move(self));
    for (std::size_t i = 0; i < 2; ++i) {
      const PinInfo from = pin("from " + std::to_string(i)),
                    into = pin("into " + std::to_string(i));
      auto flow = Flow::plan(*agent_, *self_, {.bytes = kFlowBytes}, {from}, {into});
      ASSERT_TRUE(flow) << flow.error().text();
      flows_.push_back(*std::move(flow));
    }
  }
  PinInfo pin(const std::string& label) {
    memory_.push_back(std::make_unique<std::vector<std::byte>>(kFlowBytes));
    auto pin = agent_->pin(Segment::host(memory_.back()->data(), kFlowBytes), label);
    EXPECT_TRUE(pin) << pin.error().text();
    pins_.push_back(*std::move(pin));
    const auto announced = self_->waitPin(label, 60s);
    EXPECT_TRUE(announced) << announced.error().text();
    return *announced;
  }
  Status runBoth(std::chrono::nanoseconds duration, const Peer* other = nullptr) {
    return runAtOnce({{flows_[0]}, {flows_[1]}}, {*agent_, group_, stop_, other, 7}, duration);
  }

  std::optional<Agent> agent_;
  std::optional<Peer> self_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  std::vector<Pin> pins_;
  std::vector<Flow> flows_;
  ThreadGroup group_{std::make_shared<ThreadGroup::Table>(), {}};
  base::StopFlag stop_{false};
};

TEST_F(FlowsAtOnce, EachMovesItsBytesAtLeastOnce) {
  const auto ended = runBoth(0s);
  ASSERT_TRUE(ended) << ended.error().text();
  for (const Flow& flow : flows_) EXPECT_GE(flow.times(), 1U);
}

TEST_F(FlowsAtOnce, RepeatForTheDuration) {
  const auto start = Clock::now();
  const auto ended = runBoth(200ms);
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_GE(Clock::now() - start, 200ms);
}

TEST_F(FlowsAtOnce, EndAfterTheOtherMemberHasMovedItsBytes) {
  ASSERT_TRUE(self_->note(base::encode(FlowNews{.part = 6, .moved = true})))
      << "of an earlier part";
  // The agent is its own other member, so it hears its own note.
  const auto ended = runBoth(0s, &*self_);
  ASSERT_TRUE(ended) << ended.error().text();
}

TEST_F(FlowsAtOnce, EndWithAStopOrWithTheGroup) {
  stop_.store(true);
  static_cast<void>(runBoth(24h));
  stop_.store(false);
  group_.abandon("a member died");
  static_cast<void>(runBoth(24h));
}

TEST_F(FlowsAtOnce, ReturnTheErrorOfOne) {
  ASSERT_TRUE(pins_[2].release());
  const auto ended = runBoth(0s);
  EXPECT_FALSE(ended);
  EXPECT_GE(flows_[0].times(), 1U) << "the other flow goes on";
  EXPECT_EQ(flows_[1].times(), 0U);
}

}  // namespace
}  // namespace viaduct::measure::pipeline
