// The holder of a limited card is a process of another user, and tries every means to reach memory
// beyond its grant.
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <cstdio>
#include <optional>
#include <string>

#include "agent/agent_impl.h"
#include "process/process.h"
#include "process/words.h"
#include "support/agent_of_a_clock.h"
#include "support/bytes.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr uid_t kNobody = 65534;
constexpr std::uint64_t kHeld = 64 << 10;
constexpr std::byte kSecret{0x5a};

class Holders : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "skipped: only root starts processes of other users";
    impl_ = *agent::AgentImpl::open({.name = "owner", .detect = 10s}, nullptr);
    owner_.emplace(agent::AgentOfAClock::of(impl_));
    for (auto* pin : {&granted_, &other_}) {
      pin->emplace(*owner_->allocate(kHeld, {.label = pin == &granted_ ? "a/1" : "b/1"}));
      fillWith((*pin)->bytes(), kSecret);
    }
    friend_.emplace(*Agent::open({.name = "friend", .detect = 10s}));
    ASSERT_TRUE(friend_->importCard(owner_->exportCard())->ready(20s));
    friend_at_owner_.emplace(*owner_->peer("friend"));
    auto lease = owner_->lease(*friend_at_owner_, whole(*other_),
                               {.access = MemoryAccess::kReadWrite, .duration = 600s});
    ASSERT_TRUE(lease) << lease.error().text();
    lease_.emplace(*std::move(lease));
    auto marks = owner_->openMarks(*friend_at_owner_, {.number = 7, .marks = 2});
    ASSERT_TRUE(marks) << marks.error().text();
    marks_.emplace(*std::move(marks));
    holder_.emplace(std::vector<std::string>{kGreedyHolder, std::to_string(kNobody)});
  }
  static Selection whole(const Pin& pin) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = kHeld, .count = 1}), {}};
  }
  std::string ask(const std::string& line) {
    const auto answer = holder_->ask(line, 300s);
    return answer.value_or("the holder ended");
  }
  // All that the owner knows of a pin, its keys included.
  std::string messageOf(const Pin& pin) {
    const auto held = impl_->hold();
    return toHex(base::encode(impl_->pins().message(impl_->pins()[pin.info().slot])));
  }
  void expectOutOfReach(const Card& card, const Pin& pin, int least) {
    const std::string said = ask("grab " + toHex(card.encode()) + " " + messageOf(pin) + " " +
                                 toHex(lease_->ticket()) + " " + std::to_string(::getpid()));
    std::printf("%s: %s\n", pin.info().label.c_str(), said.c_str());
    EXPECT_TRUE(said.ends_with(" tried; reached:")) << said;
    EXPECT_GE(std::stoi("0" + said.substr(3)), least) << said;
    EXPECT_TRUE(allAre(pin.bytes(), kSecret)) << "the owner's bytes have changed";
    while (const auto note = owner_->takeNote()) ADD_FAILURE() << "a note of a refused write";
    EXPECT_FALSE(marks_->has(1)) << "a mark of another peer's stream";
    EXPECT_EQ(lease_->state(), LeaseState::kLive);
    EXPECT_EQ(friend_at_owner_->state(), PeerState::kReady);
  }

  std::shared_ptr<agent::AgentImpl> impl_;
  std::optional<Agent> owner_, friend_;
  std::optional<Pin> granted_, other_;
  std::optional<Peer> friend_at_owner_;
  std::optional<Lease> lease_;
  std::optional<MarkStream> marks_;
  std::optional<Process> holder_;
};

TEST_F(Holders, OfAnotherUserReachNothingBeyondTheirGrant) {
  const Card card = *owner_->card({.pins = "a/*"});
  const std::string connected = ask("connect " + toHex(card.encode()));
  ASSERT_EQ(connected, "ok ");
  const std::string moved = ask("move");
  ASSERT_TRUE(moved.starts_with("ok ")) << moved;
  owner_->poll();  // TSan sees no order through the other process
  EXPECT_FALSE(allAre(granted_->bytes(), kSecret)) << "it reaches what it may: " << moved;
  fillWith(granted_->bytes(), kSecret);
  expectOutOfReach(card, *other_, 30);

  ASSERT_TRUE(owner_->revokeCard(card));
  expectOutOfReach(card, *other_, 20);
  expectOutOfReach(card, *granted_, 20);
}

}  // namespace
}  // namespace viaduct::testing
