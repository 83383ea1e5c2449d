// The contract: a transfer under a lease that ends as done moved exactly the bytes that were lent,
// and after the end of the lease nobody touches them. Leases are revoked, expire and are returned
// at random instants while transfers run. VIADUCT_LEASES sets the number of leases of large blocks,
// VIADUCT_LEASE_TRANSFERS the least number of transfers, VIADUCT_SEED the instants.
#include <algorithm>
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

// The blocks that a lane lends, and its number of leases while the last lane makes one lease. A
// small block is copied within post(), a large one over many polls.
struct Shape {
  std::uint64_t bytes, count, leases;
  std::uint64_t plans;  // the most plans of a borrower that gives the lease back
  std::uint64_t all() const { return bytes * count; }
};
constexpr Shape kShapes[] = {
    {.bytes = 4096, .count = 4, .leases = 3, .plans = 16},
    {.bytes = 256 << 10, .count = 2, .leases = 2, .plans = 4},
    {.bytes = 8 << 20, .count = 1, .leases = 1, .plans = 4},
};

// How the owner of a lane ends its lease.
enum class Plan : std::uint8_t { kRevoke, kExpire, kAwaitReturn };
constexpr std::uint64_t kPlans = 3;

constexpr std::uint64_t kOver = ~std::uint64_t{0};

