// Leases between two agents of one process, or of an agent with itself: each end learns the outcome
// once, and an access after it is stale.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "agent/session/lease_ticket.h"
#include "backends/fake/fake_rail.h"
#include "base/movable_clock.h"
#include "support/agent_of_a_clock.h"
#include "support/bytes.h"
#include "support/text.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using testing::has;

constexpr std::uint64_t kBlock = 4096, kBlocks = 64;

// The agent `owner_` lends memory, and `user_` borrows it. The test moves their clock.
class Leases : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { open(GetParam()); }
  void open(const char* backend, const char* faults = "") {
    for (auto* agent : {&owner_, &user_}) {
      Settings settings{.backends = {backend},
                        .detect = 8h,
                        .deadline = 8h,
                        .grace = 60s,
                        .faults = faults,
                        .faults_allowed = true};
      settings.name = agent == &owner_ ? "owner" : "user";
      auto opened = agent::AgentOfAClock::open(settings, clock_);
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    lent_.emplace(*owner_->allocate(kBlock * kBlocks, {.label = "lent"}));
    here_.emplace(*user_->allocate(kBlock * kBlocks, {.label = "here"}));
    connect();
  }
  void connect() {
    at_user_ = *user_->importCard(owner_->exportCard());
    ASSERT_TRUE(at_user_->ready(20s));
    at_owner_ = *owner_->peer("user");
    ASSERT_TRUE(at_owner_->ready(20s) && at_user_->waitPin("lent", 20s));
  }

  static Selection blocks(const Pin& pin, Indices indices = {}) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = kBlock, .count = kBlocks}),
            std::move(indices)};
  }
  Lease lend(Indices indices = {}, LeaseOptions options = {}) {
    if (!options.on_end)
      options.on_end = [this](LeaseState outcome) { tell(owner_heard_, outcome); };
    auto lease = owner_->lease(*at_owner_, blocks(*lent_, std::move(indices)), std::move(options));
    EXPECT_TRUE(lease) << lease.error().text();
    return *std::move(lease);
  }
  BorrowedLease borrow(const Lease& lease) {
    auto borrowed = user_->borrow(*at_user_, lease.ticket(),
                                  [this](LeaseState outcome) { tell(user_heard_, outcome); });
    EXPECT_TRUE(borrowed) << borrowed.error().text();
    return *std::move(borrowed);
  }
  Transfer plan(OpKind kind, const BorrowedLease& lease, Indices positions = {}) {
    Indices local;
    const std::uint64_t count = positions.empty() ? lease.blocks().count() : positions.size();
    for (std::uint32_t i = 0; i < count; ++i) local.push_back(i);
    auto planned = user_->plan(kind, lease, blocks(*here_, local), std::move(positions));
    EXPECT_TRUE(planned) << planned.error().text();
    return *std::move(planned);
  }

  static void tell(std::atomic<int>& heard, LeaseState outcome) {
    heard += 100 + static_cast<int>(outcome);
  }
  // Expects that both ends learn this outcome, once.
  void expectOnce(Lease& lent, BorrowedLease& held, LeaseState outcome) {
    const auto at_owner = lent.wait(20s), at_user = held.wait(20s);
    ASSERT_TRUE(at_owner && at_user);
    EXPECT_EQ(*at_owner, outcome);
    EXPECT_EQ(*at_user, outcome);
    EXPECT_EQ(lent.state(), outcome);
    EXPECT_EQ(held.state(), outcome);
    waitForCallbacks();
    EXPECT_EQ(owner_heard_, 100 + static_cast<int>(outcome));
    EXPECT_EQ(user_heard_, 100 + static_cast<int>(outcome));
  }
  void waitForCallbacks() {
    while (owner_heard_ == 0 || user_heard_ == 0) {
      owner_->poll();
      user_->poll();
    }
  }
  static void expectStale(const Status& status, const std::string& text) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kStale);
    EXPECT_TRUE(has(status.error().detail, text)) << status.error().text();
    EXPECT_FALSE(status.error().remedy.empty());
  }

  base::MovableClock clock_;
  std::atomic<int> owner_heard_{0}, user_heard_{0};
  std::optional<Agent> owner_, user_;
  std::optional<Pin> lent_, here_;
  std::optional<Peer> at_owner_, at_user_;
};

