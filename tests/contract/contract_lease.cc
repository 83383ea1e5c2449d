// The contract: a transfer under a lease that ends as done moved exactly the bytes that were lent,
// and after the end of the lease nobody touches them. Leases are revoked, expire and are returned
// at random instants while transfers run. VIADUCT_LEASE_TRANSFERS sets the number of transfers,
// VIADUCT_SEED their instants.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "contract/backend_contract.h"
#include "process/seeds.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

constexpr std::byte kPoison{0xee};

// The lent blocks of one lane. A small one is copied within post(), a large one over many polls.
struct Shape {
  std::uint64_t bytes, count;
  std::uint64_t all() const { return bytes * count; }
};
constexpr Shape kShapes[] = {
    {.bytes = 4096, .count = 1},
    {.bytes = 4096, .count = 16},
    {.bytes = 256 << 10, .count = 2},
    {.bytes = 1 << 20, .count = 1},
};

// How the owner of a lane ends its lease.
enum class Plan : std::uint8_t { kRevoke, kExpire, kAwaitReturn };

// A lease on its way to the borrower, and how the borrower used it.
struct Loan {
  std::vector<std::byte> ticket = {};
  MemoryAccess access = MemoryAccess::kReadOnly;
  bool must_return = false;
  std::uint64_t salt = 0;  // of the lent bytes, or of those that are written
  std::uint64_t done = 0, stale = 0;
  std::optional<LeaseState> outcome = {};
};

// Passes a loan to and fro between two threads.
class Handover {
 public:
  void lend(Loan& loan) {
    const std::lock_guard lock(mutex_);
    loan_ = &loan;
    changed_.notify_all();
  }
  Loan* take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return loan_ != nullptr || over_; });
    return loan_;
  }
  void bringBack() {
    const std::lock_guard lock(mutex_);
    loan_ = nullptr;
    changed_.notify_all();
  }
  void awaitBorrower() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return loan_ == nullptr; });
  }
  void end() {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Loan* loan_ = nullptr;
  bool over_ = false;
};

class LeaseContract : public BackendContract {
 protected:
  // The agent b lends, and a borrows. Two threads each use a lane's own memory.
  struct Lane {
    Shape shape;
    std::optional<Pin> lent, here;
    Handover handover;
    std::uint64_t loans = 0, done = 0, stale = 0, returned = 0, revoked = 0, expired = 0;
  };

  static Selection blocksOf(const Pin& pin, const Shape& shape, Indices indices = {}) {
    return blocks(pin, shape.bytes, shape.bytes, shape.count, std::move(indices));
  }

  void own(Lane& lane, base::Random random) {
    while (left_ > 0 && !HasFailure()) {
      Loan loan{.access = random.below(3) == 0 ? MemoryAccess::kReadWrite : MemoryAccess::kReadOnly,
                .salt = random.next()};
      ++lane.loans;
      lendOnce(lane, loan, random);
      lane.done += loan.done;
      lane.stale += loan.stale;
      left_ -= static_cast<std::int64_t>(loan.done + loan.stale);
    }
    lane.handover.end();
  }

  void lendOnce(Lane& lane, Loan& loan, base::Random& random) {
    const bool reads = loan.access == MemoryAccess::kReadOnly;
    const auto plan = static_cast<Plan>(random.below(3));
    const auto delay = std::chrono::microseconds(random.below(random.below(2) == 0 ? 100 : 2000));
    comeBehindTheAgents();
    if (reads)
      fill(*lane.lent, loan.salt);
    else
      fillWith(*lane.lent, kPoison);
    auto lease =
        b_->lease(*a_at_b_, blocksOf(*lane.lent, lane.shape),
                  {.access = loan.access,
                   .duration = plan == Plan::kExpire ? Duration(delay) + 1us : Duration(60s)});
    ASSERT_TRUE(lease) << lease.error().text();
    loan.ticket = lease->ticket();
    loan.must_return = plan == Plan::kAwaitReturn;
    lane.handover.lend(loan);
    if (plan == Plan::kRevoke) {
      const auto until = Clock::now() + delay;
      while (Clock::now() < until) std::this_thread::yield();
      const auto revoked = lease->revoke();
      EXPECT_TRUE(revoked) << revoked.error().text();
    }
    const auto outcome = lease->wait(60s);
    ASSERT_TRUE(outcome) << outcome.error().text();
    // From here on the memory is the owner's, while the borrower still posts.
    comeBehindTheAgents();
    const auto after = reads ? std::vector<std::byte>() : copyOf(*lane.lent);
    fillWith(*lane.lent, kPoison);
    lane.handover.awaitBorrower();
    comeBehindTheAgents();
    EXPECT_TRUE(allAre(contents(*lane.lent).bytes(), kPoison)) << "a write landed after the end";
    const bool written = !reads && loan.done > 0;
    EXPECT_TRUE(!written || holds(after, loan.salt)) << "a write that was done is not there";
    EXPECT_EQ(loan.outcome.value_or(*outcome), *outcome) << "the two ends disagree";
    count(lane, *outcome);
  }