// A lease on its way to the borrower, and how the borrower used it.
struct Loan {
  std::vector<std::byte> ticket = {};
  MemoryAccess access = MemoryAccess::kReadOnly;
  bool must_return = false;
  std::uint64_t salt = 0;                // of the lent bytes, or of those that are written
  std::atomic<std::uint64_t> begun = 0;  // posts, or kOver
  std::uint64_t done = 0, stale = 0;
  std::optional<LeaseState> outcome = {};
  bool reads() const { return access == MemoryAccess::kReadOnly; }
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
    std::vector<std::byte> expected = {};  // the bytes that the borrower expects
    Handover handover;
    std::uint64_t loans = 0, done = 0, stale = 0, returned = 0, revoked = 0, expired = 0;
  };

  static Selection blocksOf(const Pin& pin, const Shape& shape, Indices indices = {}) {
    return blocks(pin, shape.bytes, shape.bytes, shape.count, std::move(indices));
  }

  void own(Lane& lane, std::uint64_t leases, base::Random random) {
    const bool goes_on = &lane == &lanes_.front();  // the smallest blocks
    for (; lane.loans < leases || (goes_on && transfers_ < most_); ++lane.loans) {
      if (HasFailure()) break;
      Loan loan{.access = random.below(2) == 0 ? MemoryAccess::kReadWrite : MemoryAccess::kReadOnly,
                .salt = random.next()};
      lendOnce(lane, loan, random);
      lane.done += loan.done;
      lane.stale += loan.stale;
      transfers_ += loan.done + loan.stale;
    }
    lane.handover.end();
  }

  void lendOnce(Lane& lane, Loan& loan, base::Random& random) {
    const auto plan = static_cast<Plan>(random.below(kPlans));
    const std::uint64_t posts = random.below(3);  // that the borrower begins first
    const Duration delay =
        std::chrono::microseconds(1 + random.below(random.below(2) == 0 ? 100 : 2000));
    comeBehindTheAgents();
    if (loan.reads())
      fill(*lane.lent, loan.salt);
    else
      fillWith(*lane.lent, kPoison);
    Reuse reuse(*this, lane, !loan.reads() && random.below(2) == 0);
    LeaseOptions options{.access = loan.access,
                         .duration = plan == Plan::kExpire && posts == 0 ? delay : 60s};
    const bool in_callback = random.below(2) == 0;
    if (in_callback) options.on_end = [&](LeaseState) { reuse.begin(); };
    auto lease = b_->lease(*a_at_b_, blocksOf(*lane.lent, lane.shape), std::move(options));
    ASSERT_TRUE(lease) << lease.error().text();
    loan.ticket = lease->ticket();
    loan.must_return = plan == Plan::kAwaitReturn;
    lane.handover.lend(loan);
    while (loan.begun < posts) std::this_thread::yield();
    if (plan == Plan::kExpire && posts != 0) static_cast<void>(lease->renew(delay));
    if (plan == Plan::kRevoke) {
      const auto until = Clock::now() + delay;
      while (Clock::now() < until) std::this_thread::yield();
      const auto revoked = lease->revoke();
      EXPECT_TRUE(revoked) << revoked.error().text();
    } else {
      const auto ended = lease->wait(60s);
      EXPECT_TRUE(ended) << ended.error().text();
    }
    if (!in_callback) reuse.begin();
    while (!reuse.begun() && !HasFailure()) b_->poll();
    lane.handover.awaitBorrower();
    reuse.check(loan);
    const LeaseState outcome = lease->state();
    EXPECT_EQ(loan.outcome.value_or(outcome), outcome) << "the two ends disagree";
    count(lane, outcome);
  }

  // The owner uses the lent memory again, while the borrower still posts.
  class Reuse {
   public:
    // `look`: copies the bytes that the borrower has written.
    Reuse(LeaseContract& test, const Lane& lane, bool look)
        : test_(test), lane_(lane), look_(look) {}
    // Does not poll the owner, because a callback of the owner may call begin().
    void begin() {
      test_.a_->poll();
      if (look_) after_ = test_.copyOf(*lane_.lent);
      if (!onGpus()) mark(lane_.lent->bytes());
      test_.fillWith(*lane_.lent, kPoison);
      begun_ = true;
    }
    bool begun() const { return begun_; }
    void check(const Loan& loan) const {
      test_.comeBehindTheAgents();
      EXPECT_TRUE(allAre(test_.contents(*lane_.lent).bytes(), kPoison))
          << "a write landed after the end";
      EXPECT_TRUE(!look_ || loan.done == 0 || holds(after_, loan.salt))
          << "a write that was done is not there";
    }

   private:
    // Overwrites a few of the bytes first. This takes microseconds, so it comes before the rest of
    // a running copy.
    static void mark(std::span<std::byte> bytes) {
      constexpr std::size_t kStep = 16 << 10;
      for (std::size_t left = bytes.size(); left > 0; left -= std::min(left, kStep))
        bytes[left - 1] = kPoison;
    }

    LeaseContract& test_;
    const Lane& lane_;
    const bool look_;
    std::vector<std::byte> after_;
    std::atomic<bool> begun_ = false;
  };

  static void count(Lane& lane, LeaseState outcome) {
    lane.returned += outcome == LeaseState::kReturned ? 1 : 0;
    lane.revoked += outcome == LeaseState::kRevoked ? 1 : 0;
    lane.expired += outcome == LeaseState::kExpired ? 1 : 0;
    EXPECT_TRUE(outcome >= LeaseState::kReturned && outcome != LeaseState::kPeerLost);
  }

  std::vector<std::byte> copyOf(const Pin& pin) const {
    const Contents all = contents(pin);
    return {all.bytes().begin(), all.bytes().end()};
  }

  void use(Lane& lane, base::Random random) {
    lane.expected.resize(lane.shape.all());
    while (Loan* const loan = lane.handover.take()) {
      useOnce(lane, *loan, random);
      loan->begun = kOver;
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
    fill(lane.expected, loan.salt);
    const std::uint64_t most = 1 + random.below(lane.shape.plans);
    const bool returns = loan.must_return || random.below(2) == 0;
    const bool during_post = random.below(2) == 0;
    bool live = true;
    for (std::uint64_t i = 1; live && !HasFailure() && (i <= most || !returns); ++i)
      live = move(lane, loan, *borrowed, returns && during_post && i == most, random);
    if (returns || HasFailure()) borrowed->giveBack();
    const auto outcome = borrowed->wait(60s);
    ASSERT_TRUE(outcome) << outcome.error().text();
    loan.outcome = *outcome;
    while (told == 0 && !HasFailure()) a_->poll();
    EXPECT_EQ(told, 1);
  }

  // Posts a new transfer one or several times. False: the lease has ended.
  bool move(Lane& lane, Loan& loan, BorrowedLease& lease, bool give_back, base::Random& random) {
    // A reader takes some of the blocks, from a random one on.
    const auto first =
        loan.reads() ? static_cast<std::uint32_t>(random.below(lane.shape.count)) : 0;
    Indices positions;
    for (std::uint32_t i = first; i < lane.shape.count; ++i) positions.push_back(i);
    TransferOptions options;
    if (onGpus()) options.require = "backend:" + backend();
    // With a callback, post() leaves the copy to the threads that make progress.
    if (random.below(2) == 0) options.on_end = [](const TransferEnd&) {};
    auto transfer = a_->plan(loan.reads() ? OpKind::kRead : OpKind::kWrite, lease,
                             blocksOf(*lane.here, lane.shape, positions), positions, options);
    if (!transfer) return isDone(loan, transfer.error());
    for (std::uint64_t posts = 1 + random.below(2); posts > 0; --posts) {
      comeBehindTheAgents();
      if (loan.reads())
        fillWith(*lane.here, std::byte{0});
      else
        fill(*lane.here, loan.salt);
      ++loan.begun;
      Status moved = transfer->post();
      if (give_back) lease.giveBack();
      if (moved) moved = transfer->wait(60s);
      if (!isDone(loan, moved)) {
        EXPECT_FALSE(transfer->post()) << "a post after the end was accepted";
        return false;
      }
      if (loan.reads()) checkRead(lane, first);
    }
    return true;
  }

  static bool isDone(Loan& loan, const Status& moved) {
    ++(moved ? loan.done : loan.stale);
    if (moved) return true;
    EXPECT_EQ(moved.error().code, Code::kStale) << moved.error().text();
    return false;
  }

  void checkRead(const Lane& lane, std::uint64_t first) {
    comeBehindTheAgents();
    const Part part{.offset = first * lane.shape.bytes};
    EXPECT_TRUE(
        same(contents(*lane.here, part).bytes(), std::span(lane.expected).subspan(part.offset)))
        << "a read returned bytes that were not lent";
  }

  void report(const Lane& lane) const {
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::printf(
        "%s, %llu x %llu bytes: %llu leases (%llu returned, %llu revoked, %llu expired), "
        "%llu transfers done, %llu stale\n",
        subject().name().c_str(), number(lane.shape.count), number(lane.shape.bytes),
        number(lane.loans), number(lane.returned), number(lane.revoked), number(lane.expired),
        number(lane.done), number(lane.stale));
    EXPECT_TRUE(onGpus() || (lane.done > 0 && lane.stale > 0));
  }

  std::vector<Lane> lanes_{std::size(kShapes)};
  std::atomic<std::uint64_t> transfers_{0};
  std::uint64_t most_ = 0;  // the least number of transfers
};

