// Transfers use the rails nearest to their memory, and other rails while no near rail works. The
// test reads the used rails from the paths of an agent's transfers with itself. With N nodes, the
// fake backend has rail i and slot i on node i mod N.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/fake/fake_rail.h"
#include "support/bytes.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using Rails = std::vector<std::string>;

constexpr std::uint64_t kBytes = 8 << 20;

class NearMemory : public ::testing::Test {
 protected:
  void open(const std::string& fake, Toggle striping = Toggle::kAuto,
            const std::string& faults = {}) {
    auto agent = Agent::open({.name = "me",
                              .backends = {"fake"},
                              .striping = striping,
                              .faults = faults,
                              .faults_allowed = true,
                              .others = {{"VIADUCT_FAKE", fake}}});
    ASSERT_TRUE(agent) << agent.error().text();
    agent_ = std::make_unique<Agent>(*std::move(agent));
    auto self = agent_->importCard(agent_->exportCard());
    ASSERT_TRUE(self && self->ready(5s));
    self_ = std::make_unique<Peer>(*self);
    // Slots 0, 1 and 2 lie on three nodes, if the setting `fake` gives the fake backend three
    // nodes.
    for (const char* label : {"here0", "here1", "there"}) {
      auto pin = agent_->allocate(kBytes, {.label = label});
      ASSERT_TRUE(pin);
      ASSERT_EQ(pin->info().slot, pins_.size());
      pins_.push_back(*std::move(pin));
    }
    ASSERT_TRUE(self_->waitPin("there", 5s));
  }
  void TearDown() override {
    fake::rails_cut = 0;
    pins_.clear();
    agent_.reset();
  }

  static Selection part(const Pin& pin, std::uint64_t bytes) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = bytes, .count = 1}), {}};
  }
  Transfer plan(OpKind kind, const Selection& local, std::uint64_t bytes = kBytes) {
    auto transfer = agent_->plan(kind, *self_, local, part(pins_[2], bytes));
    EXPECT_TRUE(transfer) << transfer.error().text();
    return *std::move(transfer);
  }
  // Runs the transfer to its end. Returns the rails that carried it. Checks that their shares add
  // up to all bytes.
  static Rails carriers(Transfer& transfer, std::uint64_t bytes = kBytes) {
    EXPECT_TRUE(transfer.post());
    return ended(transfer, bytes);
  }
  static Rails ended(Transfer& transfer, std::uint64_t bytes = kBytes) {
    const auto done = transfer.wait(10s);
    EXPECT_TRUE(done) << done.error().text();
    std::map<std::string, std::uint64_t> carried;
    std::uint64_t all = 0;
    for (const PathShare& share : transfer.path().shares) {
      carried[share.rail] += share.bytes;
      all += share.bytes;
    }
    EXPECT_EQ(all, bytes) << transfer.path().text();
    Rails out;
    for (const auto& [rail, some] : carried) out.push_back(rail);
    return out;
  }

  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Peer> self_;
  std::vector<Pin> pins_;
};

TEST_F(NearMemory, OnlyTheNearRailsCarryIt) {
  open("rails=4,nodes=2");
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    Transfer of_node0 = plan(kind, part(pins_[0], kBytes)),
             of_node1 = plan(kind, part(pins_[1], kBytes));
    for (int post = 0; post < 3; ++post) {
      EXPECT_EQ(carriers(of_node0), (Rails{"fake0", "fake2"}));
      EXPECT_EQ(carriers(of_node1), (Rails{"fake1", "fake3"}));
    }
  }
}

TEST_F(NearMemory, ASmallTransferUsesANearRail) {
  open("rails=4,nodes=2");
  Transfer small = plan(OpKind::kWrite, part(pins_[1], 8), 8);
  for (int post = 0; post < 8; ++post) {
    const Rails rails = carriers(small, 8);
    EXPECT_TRUE(rails == Rails{"fake1"} || rails == Rails{"fake3"}) << rails.front();
  }
}

TEST_F(NearMemory, WithoutStripingOneNearRailCarriesIt) {
  open("rails=4,nodes=4", Toggle::kOff);
  Transfer transfer = plan(OpKind::kWrite, part(pins_[1], kBytes));
  EXPECT_EQ(carriers(transfer), Rails{"fake1"});
}

TEST_F(NearMemory, MemoryOfTwoNodesGoesByTheRailsOfBoth) {
  open("rails=6,nodes=3");
  const std::vector<Extent> both{{pins_[0].info().address, kBytes / 2},
                                 {pins_[1].info().address, kBytes / 2}};
  Transfer transfer = plan(OpKind::kWrite, {*Blocks::list(both), {}});
  EXPECT_EQ(carriers(transfer), (Rails{"fake0", "fake1", "fake3", "fake4"}));
}

TEST_F(NearMemory, EquallyNearRailsAllCarryIt) {
  open("rails=4");
  Transfer transfer = plan(OpKind::kWrite, part(pins_[1], kBytes));
  EXPECT_EQ(carriers(transfer), (Rails{"fake0", "fake1", "fake2", "fake3"}));
}

TEST_F(NearMemory, WhenTheNearRailsAreCutTheOthersCarryItUntilTheyReturn) {
  open("rails=5,nodes=2");
  Transfer transfer = plan(OpKind::kWrite, part(pins_[1], kBytes));
  EXPECT_EQ(carriers(transfer), (Rails{"fake1", "fake3"}));
  fake::rails_cut = 0b00010;
  EXPECT_EQ(carriers(transfer), Rails{"fake3"});
  fake::rails_cut = 0b01010;
  EXPECT_EQ(carriers(transfer), (Rails{"fake0", "fake2", "fake4"}));
  fake::rails_cut = 0b11111;
  EXPECT_TRUE(transfer.post());
  EXPECT_EQ(transfer.wait(10s).error().code, Code::kDevice);
  fake::rails_cut = 0;
  EXPECT_EQ(carriers(transfer), (Rails{"fake1", "fake3"}));
}

TEST_F(NearMemory, OtherRailsTakeTheSlicesOfCutRails) {
  open("rails=4,nodes=2", Toggle::kAuto, "delay=10ms");
  Transfer transfer = plan(OpKind::kWrite, part(pins_[0], kBytes));
  testing::fillRandom(pins_[0].bytes(), 7);
  EXPECT_TRUE(transfer.post());
  fake::rails_cut = 0b0101;
  ended(transfer);
  EXPECT_TRUE(testing::same(pins_[0].bytes(), pins_[2].bytes()));
}

}  // namespace
}  // namespace viaduct
