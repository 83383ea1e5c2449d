// Rounds of random kills and freezes, from a seed: VIADUCT_KILL_ROUNDS sets their number,
// VIADUCT_SEED the seed. One survivor per path lives through all of them.
#include <thread>

#include "base/random.h"
#include "process/pair.h"
#include "process/seeds.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class RandomKills : public ::testing::TestWithParam<DataPath> {
 protected:
  struct Load {
    Survivor::Memory target, buffer;
    std::optional<Transfer> transfer;
    std::optional<Storm> storm;
  };

  // A random mixture of transfers: the survivor's writes or reads at the victim, and the victim's
  // here.
  void blow(Load& load) {
    if (random_.chance(0.7)) {
      load.transfer.emplace(survivor_.plan(random_.chance(0.5) ? OpKind::kWrite : OpKind::kRead,
                                           load.buffer, "data",
                                           std::uint64_t{4096} << random_.below(8)));
      load.storm.emplace(*load.transfer);
    }
    blows_itself_ = random_.chance(0.7);
    if (blows_itself_) {
      victim_->must(std::string("plan t ") + (random_.chance(0.5) ? "write" : "read") +
                    " survivor data " + target_ + " 65536");
      victim_->must("storm t");
    }
  }

  void round() {
    // A new label each round, because the victim may not yet know that the last pin was withdrawn.
    target_ = "target" + std::to_string(++rounds_);
    Load load{
        survivor_.memory(Survivor::kData, target_), survivor_.memory(Survivor::kData, ""), {}, {}};
    blow(load);
    // The moment of the fault is random.
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(20'000)));
    const Peer peer = survivor_.peer();
    const auto epoch = peer.epoch();
    const bool freeze = random_.chance(0.2);
    if (freeze) victim_->process().stop();
    if (!freeze || random_.chance(0.5)) victim_->process().kill();
    const bool dead = victim_->process().pid() < 0;

    const auto start = Clock::now();
    ASSERT_TRUE(peer.over(epoch, 20s));
    if (load.storm) {
      const auto failure = load.storm->failure(10s);
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->code, Code::kPeerLost) << failure->text();
    }
    slowest_ = std::max(slowest_, Clock::now() - start);
    load.buffer.fill(0x11);
    const bool settled = peer.settled();
    if (dead) {
      EXPECT_TRUE(settled) << "the dead write nothing";
    }
    if (settled) load.target.fill(0x22);
    if (dead)
      victim_ = survivor_.start();
    else
      comeBack(settled && blows_itself_);
    survivor_.expectWorks(*victim_);
    EXPECT_EQ(load.buffer.differ(0x11), 0);
    if (settled) {
      EXPECT_EQ(load.target.differ(0x22), 0);
    }
  }

  // A process that was stopped between two posts would make its next post once it is admitted
  // again. Another process takes its name until its storm has ended.
  void comeBack(bool calm) {
    const auto other = calm ? survivor_.start() : nullptr;
    victim_->process().resume();
    if (calm) {
      victim_->must("calm t 20000");
      other->process().kill();
    }
    victim_->must("ready survivor 20000");
    ASSERT_TRUE(survivor_.peer().ready(20s));
  }

  base::Random random_{0};
  std::string target_;
  bool blows_itself_ = false;
  unsigned rounds_ = 0;
  Duration slowest_{};
  Survivor survivor_{GetParam()};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_P(RandomKills, TheSurvivorGoesOn) {
  const std::uint64_t seed = fromEnvironment("VIADUCT_SEED", 1);
  const std::uint64_t rounds = fromEnvironment("VIADUCT_KILL_ROUNDS", 6);
  std::printf("VIADUCT_SEED=%llu, %llu rounds\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(rounds));
  random_ = base::Random(seed);
  for (std::uint64_t i = 0; i < rounds && !HasFailure(); ++i) {
    SCOPED_TRACE("round " + std::to_string(i) + " of seed " + std::to_string(seed));
    round();
  }
  std::printf("slowest to be noticed: %lld ms\n",
              static_cast<long long>(
                  std::chrono::duration_cast<std::chrono::milliseconds>(slowest_).count()));
}

INSTANTIATE_TEST_SUITE_P(Ways, RandomKills, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