TEST_P(LeaseContract, NoTransferMovesBytesThatAreNotLent) {
  const std::uint64_t seed = fromEnvironment("VIADUCT_SEED", 1);
  const std::uint64_t leases = fromEnvironment("VIADUCT_LEASES", onGpus() ? 10 : 75);
  most_ = fromEnvironment("VIADUCT_LEASE_TRANSFERS", onGpus() ? 100 : 10'000);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].shape = kShapes[i];
    lanes_[i].lent.emplace(*allocateAtB(kShapes[i].all(), {.label = std::to_string(i)}));
    lanes_[i].here.emplace(*allocateAtA(kShapes[i].all()));
    waitForPin(*b_at_a_, std::to_string(i));
  }
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      threads.emplace_back(
          [&, i] { own(lanes_[i], leases * kShapes[i].leases, base::Random(seed * 100 + 2 * i)); });
      threads.emplace_back([&, i] { use(lanes_[i], base::Random(seed * 100 + 2 * i + 1)); });
    }
  }
  for (const Lane& lane : lanes_) report(lane);
}

// An op is held back by VIADUCT_FAULTS when its lease ends.
class HeldBackLeaseContract : public LeaseContract {
 protected:
  void SetUp() override {
    base_.faults = "delay=100s";
    base_.faults_allowed = true;
    base_.deadline = 8h;
    LeaseContract::SetUp();
  }

