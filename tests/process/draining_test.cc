// Agents that drain while processes post, die and freeze: the drain ends in time, each end learns
// one outcome, and memory is its owner's own afterwards.
#include <algorithm>
#include <atomic>
#include <future>

#include "process/pair.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kDrainDetect = 2s;
constexpr auto kDrainGrace = 500ms;
constexpr auto kDrainSlack = 10s;  // for a busy machine

using Drained = Result<std::vector<DrainLeft>>;

class Draining : public ::testing::TestWithParam<DataPath> {
 protected:
  // The victim reads or writes the survivor's memory without a pause.
  void storm(const std::string& kind) {
    memory_.emplace(survivor_.memory(Survivor::kData, "target"));
    memory_->fill(0x11);
    victim_->must("plan t " + kind + " survivor data target 65536");
    victim_->must("storm t");
  }
  // The victim writes the survivor's memory under a lease, without a pause.
  void stormUnderLease() {
    memory_.emplace(survivor_.memory(Survivor::kData, "target"));
    auto lease = survivor_.agent().lease(
        survivor_.peer(),
        {*Blocks::strided({.base = memory_->pin->info().address,
                           .bytes = Survivor::kBlock,
                           .count = Survivor::kData / Survivor::kBlock})},
        {.access = MemoryAccess::kReadWrite, .duration = 600s, .on_end = [this](LeaseState) {
           ++told_;
         }});
    ASSERT_TRUE(lease) << lease.error().text();
    lease_.emplace(*std::move(lease));
    victim_->must("borrow l survivor target " + toHex(lease_->ticket()));
    victim_->must("planunder t write l data 65536");
    victim_->must("storm t");
  }
  void drainUnderStorm(const std::string& kind);
  std::future<Drained> drain(Deadline until) {
    return std::async(std::launch::async, [this, until] { return survivor_.agent().drain(until); });
  }
  void waitUntilAnswered() {
    const auto answered = [&] {
      const auto state = survivor_.agent().drainState();
      return !state.left.empty() && std::ranges::all_of(state.left, &DrainLeft::answered);
    };
    const auto end = Clock::now() + kDrainSlack;
    while (!answered() && Clock::now() < end) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(answered());
  }

  Survivor survivor_{GetParam(), kDrainDetect, kDrainGrace};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
  std::atomic<int> told_{0};
  std::optional<Survivor::Memory> memory_;
  std::optional<Lease> lease_;
};

// At the drain the running post ends, and the next post is refused.
void Draining::drainUnderStorm(const std::string& kind) {
  storm(kind);
  const auto rest = survivor_.agent().drain(60s);
  ASSERT_TRUE(rest) << rest.error().text();
  EXPECT_TRUE(rest->empty());
  memory_->fill(0x22);
  const std::string end = victim_->must("calm t 20000");
  EXPECT_TRUE(end.starts_with("draining ")) << end;
  EXPECT_EQ(memory_->differ(0x22), 0);
}
TEST_P(Draining, LosesNoWriteOfAPeerThatPostsWithoutAPause) { drainUnderStorm("write"); }
TEST_P(Draining, LosesNoReadOfAPeerThatPostsWithoutAPause) { drainUnderStorm("read"); }

TEST_P(Draining, EndsWhenAPeerWithALeaseIsKilled) {
  stormUnderLease();
  auto drained = drain(600s);
  waitUntilAnswered();
  victim_->process().kill();
  const auto rest = drained.get();
  ASSERT_TRUE(rest) << rest.error().text();
  EXPECT_TRUE(rest->empty());
  EXPECT_EQ(*lease_->wait(kDrainSlack), LeaseState::kPeerLost);
  EXPECT_EQ(told_, 1);
}

TEST_P(Draining, RevokesTheLeaseOfAPeerThatGoesOnAtTheDeadline) {
  stormUnderLease();
  const auto rest = survivor_.agent().drain(100ms);
  ASSERT_TRUE(rest) << rest.error().text();
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_EQ(rest->front().peer, "victim");
  EXPECT_EQ(rest->front().lent, 1U);
  const auto outcome = lease_->wait(kDrainSlack);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(*outcome == LeaseState::kRevoked || *outcome == LeaseState::kPeerLost);
  EXPECT_EQ(told_, 1);
  memory_->fill(0x22);
  const std::string end = victim_->must("calm t 20000");
  EXPECT_TRUE(end.starts_with("stale ") || end.starts_with("peer lost ")) << end;
  EXPECT_EQ(memory_->differ(0x22), 0);
}

// The peer is stopped, perhaps inside a copy. The drain ends in time, and the error of revoke()
// says whether memory is free.
TEST_P(Draining, EndsAtItsDeadlineWhenAPeerIsFrozen) {
  stormUnderLease();
  victim_->process().stop();
  const auto start = Clock::now();
  const auto rest = survivor_.agent().drain(300ms);
  std::printf("drained in %lld ms\n", static_cast<long long>(since(start)));
  ASSERT_TRUE(rest) << rest.error().text();
  EXPECT_LT(Clock::now() - start, 300ms + 2 * kDrainGrace + kDrainSlack);
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_FALSE(rest->front().answered);
  EXPECT_EQ(*lease_->wait(kDrainSlack), LeaseState::kPeerLost);
  EXPECT_EQ(told_, 1);
  victim_->process().resume();
  const std::string end = victim_->must("calm t 20000");
  EXPECT_TRUE(end.starts_with("peer lost ") || end.starts_with("stale ")) << end;
  const Status released = memory_->pin->release();
  EXPECT_TRUE(released) << released.error().text();
}

TEST_P(Draining, AProcessThatIsKilledInItsDrainIsLostAndComesBack) {
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->must("lend l survivor data 65536 read 600000");
  victim_->process().send("drain 600000");
  const auto end = Clock::now() + kDrainSlack;
  while (peer.state() != PeerState::kDraining && Clock::now() < end)
    std::this_thread::sleep_for(1ms);
  ASSERT_EQ(peer.state(), PeerState::kDraining);
  victim_->process().kill();
  ASSERT_TRUE(peer.over(epoch, kDrainSlack));
  EXPECT_EQ(peer.state(), PeerState::kLost);
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
}

INSTANTIATE_TEST_SUITE_P(Ways, Draining, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
