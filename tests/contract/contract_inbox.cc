// The contract: several threads post transfers of all classes, more than a rail takes at once. Then
// memory is released, a lease is revoked or an agent is closed. On return nobody touches the memory
// any more, and each transfer has ended or ends once. VIADUCT_SEED chooses the moments.
#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "backends/fake/fake_rail.h"
#include "base/random.h"
#include "contract/backend_contract.h"
#include "move/job_table.h"
#include "process/seeds.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

class InboxContract : public BackendContract {
 protected:
  static constexpr std::uint64_t kThreads = 3, kEach = 24, kAll = kThreads * kEach;
  static constexpr std::uint32_t kOps = 17;  // of a transfer
  static constexpr std::byte kPoison{0xee};

  struct One {
    std::optional<Transfer> transfer;
    std::uint64_t accepted = 0;
  };

  void SetUp() override {
    move::most_jobs_for_tests = 8;  // so that rails of networks have no room
    BackendContract::SetUp();
    move::most_jobs_for_tests = 0;
    if (IsSkipped()) return;
    here_.emplace(*allocateAtA(all()));
    there_.emplace(*allocateAtB(all(), {.label = "there"}));
    waitForPin(*b_at_a_, "there");
    fillWith(*here_, std::byte{1});
    fillWith(*there_, std::byte{2});
    comeBehindTheAgents();
  }
  // Blocks over `local` are larger, because post() itself copies small transfers there.
  static std::uint64_t block() { return backend() == "local" ? 32 << 10 : 2 << 10; }
  static std::uint64_t all() { return kAll * kOps * block(); }
  // The blocks of a transfer, in an order in which they do not merge.
  static Indices partOf(std::uint32_t index) {
    Indices out;
    for (std::uint32_t op = kOps; op > 0; --op) out.push_back(index * kOps + op - 1);
    return out;
  }
  static Selection part(const Pin& pin, std::uint32_t index) {
    return blocks(pin, block(), block(), kAll * kOps, partOf(index));
  }
  // Writes and reads of all classes, each with bytes of its own.
  template <class Plan>
  void planAll(Plan plan) {
    for (std::uint32_t i = 0; i < kAll; ++i) {
      const TransferOptions options{.priority = static_cast<Priority>(i / 2 % kPriorities),
                                    .on_end = [this, i](const TransferEnd&) { ++ends_[i]; }};
      auto planned = plan(i % 2 == 0 ? OpKind::kWrite : OpKind::kRead, i, options);
      ASSERT_TRUE(planned) << planned.error().text();
      ones_[i].transfer.emplace(*std::move(planned));
    }
  }
  void planAll() {
    planAll([&](OpKind kind, std::uint32_t i, const TransferOptions& options) {
      return plan(kind, part(*here_, i), part(*there_, i), options);
    });
  }
  // Posts the transfers of a thread over and over, until the test sets `over_`. The posts after
  // that are refused or fail.
  void postUntilOver(std::uint64_t thread) {
    for (bool last = false; !last;) {
      last = over_;
      for (std::uint64_t i = thread; i < kAll; i += kThreads) {
        One& one = ones_[i];
        if (one.transfer->state() == TransferState::kRunning || !one.transfer->post()) continue;
        ++one.accepted;
        ++posts_;
      }
    }
    for (std::uint64_t i = thread; i < kAll; i += kThreads)
      static_cast<void>(ones_[i].transfer->wait(60s));
  }
  // Calls `end` while threads post. Afterwards only the test may use the memory of `pin`.
  template <class End>
  void endBesidePosts(End end, const Pin& pin) {
    fake::interruption.with([](auto& one) { one = [] { return false; }; });
    std::vector<std::jthread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i)
      threads.emplace_back([this, i] { postUntilOver(i); });
    const std::uint64_t enough = kAll / 2 + random_.below(kAll / 2);
    while (posts_ < enough) std::this_thread::yield();
    letFakeRailsMove();
    end();
    comeBehindTheAgents();
    fillWith(pin, kPoison);
    over_ = true;
    threads.clear();
    comeBehindTheAgents();
    EXPECT_TRUE(allAre(contents(pin).bytes(), kPoison)) << "it was written afterwards";
    expectEachPostEndedOnce();
  }
  static void letFakeRailsMove() {
    fake::interruption.with([](auto& one) { one = nullptr; });
  }
  // All callbacks have run when the agent is closed.
  void expectEachPostEndedOnce() {
    for (const One& one : ones_) {
      const TransferEnd end = one.transfer->end();
      EXPECT_NE(end.state, TransferState::kRunning);
      if (!end.error) continue;
      EXPECT_TRUE(std::ranges::count(expected_, end.error->code) == 1) << end.error->text();
    }
    a_->close();
    for (std::size_t i = 0; i < kAll; ++i) EXPECT_EQ(ends_[i], ones_[i].accepted) << i;
  }

  base::Random random_{fromEnvironment("VIADUCT_SEED", 1)};
  std::optional<Pin> here_, there_;
  std::array<std::atomic<std::uint64_t>, kAll> ends_ = {};
  std::array<One, kAll> ones_;
  std::atomic<std::uint64_t> posts_ = 0;
  std::atomic<bool> over_ = false;
  std::vector<Code> expected_{Code::kDenied};  // of the transfers that fail
};

TEST_P(InboxContract, MemoryHereIsReleased) {
  planAll();
  endBesidePosts(
      [&] {
        const Status released = here_->release();
        EXPECT_TRUE(released) << released.error().text();
      },
      *here_);
}

TEST_P(InboxContract, MemoryAtThePeerIsReleased) {
  planAll();
  endBesidePosts(
      [&] {
        const Status released = there_->release();
        EXPECT_TRUE(released) << released.error().text();
      },
      *there_);
}

TEST_P(InboxContract, ALeaseIsRevoked) {
  expected_ = {Code::kStale};
  auto lease = b_->lease(*a_at_b_, blocks(*there_, block(), block(), kAll * kOps),
                         {.access = MemoryAccess::kReadWrite, .duration = 8h});
  ASSERT_TRUE(lease) << lease.error().text();
  auto borrowed = a_->borrow(*b_at_a_, lease->ticket());
  ASSERT_TRUE(borrowed) << borrowed.error().text();
  planAll([&](OpKind kind, std::uint32_t i, const TransferOptions& options) {
    return a_->plan(kind, *borrowed, part(*here_, i), partOf(i), options);
  });
  endBesidePosts(
      [&] {
        const Status revoked = lease->revoke();
        EXPECT_TRUE(revoked) << revoked.error().text();
      },
      *there_);
}

TEST_P(InboxContract, TheAgentIsClosed) {
  expected_ = {Code::kPeerLost};
  planAll();
  endBesidePosts([&] { a_->close(); }, *here_);
}

TEST_P(InboxContract, ThePeerIsClosed) {
  // A fake rail sees that the pins of a closing agent of this process are gone.
  expected_ = {Code::kPeerLost, Code::kDenied};
  planAll();
  endBesidePosts([&] { b_->close(); }, *there_);
}

INSTANTIATE_TEST_SUITE_P(Every, InboxContract, ::testing::ValuesIn(everyBackend()),
                         [](const auto& one) { return one.param.name(); });

}  // namespace
}  // namespace viaduct::testing