TEST_P(Leases, LetThePeerReadTheLentBlocks) {
  testing::fillRandom(lent_->bytes(), 1);
  Lease lease = lend({8, 9, 20});
  BorrowedLease borrowed = borrow(lease);
  EXPECT_EQ(borrowed.number(), 1U);
  EXPECT_EQ(borrowed.blocks().count(), 3U);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  ASSERT_TRUE(transfer.wait(20s));
  EXPECT_TRUE(testing::same(here_->bytes().first(2 * kBlock),
                            lent_->bytes().subspan(8 * kBlock, 2 * kBlock)));
  EXPECT_TRUE(testing::same(here_->bytes().subspan(2 * kBlock, kBlock),
                            lent_->bytes().subspan(20 * kBlock, kBlock)));
  Transfer second = plan(OpKind::kRead, borrowed, {2});
  ASSERT_TRUE(second.post());
  ASSERT_TRUE(second.wait(20s));
  EXPECT_TRUE(
      testing::same(here_->bytes().first(kBlock), lent_->bytes().subspan(20 * kBlock, kBlock)));
}

TEST_P(Leases, EndAsReturnedWhenTheyAreGivenBack) {
  Lease lease = lend();
  BorrowedLease borrowed = borrow(lease);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  ASSERT_TRUE(transfer.wait(20s));
  borrowed.giveBack();
  EXPECT_EQ(borrowed.state(), LeaseState::kReturned);
  expectOnce(lease, borrowed, LeaseState::kReturned);
  expectStale(transfer.post(), "lease 1 was given back");
  ASSERT_TRUE(lease.revoke());
  EXPECT_EQ(lease.state(), LeaseState::kReturned);
  const auto again = user_->borrow(*at_user_, lease.ticket());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kStale);
}

TEST_P(Leases, EndAsReturnedWhenTheirHandleGoes) {
  Lease lease = lend();
  static_cast<void>(borrow(lease));
  const auto outcome = lease.wait(20s);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(*outcome, LeaseState::kReturned);
}

TEST_P(Leases, EndAsRevokedAndLaterPostsAreStale) {
  Lease lease = lend();
  BorrowedLease borrowed = borrow(lease);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  ASSERT_TRUE(transfer.wait(20s));
  ASSERT_TRUE(lease.revoke());
  expectOnce(lease, borrowed, LeaseState::kRevoked);
  clock_.advance(3s);
  expectStale(transfer.post(), "lease 1 was revoked 3");
  EXPECT_EQ(transfer.state(), TransferState::kDone) << "of the post before";
  const auto planned = user_->plan(OpKind::kRead, borrowed, blocks(*here_));
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, Code::kStale);
  EXPECT_EQ(user_->statistics().stale, 2U);
}

TEST_P(Leases, EndAsExpiredOnTheOwnersClock) {
  Lease lease = lend({}, {.duration = 10s});
  BorrowedLease borrowed = borrow(lease);
  clock_.advance(9s);
  ASSERT_TRUE(lease.renew(5s));
  clock_.advance(4s);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  ASSERT_TRUE(transfer.wait(20s));
  EXPECT_EQ(lease.state(), LeaseState::kLive);
  clock_.advance(1s);
  expectOnce(lease, borrowed, LeaseState::kExpired);
  expectStale(transfer.post(), "lease 1 expired");
  const auto renewed = lease.renew(1s);
  expectStale(renewed, "lease 1 expired");
}

// A ticket that comes late does not open a lease again, however many leases have ended meanwhile.
TEST_P(Leases, ThatEndedBeforeTheirTicketCameAreStale) {
  Lease lease = lend();
  const auto ticket = lease.ticket();
  ASSERT_TRUE(lease.revoke());
  clock_.advance(2s);
  const auto refused = user_->borrow(*at_user_, ticket);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kStale);
  EXPECT_TRUE(has(refused.error().detail, "lease 1 was revoked 2")) << refused.error().text();
  for (int i = 0; i < 1100; ++i) ASSERT_TRUE(lend().revoke());
  const auto later = user_->borrow(*at_user_, ticket);
  ASSERT_FALSE(later);
  EXPECT_TRUE(has(later.error().detail, "lease 1 ended more than ")) << later.error().text();
}

