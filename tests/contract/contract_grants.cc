// The contract: the holder of a card reaches the pins that the card grants, in the granted
// direction, until the card is void. The owner enforces it: the holder here also lies to its own
// agent, which then posts whatever it is told, with the true slots, generations and keys.
#include <thread>
#include <utility>

#include "agent/agent_impl.h"
#include "agent/peers/peer_impl.h"
#include "base/unseen_order.h"
#include "contract/backend_contract.h"
#include "support/agent_of_a_clock.h"
#include "support/bytes.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kGranted = 64 << 10;
constexpr std::byte kTheirs{0x5a}, kOurs{0xa5};

}  // namespace

// The owner b, with a pin for the holder and one for others.
class GrantContract : public BackendContract {
 protected:
  void SetUp() override {
    if (backend() == "object" || backend() == "file") GTEST_SKIP() << "skipped: no link to peers";
    if (backend() == "fake") GTEST_SKIP() << "skipped: the holder copies, in one process";
    base_.deadline = 5s;
    owner_ = make("owner");
    holder_ = make("holder");
    b_.emplace(agent::AgentOfAClock::of(owner_));
    a_.emplace(agent::AgentOfAClock::of(holder_));
    for (auto* pin : {&granted_, &other_}) {
      auto made = b_->allocate(kGranted, {.label = pin == &granted_ ? "a/1" : "b/1"});
      ASSERT_TRUE(made) << made.error().text();
      pin->emplace(*std::move(made));
      testing::fillWith((*pin)->bytes(), kTheirs);
    }
    // A released pin leaves a free slot, to which no holder has a right.
    ASSERT_TRUE(b_->allocate(kGranted, {.label = "a/released"})->release());
    here_.emplace(*a_->allocate(kGranted));
    testing::fillWith(here_->bytes(), kOurs);
  }
  std::shared_ptr<agent::AgentImpl> make(const char* name) {
    auto made = agent::AgentImpl::open(settings(name), &clock_);
    EXPECT_TRUE(made) << made.error().text();
    return *std::move(made);
  }
  void connect(Grant grant) {
    card_ = *b_->card(std::move(grant));
    b_at_a_ = *a_->connect(card_);
    const Status ready = b_at_a_->ready(60s);
    ASSERT_TRUE(ready) << ready.error().text();
    a_at_b_ = *b_->peer("holder");
  }
  // Backends that cannot take rights back carry nothing for a limited peer.
  bool carries() const {
    const auto& backends = owner_->backends();
    return backends.checksRights(backend());
  }

  // Makes the holder's agent believe that it may read and write this pin of the owner.
  void lieAbout(const Pin& pin) {
    agent::PinMessage message;
    {
      const auto held = owner_->hold();
      message = owner_->pins().message(owner_->pins()[pin.info().slot]);
    }
    const auto held = holder_->hold();
    const agent::Still still(holder_->rails());
    const auto peer = holder_->peers().find("owner");
    ASSERT_TRUE(const_cast<agent::AnnouncedPins&>(peer->pins()).add(message));
    for (const auto& slot : peer->links())
      for (const auto& key : message.keys)
        if (holder_->backend(slot->backend()).can().name == key.backend)
          slot->link->addPin({message.info, key.bytes});
  }
  Status move(OpKind kind, const Pin& remote, const char* require = "") {
    VIADUCT_TRY(Transfer transfer,
                a_->plan(kind, *b_at_a_, whole(*here_), whole(remote), {.require = require}));
    VIADUCT_CHECK(transfer.post());
    return transfer.wait(60s);
  }
  // Expects that no byte moves between the two agents, in either direction.
  void expectOutOfReach(const Pin& remote) {
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
      for (const char* require : {"", "packed"}) {
        const Status moved = move(kind, remote, require);
        EXPECT_FALSE(moved) << opKindName(kind) << " " << require;
      }
    comeBehindTheAgents();
    EXPECT_TRUE(allAre(remote.bytes(), kTheirs));
    EXPECT_TRUE(allAre(here_->bytes(), kOurs));
  }

  std::shared_ptr<agent::AgentImpl> owner_, holder_;
  Card card_;
  std::optional<Pin> granted_, other_, here_;
};

TEST_P(GrantContract, TheHolderReachesTheGrantedPins) {
  connect({.pins = "a/*"});
  waitForPin(*b_at_a_, "a/1");
  ASSERT_EQ(b_at_a_->pins().size(), 1U) << "others are not announced";
  if (!carries()) {
    const auto planned = a_->plan(OpKind::kWrite, *b_at_a_, whole(*here_), whole(*granted_));
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().code, Code::kUnsupported) << planned.error().text();
    return;
  }
  const Status written = move(OpKind::kWrite, *granted_);
  ASSERT_TRUE(written) << written.error().text();
  comeBehindTheAgents();
  EXPECT_TRUE(allAre(granted_->bytes(), kOurs));
  testing::fillWith(granted_->bytes(), kTheirs);
  const Status read = move(OpKind::kRead, *granted_);
  ASSERT_TRUE(read) << read.error().text();
  comeBehindTheAgents();
  EXPECT_TRUE(allAre(here_->bytes(), kTheirs));
}

