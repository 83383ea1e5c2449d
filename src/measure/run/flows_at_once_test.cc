#include "measure/run/flows_at_once.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace viaduct::measure::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFlowBytes = 4096;

Moving movingBy(Orders& orders) {
  return {.orders = orders, .look = [] { return Clock::time_point::max(); }};
}

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
    return runAtOnce({{flows_[0]}, {flows_[1]}}, {*agent_, moving_, other, 7}, duration);
  }

  // The second flow empties what the first one fills.
  Status runChain(std::chrono::nanoseconds duration) {
    RingGate gate(1, 1);
    return runAtOnce({{flows_[0], {.after = &gate}}, {flows_[1], {.before = &gate}}},
                     {*agent_, moving_, nullptr, 7}, duration);
  }

  std::optional<Agent> agent_;
  std::optional<Peer> self_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
  std::vector<Pin> pins_;
  std::vector<Flow> flows_;
  Orders orders_{Order::kGoOn};
  const Moving moving_ = movingBy(orders_);
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

TEST_F(FlowsAtOnce, EndWithAnOrder) {
  orders_.store(Order::kFinish);
  EXPECT_TRUE(runBoth(24h)) << "each flow ends its transfers";
  orders_.store(Order::kCancel);
  static_cast<void>(runBoth(24h));
}

TEST_F(FlowsAtOnce, ReturnTheErrorOfOne) {
  ASSERT_TRUE(pins_[2].release());
  const auto ended = runBoth(0s);
  EXPECT_FALSE(ended);
  EXPECT_GE(flows_[0].times(), 1U) << "the other flow goes on";
  EXPECT_EQ(flows_[1].times(), 0U);
}

TEST_F(FlowsAtOnce, OfAChainRepeatEquallyOften) {
  const auto ended = runChain(50ms);
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(flows_[1].times(), flows_[0].times());
}

TEST_F(FlowsAtOnce, OfAChainEndWithTheFirstFailure) {
  ASSERT_TRUE(pins_[2].release());
  EXPECT_FALSE(runChain(24h)) << "the second flow failed";
  EXPECT_EQ(flows_[1].times(), 0U);
  ASSERT_TRUE(pins_[0].release());
  EXPECT_FALSE(runChain(24h)) << "the first flow failed";
}

// A member with a flow in its own memory, and the member's gate of the ring between both members.
struct ChainMember {
  explicit ChainMember(const std::string& name)
      : agent(
            *Agent::open(Settings{.name = name, .listen = {"127.0.0.1:0"}, .backends = {"local"}})),
        self(*agent.self()),
        from(*agent.pin(Segment::host(memory.data(), kFlowBytes), "from")),
        into(*agent.pin(Segment::host(memory.data() + kFlowBytes, kFlowBytes), "into")) {
    EXPECT_TRUE(self.ready(60s));
    auto planned = Flow::plan(agent, self, {.bytes = kFlowBytes}, {*self.waitPin("from", 60s)},
                              {*self.waitPin("into", 60s)});
    EXPECT_TRUE(planned) << planned.error().text();
    flow.emplace(*std::move(planned));
  }
  void meet(const ChainMember& member) {
    other.emplace(*agent.importCard(member.agent.exportCard()));
    EXPECT_TRUE(other->ready(60s));
  }
  Status run(const Neighbours& neighbours, std::chrono::nanoseconds duration) {
    return runAtOnce({{*flow, neighbours}}, {agent, moving, &*other, 7, &gate}, duration);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(2 * kFlowBytes);
  Agent agent;
  Peer self;
  Pin from, into;
  std::optional<Flow> flow;
  std::optional<Peer> other;
  Orders orders{Order::kGoOn};
  const Moving moving = movingBy(orders);
  RingGate gate{1, 1};
};

class ChainOfTwoMembers : public ::testing::Test {
 protected:
  ChainOfTwoMembers() {
    first_.meet(second_);
    second_.meet(first_);
  }
  // Runs both members, and returns what each of them returned.
  std::pair<Status, Status> run(std::chrono::nanoseconds duration) {
    Status second = Ok{};
    std::thread other([&] { second = second_.run({.before = &second_.gate}, duration); });
    Status first = first_.run({.after = &first_.gate}, duration);
    other.join();
    return {std::move(first), std::move(second)};
  }
  ChainMember first_{"first"}, second_{"second"};
};

TEST_F(ChainOfTwoMembers, RepeatsEquallyOften) {
  const auto [first, second] = run(100ms);
  ASSERT_TRUE(first && second);
  EXPECT_GE(first_.flow->times(), 1U);
  EXPECT_EQ(second_.flow->times(), first_.flow->times());
}

TEST_F(ChainOfTwoMembers, EndsWithAFailureOfTheFirst) {
  ASSERT_TRUE(first_.from.release());
  const auto [first, second] = run(24h);
  EXPECT_FALSE(first);
  EXPECT_TRUE(second) << "the error is that of the flow that failed";
}

TEST_F(ChainOfTwoMembers, EndsWithAFailureOfTheSecond) {
  ASSERT_TRUE(second_.into.release());
  const auto [first, second] = run(24h);
  EXPECT_TRUE(first) << "the error is that of the flow that failed";
  EXPECT_FALSE(second);
}

}  // namespace
}  // namespace viaduct::measure::pipeline