TEST_P(Leases, ForWritingLetThePeerWrite) {
  testing::fillRandom(here_->bytes(), 2);
  testing::fillWith(lent_->bytes(), std::byte{0});
  Lease lease = lend({1}, {.access = MemoryAccess::kReadWrite});
  BorrowedLease borrowed = borrow(lease);
  EXPECT_EQ(borrowed.access(), MemoryAccess::kReadWrite);
  Transfer transfer = plan(OpKind::kWrite, borrowed);
  ASSERT_TRUE(transfer.post());
  ASSERT_TRUE(transfer.wait(20s));
  borrowed.giveBack();
  ASSERT_EQ(*lease.wait(20s), LeaseState::kReturned);
  EXPECT_TRUE(testing::same(lent_->bytes().subspan(kBlock, kBlock), here_->bytes().first(kBlock)));
}

TEST_P(Leases, ForReadingRefuseWrites) {
  Lease lease = lend();
  BorrowedLease borrowed = borrow(lease);
  const auto planned = user_->plan(OpKind::kWrite, borrowed, blocks(*here_));
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, Code::kDenied);
  EXPECT_TRUE(has(planned.error().detail, "lease 1 is for reading"));
}

TEST_P(Leases, GoInBothDirections) {
  Lease lease = lend();
  auto back = user_->lease(*at_user_, blocks(*here_, {0}), {.access = MemoryAccess::kReadWrite});
  ASSERT_TRUE(back) << back.error().text();
  BorrowedLease borrowed = borrow(lease);
  ASSERT_TRUE(at_owner_->waitPin("here", 20s));
  auto other = owner_->borrow(*at_owner_, back->ticket());
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_EQ(other->number(), 1U);
  ASSERT_TRUE(back->revoke());
  EXPECT_EQ(*other->wait(20s), LeaseState::kRevoked);
  EXPECT_EQ(borrowed.state(), LeaseState::kLive);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  EXPECT_TRUE(transfer.post() && transfer.wait(20s));
}

TEST_P(Leases, OfAnAgentWithItself) {
  if (GetParam() == std::string("tcp")) GTEST_SKIP() << "skipped: no network reaches own memory";
  auto self = owner_->self();
  ASSERT_TRUE(self && self->ready(20s) && self->waitPin("lent", 20s));
  auto mine = owner_->allocate(kBlock);
  ASSERT_TRUE(mine && self->waitPin("", 20s));
  auto lease = owner_->lease(*self, blocks(*lent_, {3}));
  ASSERT_TRUE(lease) << lease.error().text();
  auto borrowed = owner_->borrow(*self, lease->ticket());
  ASSERT_TRUE(borrowed) << borrowed.error().text();
  testing::fillRandom(lent_->bytes(), 4);
  const Selection whole{
      *Blocks::strided({.base = mine->info().address, .bytes = kBlock, .count = 1})};
  auto transfer = owner_->plan(OpKind::kRead, *borrowed, whole);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post() && transfer->wait(20s));
  EXPECT_TRUE(testing::same(mine->bytes(), lent_->bytes().subspan(3 * kBlock, kBlock)));
  ASSERT_TRUE(lease->revoke());
  EXPECT_EQ(borrowed->state(), LeaseState::kRevoked);
  expectStale(transfer->post(), "lease 1 was revoked");
  auto second = owner_->lease(*self, blocks(*lent_, {3}));
  ASSERT_TRUE(second);
  static_cast<void>(owner_->borrow(*self, second->ticket()));
  EXPECT_EQ(*second->wait(20s), LeaseState::kReturned);
}