TEST_P(GrantContract, APinThatComesLaterIsReachedIfItsLabelMatches) {
  connect({.pins = "a/*"});
  const auto denied = b_->allocate(kGranted, {.label = "b/2"});
  const auto later = b_->allocate(kGranted, {.label = "a/2"});
  ASSERT_TRUE(denied && later);
  waitForPin(*b_at_a_, "a/2");
  EXPECT_EQ(b_at_a_->pins().size(), 2U);
  if (!carries()) return;
  const Status written = move(OpKind::kWrite, *later);
  EXPECT_TRUE(written) << written.error().text();
}

TEST_P(GrantContract, ALyingHolderDoesNotReachAnotherPin) {
  connect({.pins = "a/*"});
  lieAbout(*other_);
  expectOutOfReach(*other_);
}

TEST_P(GrantContract, ALyingHolderReachesAPinInTheGrantedDirectionOnly) {
  for (const CardAccess access : {CardAccess::kRead, CardAccess::kWrite}) {
    connect({.pins = "a/*", .access = access});
    waitForPin(*b_at_a_, "a/1");
    const bool reads = access == CardAccess::kRead;
    const OpKind forbidden = reads ? OpKind::kWrite : OpKind::kRead;
    const auto planned = a_->plan(forbidden, *b_at_a_, whole(*here_), whole(*granted_));
    ASSERT_FALSE(planned);
    EXPECT_TRUE(has(planned.error().text(), reads ? "read-only" : "write-only"));
    lieAbout(*granted_);
    EXPECT_FALSE(move(forbidden, *granted_));
    comeBehindTheAgents();
    EXPECT_TRUE(allAre(granted_->bytes(), kTheirs));
    EXPECT_TRUE(allAre(here_->bytes(), kOurs));
    b_at_a_->forget();
    ASSERT_TRUE(a_at_b_->over(a_at_b_->epoch(), 60s));
  }
}

// The holder remembers slots, generations and keys of its first card, and lies with them under the
// second one.
TEST_P(GrantContract, NothingIsReachedAfterTheCardIsRevoked) {
  connect({.pins = "*"});
  waitForPin(*b_at_a_, "b/1");
  if (carries()) {
    EXPECT_TRUE(move(OpKind::kRead, *other_));
    testing::fillWith(here_->bytes(), kOurs);
  }
  const std::uint64_t epoch = b_at_a_->epoch();
  ASSERT_TRUE(b_->revokeCard(card_));
  ASSERT_TRUE(b_at_a_->over(epoch, 60s));
  EXPECT_FALSE(move(OpKind::kWrite, *other_));
  const Status again = b_at_a_->ready(60s);
  ASSERT_FALSE(again);
  EXPECT_TRUE(has(again.error().text(), "revoked")) << again.error().text();
  connect({.pins = "a/*"});
  lieAbout(*other_);
  expectOutOfReach(*other_);
}

// The owner's memory does not change once revokeCard() has returned, whatever was on its way.
TEST_P(GrantContract, ATransferInFlightEndsFenced) {
  if (!GrantContract::carries()) GTEST_SKIP() << "skipped: it carries nothing for a limited peer";
  constexpr std::uint64_t kLarge = 32 << 20;
  const auto there = b_->allocate(kLarge, {.label = "a/large"});
  const auto from = a_->allocate(kLarge);
  ASSERT_TRUE(there && from);
  testing::fillWith(there->bytes(), kTheirs);
  for (int round = 0; round < 4; ++round) {
    connect({.pins = "a/*"});
    waitForPin(*b_at_a_, "a/large");
    testing::fillWith(from->bytes(), static_cast<std::byte>(round));
    auto transfer = a_->plan(OpKind::kWrite, *b_at_a_, whole(*from), whole(*there));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    if (round % 2 == 1) {
      const base::UnseenOrder ignored;  // looks while the transfer writes
      while (testing::countOther(there->bytes().first(4096), static_cast<std::byte>(round)) != 0 &&
             transfer->state() == TransferState::kRunning)
        std::this_thread::yield();
    }
    ASSERT_TRUE(b_->revokeCard(card_));
    const std::vector<std::byte> then(there->bytes().begin(), there->bytes().end());
    const Status ended = transfer->wait(60s);
    EXPECT_TRUE(ended || ended.error().code == Code::kDenied ||
                ended.error().code == Code::kPeerLost)
        << ended.error().text();
    const auto ready = b_at_a_->ready(60s);
    EXPECT_FALSE(ready);
    comeBehindTheAgents();
    EXPECT_TRUE(same(then, there->bytes()));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, GrantContract, ::testing::ValuesIn(everyBackend()),
                         [](const auto& one) { return one.param.name(); });

}  // namespace viaduct::testing