  static void count(Lane& lane, LeaseState outcome) {
    lane.returned += outcome == LeaseState::kReturned ? 1 : 0;
    lane.revoked += outcome == LeaseState::kRevoked ? 1 : 0;
    lane.expired += outcome == LeaseState::kExpired ? 1 : 0;
    EXPECT_NE(outcome, LeaseState::kPeerLost);
  }

  std::vector<std::byte> copyOf(const Pin& pin) const {
    const Contents all = contents(pin);
    return {all.bytes().begin(), all.bytes().end()};
  }

  void use(Lane& lane, base::Random random) {
    while (Loan* const loan = lane.handover.take()) {
      useOnce(lane, *loan, random);
      lane.handover.bringBack();
    }
  }

  void useOnce(Lane& lane, Loan& loan, base::Random& random) {
    std::atomic<int> told{0};
    auto borrowed = a_->borrow(*b_at_a_, loan.ticket, [&](LeaseState) { ++told; });
    if (!borrowed) {
      EXPECT_EQ(borrowed.error().code, Code::kStale) << borrowed.error().text();
      ++loan.stale;
      return;
    }
    const std::uint64_t most = 1 + random.below(8);
    const bool returns = loan.must_return || random.below(2) == 0;
    for (std::uint64_t i = 0; i < most || !returns; ++i)
      if (!move(lane, loan, *borrowed, random)) break;
    if (returns) borrowed->giveBack();
    const auto outcome = borrowed->wait(60s);
    ASSERT_TRUE(outcome) << outcome.error().text();
    loan.outcome = *outcome;
    while (told == 0 && !HasFailure()) a_->poll();
    EXPECT_EQ(told, 1);
  }

  // One transfer. False: the lease has ended.
  bool move(Lane& lane, Loan& loan, const BorrowedLease& lease, base::Random& random) {
    const bool reads = loan.access == MemoryAccess::kReadOnly;
    const Shape& shape = lane.shape;
    comeBehindTheAgents();
    if (reads)
      fillWith(*lane.here, std::byte{0});
    else
      fill(*lane.here, loan.salt);
    // A reader takes some of the blocks, from a random one on.
    const auto first = reads ? static_cast<std::uint32_t>(random.below(shape.count)) : 0;
    Indices positions;
    for (std::uint32_t i = first; i < shape.count; ++i) positions.push_back(i);
    TransferOptions options;
    if (onGpus()) options.require = "backend:" + backend();
    auto transfer = a_->plan(reads ? OpKind::kRead : OpKind::kWrite, lease,
                             blocksOf(*lane.here, shape, positions), positions, options);
    const Status moved = transfer ? postAndWait(*transfer) : Status(transfer.error());
    if (!moved) {
      EXPECT_EQ(moved.error().code, Code::kStale) << moved.error().text();
      ++loan.stale;
      return false;
    }
    ++loan.done;
    if (!reads) return true;
    comeBehindTheAgents();
    std::vector<std::byte> expected(shape.all());
    fill(expected, loan.salt);
    const Part part{.offset = first * shape.bytes};
    EXPECT_TRUE(same(contents(*lane.here, part).bytes(), std::span(expected).subspan(part.offset)))
        << "a read returned bytes that were not lent";
    return true;
  }

  static Status postAndWait(Transfer& transfer) {
    VIADUCT_CHECK(transfer.post());
    return transfer.wait(60s);
  }

  std::atomic<std::int64_t> left_{0};  // transfers
};

TEST_P(LeaseContract, NoTransferMovesBytesThatAreNotLent) {
  const std::uint64_t seed = fromEnvironment("VIADUCT_SEED", 1);
  const std::uint64_t all = fromEnvironment("VIADUCT_LEASE_TRANSFERS", 10'000);
  // A fake GPU copies with this host's processors, several times.
  left_ = static_cast<std::int64_t>(onGpus() ? all / 50 : all);
  std::vector<Lane> lanes(std::size(kShapes));
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    lanes[i].shape = kShapes[i];
    lanes[i].lent.emplace(*allocateAtB(kShapes[i].all(), {.label = std::to_string(i)}));
    lanes[i].here.emplace(*allocateAtA(kShapes[i].all()));
    waitForPin(*b_at_a_, std::to_string(i));
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      threads.emplace_back([&, i] { own(lanes[i], base::Random(seed * 100 + 2 * i)); });
      threads.emplace_back([&, i] { use(lanes[i], base::Random(seed * 100 + 2 * i + 1)); });
    }
  }
  for (const Lane& lane : lanes) {
    std::printf(
        "%s, %llu x %llu bytes: %llu leases (%llu returned, %llu revoked, %llu expired), "
        "%llu transfers done, %llu stale\n",
        subject().name().c_str(), static_cast<unsigned long long>(lane.shape.count),
        static_cast<unsigned long long>(lane.shape.bytes),
        static_cast<unsigned long long>(lane.loans), static_cast<unsigned long long>(lane.returned),
        static_cast<unsigned long long>(lane.revoked),
        static_cast<unsigned long long>(lane.expired), static_cast<unsigned long long>(lane.done),
        static_cast<unsigned long long>(lane.stale));
    EXPECT_TRUE(onGpus() || (lane.done > 0 && lane.stale > 0));
  }
}

VIADUCT_INSTANTIATE_CONTRACT(LeaseContract);

}  // namespace
}  // namespace viaduct::testing