TEST_P(Leases, EndAsPeerLostAtBothEndsWhenTheSessionIsOver) {
  Lease lease = lend();
  BorrowedLease borrowed = borrow(lease);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  const auto ticket = lease.ticket();
  at_owner_->forget();
  expectOnce(lease, borrowed, LeaseState::kPeerLost);
  EXPECT_TRUE(lease.revoke());
  connect();
  expectStale(transfer.post(), "lease 1 ended with its session");
  const auto refused = user_->borrow(*at_user_, ticket);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kStale);
  owner_heard_ = user_heard_ = 0;
  Lease next = lend();
  EXPECT_EQ(next.number(), 1U) << "counted in each session";
  BorrowedLease borrowed_next = borrow(next);
  ASSERT_TRUE(next.revoke());
  expectOnce(next, borrowed_next, LeaseState::kRevoked);
}

TEST_P(Leases, EndWithTheirAgents) {
  Lease lease = lend();
  std::optional<BorrowedLease> borrowed = borrow(lease);
  user_->close();
  EXPECT_EQ(*lease.wait(20s), LeaseState::kPeerLost);
  EXPECT_EQ(borrowed->state(), LeaseState::kPeerLost);
  owner_.reset();
  EXPECT_TRUE(lease.revoke());
  EXPECT_FALSE(lease.renew(1s));
}

TEST_P(Leases, EndWithThePinOfTheirMemory) {
  Lease lease = lend({5});
  BorrowedLease borrowed = borrow(lease);
  ASSERT_TRUE(lent_->release());
  expectOnce(lease, borrowed, LeaseState::kRevoked);
}

TEST_P(Leases, AreCounted) {
  Lease kept = lend(), revoked = lend(), returned = lend(), expired = lend({}, {.duration = 1s});
  BorrowedLease live = borrow(kept);
  static_cast<void>(borrow(returned));
  ASSERT_TRUE(revoked.revoke());
  clock_.advance(1s);
  ASSERT_TRUE(expired.wait(20s) && returned.wait(20s));
  const LeaseStatistics lent = owner_->statistics().lent;
  EXPECT_EQ(lent.live, 1U);
  EXPECT_EQ(lent.returned, 1U);
  EXPECT_EQ(lent.revoked, 1U);
  EXPECT_EQ(lent.expired, 1U);
  EXPECT_EQ(lent.peer_lost, 0U);
  const LeaseStatistics borrowed = user_->statistics().borrowed;
  EXPECT_EQ(borrowed.live, 1U);
  EXPECT_EQ(borrowed.returned, 1U);
  at_owner_->forget();
  ASSERT_TRUE(live.wait(20s));
  EXPECT_EQ(owner_->statistics().lent.peer_lost, 1U);
  EXPECT_EQ(user_->statistics().borrowed.peer_lost, 1U);
  EXPECT_EQ(user_->statistics().borrowed.live, 0U);
}

