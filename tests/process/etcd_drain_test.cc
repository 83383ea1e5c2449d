// A process that meets its peers at an etcd drains: it gives up its name first, and a successor
// takes the name while the old process still has work.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "process/process.h"
#include "process/words.h"
#include "support/bytes.h"
#include "support/etcd_server.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr std::uint64_t kLent = 64 << 10;

class EtcdDrain : public ::testing::Test {
 protected:
  void SetUp() override {
    VIADUCT_NEEDS_ETCD();
    etcd_.emplace();
    user_.emplace(*Agent::open({.name = "user",
                                .secret = "swordfish",
                                .backends = {"tcp"},
                                .detect = 10s,
                                .meet = etcd_->url()}));
    here_.emplace(*user_->allocate(kLent));
  }
  // A process under that name, whose memory has this byte everywhere.
  std::unique_ptr<PeerProcess> start(const std::string& name, int byte) const {
    auto out = std::make_unique<PeerProcess>(
        "name=" + name + " secret=swordfish backends=tcp detect=10000 meet=" + etcd_->url());
    out->must("memory data " + std::to_string(kLent));
    out->must("fill data " + std::to_string(byte));
    return out;
  }
  static Selection whole(const PinInfo& pin) {
    return {*Blocks::strided({.base = pin.address, .bytes = kLent, .count = 1}), {}};
  }
  // Reads the peer's memory, and returns the byte that it has everywhere; -1: it differs.
  Result<int> read(const Peer& peer) {
    VIADUCT_CHECK(peer.ready(kPatience));
    VIADUCT_TRY(const PinInfo data, peer.waitPin("data", kPatience));
    VIADUCT_TRY(auto transfer, user_->plan(OpKind::kRead, peer, whole(here_->info()), whole(data)));
    return moved(transfer);
  }
  Result<int> moved(Transfer& transfer) const {
    VIADUCT_CHECK(transfer.post());
    VIADUCT_CHECK(transfer.wait(kPatience));
    const std::byte first = here_->bytes()[0];
    return allAre(here_->bytes(), first) ? std::to_integer<int>(first) : -1;
  }
  bool isPublished(const std::string& name) const {
    return etcd_->ctl("get --prefix --keys-only /viaduct/").find(name) != std::string::npos;
  }

  std::optional<EtcdServer> etcd_;
  std::optional<Agent> user_;
  std::optional<Pin> here_;
};

TEST_F(EtcdDrain, ASuccessorTakesTheNameWhileALeaseKeepsTheOldProcess) {
  const auto old = start("store", 1);
  const Peer before = *user_->find("store", kPatience);
  EXPECT_EQ(*read(before), 1);
  ASSERT_TRUE(isPublished("store"));
  auto lease = user_->borrow(before, fromHex(old->must("lend l user data 65536 read 600000")));
  ASSERT_TRUE(lease) << lease.error().text();
  auto lent = user_->plan(OpKind::kRead, *lease, whole(here_->info()));
  ASSERT_TRUE(lent) << lent.error().text();

  old->process().send("drain 600000");
  const auto until = Clock::now() + kPatience;
  while (before.state() == PeerState::kReady && Clock::now() < until)
    std::this_thread::sleep_for(1ms);
  ASSERT_EQ(before.state(), PeerState::kDraining);
  EXPECT_FALSE(isPublished("store")) << "the name is given up before a peer hears of the drain";

  const auto successor = start("store", 2);
  const auto after = user_->find("store", kPatience);
  ASSERT_TRUE(after) << after.error().text();
  const auto byte = read(*after);
  ASSERT_TRUE(byte) << byte.error().text();
  EXPECT_EQ(*byte, 2);
  const auto still = moved(*lent);
  ASSERT_TRUE(still) << still.error().text();
  EXPECT_EQ(*still, 1) << "the lease goes on at the old process";

  lease->giveBack();
  EXPECT_EQ(old->process().answer(kPatience).value_or("nothing"), "ok 0") << "nothing was cut off";
  EXPECT_TRUE(isPublished("store")) << "the end of the old process leaves the successor's entry";
  const auto again = read(*after);
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, 2);
}

}  // namespace
}  // namespace viaduct::testing
