// A process with a lease, or with lent memory, is killed or stopped. The other end learns one
// outcome in time, and the memory of a lease that has ended is its owner's alone.
#include <atomic>

#include "process/pair.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto kDetect = 2s;
constexpr auto kGrace = 500ms;
constexpr auto kSlack = 10s;  // for a busy machine

class LeasedMemory : public ::testing::TestWithParam<DataPath> {
 protected:
  // Lends the survivor's memory "lent" to the victim, which reads or writes it without a pause.
  void lendToStorm(MemoryAccess access) {
    const bool reads = access == MemoryAccess::kReadOnly;
    lent_.emplace(survivor_.memory(Survivor::kData, "lent"));
    lent_->fill(0x11);
    auto lease = survivor_.agent().lease(
        survivor_.peer(), allOf(*lent_->pin),
        {.access = access, .duration = 600s, .on_end = [this](LeaseState) { ++told_; }});
    ASSERT_TRUE(lease) << lease.error().text();
    lease_.emplace(*std::move(lease));
    victim_->must("borrow l survivor lent " + toHex(lease_->ticket()));
    victim_->must(std::string("planunder t ") + (reads ? "read" : "write") + " l data 65536");
    victim_->must("storm t");
  }
  static Selection allOf(const Pin& pin) {
    return {*Blocks::strided({.base = pin.info().address,
                              .bytes = Survivor::kBlock,
                              .count = pin.size() / Survivor::kBlock})};
  }
  void expectToldOnce() {
    const auto end = Clock::now() + kSlack;
    while (told_ == 0 && Clock::now() < end) survivor_.agent().poll();
    survivor_.agent().poll();
    EXPECT_EQ(told_, 1);
  }
  // Revokes a lease of the stopped victim. Returns whether the memory was free at once. If not, the
  // victim stopped inside a chunk, and runs on to leave it.
  bool revoke() {
    const Peer peer = survivor_.peer();
    const auto start = Clock::now();
    const Status revoked = lease_->revoke();
    std::printf("revoked in %lld ms\n", static_cast<long long>(since(start)));
    EXPECT_LT(Clock::now() - start, 2 * kGrace + kSlack);
    EXPECT_EQ(lease_->state(), LeaseState::kPeerLost);
    if (revoked) return true;
    EXPECT_EQ(revoked.error().code, Code::kPeerLost) << revoked.error().text();
    victim_->process().resume();
    const auto end = Clock::now() + kSlack;
    while (!peer.settled() && Clock::now() < end) survivor_.agent().poll();
    EXPECT_TRUE(lease_->revoke());
    return false;
  }
  void freeze(MemoryAccess access);

  Survivor survivor_{GetParam(), kDetect, kGrace};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
  std::atomic<int> told_{0};
  std::optional<Survivor::Memory> lent_;
  std::optional<Lease> lease_;
};

TEST_P(LeasedMemory, IsFreeWhenItsBorrowerIsKilled) {
  lendToStorm(MemoryAccess::kReadWrite);
  victim_->process().kill();
  const auto outcome = lease_->wait(kSlack);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_EQ(*outcome, LeaseState::kPeerLost);
  ASSERT_TRUE(lease_->revoke());
  lent_->fill(0x33);
  expectToldOnce();
  victim_ = survivor_.start();
  survivor_.expectWorks(*victim_);
  EXPECT_EQ(lent_->differ(0x33), 0);
}

// The stopped borrower continues after the memory was used again.
void LeasedMemory::freeze(MemoryAccess access) {
  victim_->must("fill data 68");
  lendToStorm(access);
  victim_->process().stop();
  const bool at_once = revoke();
  lent_->fill(0x33);
  if (at_once) victim_->process().resume();
  const std::string failure = victim_->must("calm t 20000");
  EXPECT_TRUE(failure.starts_with(codeName(Code::kStale)) ||
              failure.starts_with(codeName(Code::kPeerLost)))
      << failure;
  // The frame that revokes the lease may have arrived before the end of the session.
  const std::string outcome = victim_->must("outcome l 20000");
  EXPECT_TRUE(outcome == leaseStateName(LeaseState::kPeerLost) ||
              outcome == leaseStateName(LeaseState::kRevoked))
      << outcome;
  EXPECT_EQ(lent_->differ(0x33), 0) << "a write landed after the end";
  EXPECT_EQ(victim_->number("differ data 51"), static_cast<std::int64_t>(Survivor::kData))
      << "a read returned later bytes";
  expectToldOnce();
  victim_->must("ready survivor 20000");
  ASSERT_TRUE(survivor_.peer().ready(20s));
  survivor_.expectWorks(*victim_);
}
TEST_P(LeasedMemory, IsNotReadByABorrowerThatFroze) { freeze(MemoryAccess::kReadOnly); }
TEST_P(LeasedMemory, IsNotWrittenByABorrowerThatFroze) { freeze(MemoryAccess::kReadWrite); }

// The survivor borrows the victim's memory, and then the victim's process ends.
class LostOwner : public LeasedMemory {
 protected:
  void borrowAndStorm() {
    const std::string ticket = victim_->must("lend l survivor data 65536 read 600000");
    ASSERT_TRUE(survivor_.peer().waitPin("data", kSlack));
    auto lease = survivor_.agent().borrow(survivor_.peer(), fromHex(ticket),
                                          [this](LeaseState) { ++told_; });
    ASSERT_TRUE(lease) << lease.error().text();
    borrowed_.emplace(*std::move(lease));
    here_.emplace(survivor_.memory(Survivor::kData, ""));
    auto transfer = survivor_.agent().plan(OpKind::kRead, *borrowed_, allOf(*here_->pin));
    ASSERT_TRUE(transfer) << transfer.error().text();
    transfer_.emplace(*std::move(transfer));
    storm_.emplace(*transfer_);
    ASSERT_TRUE(storm_->finished(2));
  }
  void expectOutcome() {
    const auto failure = storm_->failure(kDetect + kSlack);
    ASSERT_TRUE(failure);
    // Stale: the session was lost between two posts.
    EXPECT_TRUE(failure->code == Code::kPeerLost || failure->code == Code::kStale)
        << failure->text();
    const auto outcome = borrowed_->wait(kSlack);
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_EQ(*outcome, LeaseState::kPeerLost);
    expectToldOnce();
    const Status late = transfer_->post();
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kStale) << late.error().text();
  }

  std::optional<BorrowedLease> borrowed_;
  std::optional<Survivor::Memory> here_;
  std::optional<Transfer> transfer_;
  std::optional<Storm> storm_;
};

TEST_P(LostOwner, EndsItsLeasesWhenItIsKilled) {
  borrowAndStorm();
  victim_->process().kill();
  expectOutcome();
}

TEST_P(LostOwner, EndsItsLeasesWhenItFreezes) {
  borrowAndStorm();
  victim_->process().stop();
  expectOutcome();
  victim_->process().resume();
  EXPECT_EQ(victim_->must("outcome l 20000"), leaseStateName(LeaseState::kPeerLost));
}

INSTANTIATE_TEST_SUITE_P(Ways, LeasedMemory, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });
INSTANTIATE_TEST_SUITE_P(Ways, LostOwner, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