  // Lends a block, and begins to move it.
  void begin(OpKind kind, Duration duration) {
    there_.emplace(*allocateAtB(kBytes, {.label = opKindName(kind)}));
    here_.emplace(*allocateAtA(kBytes));
    waitForPin(*b_at_a_, opKindName(kind));
    fill(kind == OpKind::kRead ? *there_ : *here_, 1);
    fill(kind == OpKind::kRead ? *here_ : *there_, 2);
    auto lease = b_->lease(*a_at_b_, whole(*there_),
                           {.access = MemoryAccess::kReadWrite, .duration = duration});
    ASSERT_TRUE(lease) << lease.error().text();
    lease_.emplace(*std::move(lease));
    auto borrowed = a_->borrow(*b_at_a_, lease_->ticket());
    ASSERT_TRUE(borrowed) << borrowed.error().text();
    borrowed_.emplace(*std::move(borrowed));
    TransferOptions options;
    if (onGpus()) options.require = "backend:" + backend();
    auto transfer = a_->plan(kind, *borrowed_, whole(*here_), {}, options);
    ASSERT_TRUE(transfer) << transfer.error().text();
    transfer_.emplace(*std::move(transfer));
    ASSERT_TRUE(transfer_->post());
    ASSERT_EQ(transfer_->state(), TransferState::kRunning);
  }
  // Moves the clock so far that the held-back op could begin.
  void passTime(Duration time = 100s) {
    clock_.advance(time);
    for (int i = 0; i < 100; ++i) comeBehindTheAgents();
  }
  void expectThatNothingMoves(OpKind kind) {
    EXPECT_EQ(transfer_->state(), TransferState::kFailed) << "the end did not wait for the op";
    fill(*there_, 3);
    passTime();
    EXPECT_TRUE(holds(*there_, 3)) << "a write landed after the end";
    EXPECT_TRUE(kind == OpKind::kWrite || holds(*here_, 2)) << "a read ended after the end";
    ASSERT_TRUE(transfer_->end().error);
    EXPECT_EQ(transfer_->end().error->code, Code::kStale);
  }

  static constexpr std::uint64_t kBytes = 8192;
  std::optional<Pin> here_, there_;
  std::optional<Lease> lease_;
  std::optional<BorrowedLease> borrowed_;
  std::optional<Transfer> transfer_;
};

TEST_P(HeldBackLeaseContract, RevokingEndsTheOpFirst) {
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite}) {
    begin(kind, 24h);
    const auto revoked = lease_->revoke();
    ASSERT_TRUE(revoked) << revoked.error().text();
    expectThatNothingMoves(kind);
    EXPECT_EQ(lease_->state(), LeaseState::kRevoked);
  }
}

TEST_P(HeldBackLeaseContract, ExpiringEndsTheOpFirst) {
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite}) {
    begin(kind, 50s);
    clock_.advance(50s);
    ASSERT_TRUE(lease_->wait(60s));
    expectThatNothingMoves(kind);
    EXPECT_EQ(lease_->state(), LeaseState::kExpired);
  }
}

TEST_P(HeldBackLeaseContract, GivingBackWaitsForTheOp) {
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite}) {
    begin(kind, 24h);
    borrowed_->giveBack();
    for (int i = 0; i < 100; ++i) comeBehindTheAgents();
    EXPECT_EQ(lease_->state(), LeaseState::kLive);
    EXPECT_FALSE(transfer_->post());
    // Moves the clock in small steps: stages take real time, and the deadline is a time of the
    // clock.
    while (transfer_->state() == TransferState::kRunning) passTime(1s);
    const auto done = transfer_->wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    const auto outcome = lease_->wait(60s);
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_EQ(*outcome, LeaseState::kReturned);
    comeBehindTheAgents();
    EXPECT_TRUE(holds(*here_, 1) && holds(*there_, 1));
  }
}

VIADUCT_INSTANTIATE_CONTRACT(LeaseContract);
VIADUCT_INSTANTIATE_CONTRACT(HeldBackLeaseContract);

}  // namespace
}  // namespace viaduct::testing