INSTANTIATE_TEST_SUITE_P(Every, Leases, ::testing::Values("fake", "local", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

// Leases over a backend whose ops never end by themselves.
class SlowLeases : public Leases {
 protected:
  void SetUp() override { open("fake", "stop"); }
};

TEST_F(SlowLeases, EndTheTransfersThatRun) {
  Lease lease = lend();
  BorrowedLease borrowed = borrow(lease);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  ASSERT_TRUE(lease.revoke());
  EXPECT_EQ(transfer.state(), TransferState::kFailed);
  expectStale(transfer.wait(20s), "lease 1 was revoked during the transfer");
  expectOnce(lease, borrowed, LeaseState::kRevoked);
  EXPECT_EQ(user_->statistics().stale, 1U);
}

// Leases over rails that give no op back before letBack(), even if it was cancelled.
class HangingLeases : public Leases {
 protected:
  void SetUp() override {
    open("fake");
    fake::interruption.with([](auto& one) { one = [] { return false; }; });
  }
  void TearDown() override { letBack(); }
  static void letBack() {
    fake::interruption.with([](auto& one) { one = nullptr; });
  }
};

// An op that was cancelled may still touch the memory until it comes back.
TEST_F(HangingLeases, EndOnceTheirCancelledOpsAreBack) {
  Lease lease = lend({}, {.duration = 1s});
  BorrowedLease borrowed = borrow(lease);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  clock_.advance(1s);
  for (int after = 0; after < 100; after += borrowed.state() == LeaseState::kLive ? 0 : 1) {
    owner_->poll();
    user_->poll();
  }
  EXPECT_EQ(borrowed.state(), LeaseState::kEnding);
  EXPECT_EQ(lease.state(), LeaseState::kEnding);
  EXPECT_EQ(transfer.state(), TransferState::kRunning);
  letBack();
  expectOnce(lease, borrowed, LeaseState::kExpired);
  EXPECT_EQ(transfer.state(), TransferState::kFailed);
}

// The owner may use the blocks as soon as it knows the outcome, so the outcome follows the last
// post.
TEST_F(SlowLeases, AreReturnedOnceTheirPostsHaveEnded) {
  Lease lease = lend();
  BorrowedLease borrowed = borrow(lease);
  Transfer first = plan(OpKind::kRead, borrowed), second = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(first.post());
  ASSERT_TRUE(second.post());
  borrowed.giveBack();
  EXPECT_EQ(borrowed.state(), LeaseState::kEnding);
  first.cancel();
  EXPECT_FALSE(first.wait(20s));
  EXPECT_EQ(borrowed.state(), LeaseState::kEnding);
  expectStale(first.post(), "lease 1 was given back");
  EXPECT_EQ(lease.state(), LeaseState::kLive);
  second.cancel();
  EXPECT_FALSE(second.wait(20s));
  expectOnce(lease, borrowed, LeaseState::kReturned);
}

TEST_F(SlowLeases, ThatExpireWhileTheyAreGivenBackHaveOneOutcome) {
  Lease lease = lend({}, {.duration = 1s});
  BorrowedLease borrowed = borrow(lease);
  Transfer transfer = plan(OpKind::kRead, borrowed);
  ASSERT_TRUE(transfer.post());
  borrowed.giveBack();
  clock_.advance(1s);
  expectOnce(lease, borrowed, LeaseState::kExpired);
  EXPECT_EQ(transfer.state(), TransferState::kFailed);
}

// Mistakes of callers: each call is refused with an error.
class BadLeases : public Leases {
 protected:
  void SetUp() override { open("fake"); }
  template <class T>
  static void refuses(const Result<T>& result, Code code, const std::string& text) {
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, code) << result.error().text();
    EXPECT_TRUE(has(result.error().text(), text)) << result.error().text();
    EXPECT_FALSE(result.error().remedy.empty()) << result.error().text();
  }
  Result<Lease> tryToLend(const Selection& selection, const LeaseOptions& options = {}) {
    return owner_->lease(*at_owner_, selection, options);
  }
};

TEST_F(BadLeases, AreRefusedWhenTheyAreLent) {
  std::vector<std::byte> loose(kBlock);
  const Selection unpinned{*Blocks::strided(
      {.base = reinterpret_cast<std::uintptr_t>(loose.data()), .bytes = kBlock, .count = 1})};
  refuses(tryToLend(unpinned), Code::kDenied, "no pin covers");
  const Selection beyond{
      *Blocks::strided({.base = lent_->info().address, .bytes = kBlock, .count = kBlocks + 1})};
  refuses(tryToLend(beyond), Code::kDenied, "no pin covers");
  refuses(tryToLend({}), Code::kInvalid, "a lease of 0 blocks");
  refuses(tryToLend(blocks(*lent_, {kBlocks})), Code::kInvalid, "index 64 of 64 blocks");
  refuses(tryToLend(blocks(*lent_, {1, 1})), Code::kInvalid, "an index is named twice");
  refuses(tryToLend(blocks(*lent_), {.duration = 0s}), Code::kInvalid, "no duration");
  refuses(tryToLend(blocks(*lent_), {.duration = -1s}), Code::kInvalid, "no duration");
  refuses(owner_->lease(*at_user_, blocks(*lent_)), Code::kInvalid, "belongs to another agent");
  Lease lease = lend();
  refuses(lease.renew(0s), Code::kInvalid, "no duration");
  EXPECT_EQ(owner_->statistics().lent.live, 1U);
}

TEST_F(BadLeases, OfReadOnlyMemoryForWritingAreRefused) {
  std::vector<std::byte> memory(kBlock);
  Segment segment = Segment::host(memory.data(), kBlock);
  segment.access = MemoryAccess::kReadOnly;
  const auto pin = owner_->pin(segment);
  ASSERT_TRUE(pin);
  const Selection selection{
      *Blocks::strided({.base = pin->info().address, .bytes = kBlock, .count = 1})};
  refuses(tryToLend(selection, {.access = MemoryAccess::kReadWrite}), Code::kDenied,
          "is read-only");
  EXPECT_TRUE(tryToLend(selection));
}

TEST_F(BadLeases, ThatOverlapAreRefusedUnlessBothRead) {
  constexpr auto kWrite = MemoryAccess::kReadWrite;
  Lease reader = lend({1, 2});
  EXPECT_TRUE(tryToLend(blocks(*lent_, {2, 3})));
  refuses(tryToLend(blocks(*lent_, {2, 3}), {.access = kWrite}), Code::kInvalid, "another lease");
  auto writer = tryToLend(blocks(*lent_, {3, 4}), {.access = kWrite});
  ASSERT_TRUE(writer);
  refuses(tryToLend(blocks(*lent_, {4})), Code::kInvalid, "another lease");
  ASSERT_TRUE(writer->revoke());
  EXPECT_TRUE(tryToLend(blocks(*lent_, {4})));
}

TEST_F(BadLeases, AreRefusedWhenTheyAreBorrowed) {
  Lease lease = lend({1, 2});
  const auto ticket = lease.ticket();
  refuses(user_->borrow(*at_user_, std::vector(20, std::byte{1})), Code::kInvalid,
          "not a ticket of a lease");
  refuses(user_->borrow(*at_user_, std::span(ticket).first(20)), Code::kInvalid, "cut short");
  refuses(user_->borrow(*at_owner_, ticket), Code::kInvalid, "belongs to another agent");
  refuses(owner_->borrow(*at_owner_, ticket), Code::kDenied, "the lease is for agent user");
  auto third = Agent::open({.name = "third", .backends = {"fake"}});
  ASSERT_TRUE(third);
  const auto to_third = user_->importCard(third->exportCard());
  ASSERT_TRUE(to_third && to_third->ready(20s));
  refuses(user_->borrow(*to_third, ticket), Code::kInvalid, "the ticket is from agent owner");
  BorrowedLease borrowed = borrow(lease);
  refuses(user_->borrow(*at_user_, ticket), Code::kInvalid, "lease 1 is borrowed already");
  refuses(user_->plan(OpKind::kRead, borrowed, blocks(*here_, {0}), {2}), Code::kInvalid,
          "index 2");
}

TEST_F(BadLeases, OfAnotherAgentOrALaterSessionAreRefused) {
  Lease lease = lend();
  const auto changed = [&](auto change) {
    auto ticket = *agent::LeaseTicket::decode(lease.ticket());
    change(ticket);
    return user_->borrow(*at_user_, ticket.encode());
  };
  refuses(changed([](auto& ticket) { ticket.owner_id[0] ^= 1; }), Code::kStale,
          "lease 1 ended with its session");
  refuses(changed([](auto& ticket) { ++ticket.epoch; }), Code::kInvalid,
          "the ticket names a session that has not begun");
}

// The ticket names a lease to an earlier agent "user", which has since closed.
TEST_F(BadLeases, OfAFormerLifeAreStale) {
  Lease lease = lend();
  const auto ticket = lease.ticket();
  here_.reset();
  at_user_.reset();
  user_.reset();
  ASSERT_EQ(*lease.wait(20s), LeaseState::kPeerLost);
  user_.emplace(*agent::AgentOfAClock::open(
      {.name = "user", .backends = {"fake"}, .detect = 8h, .deadline = 8h}, clock_));
  connect();
  refuses(user_->borrow(*at_user_, ticket), Code::kStale, "lease 1 ended with its session");
}

}  // namespace
}  // namespace viaduct
