// The contract: several threads post and poll at once, over several rails, while memory is pinned
// and released.
#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_impl.h"
#include "contract/backend_contract.h"
#include "support/bytes.h"

namespace viaduct::testing {

namespace {

constexpr std::uint64_t kEach = 300'000;  // enough for a slice on several rails
constexpr std::uint64_t kThreads = 4;

// GPU tests have few rounds: a round costs process switches, and a fake GPU copies with processors.
constexpr int kRounds = 40, kRoundsOnGpus = 10;

}  // namespace

// The thread `index` has its own part of both pins.
class ThreadsContract : public BackendContract {
 protected:
  void SetUp() override {
    if (const auto why = whyLeftOut(); !why.empty()) GTEST_SKIP() << why;
    base_.sockets = 8;
    if (backend() == "ofi" || backend() == "ucx") base_.rails.assign(4, "lo");
    fake_ = "rails=8";
    agent::cores_for_tests = 16;  // so that helpers poll too
    open();
    agent::cores_for_tests = 0;
    here_.emplace(*allocateAtA(kThreads * kEach));
    there_.emplace(*allocateAtB(kThreads * kEach, {.label = "there"}));
    waitForPin(*b_at_a_, "there");
  }
  Transfer planOf(OpKind kind, std::uint64_t index) {
    const auto part = [&](const Pin& pin) {
      return blocks(pin, kEach, kEach, kThreads, {static_cast<std::uint32_t>(index)});
    };
    auto planned = plan(kind, part(*here_), part(*there_));
    EXPECT_TRUE(planned) << planned.error().text();
    return *std::move(planned);
  }
  // Moves fresh bytes. Every second thread waits, and the others poll.
  void move(Transfer& transfer, OpKind kind, std::uint64_t index, std::uint64_t salt) {
    const Part part{.offset = index * kEach, .bytes = kEach};
    comeBehindTheAgents();
    fill(kind == OpKind::kWrite ? *here_ : *there_, salt, part);
    ASSERT_TRUE(transfer.post());
    while (index % 2 == 0 && transfer.poll() == TransferState::kRunning) std::this_thread::yield();
    const auto done = transfer.wait(60s);
    ASSERT_TRUE(done) << done.error().text();
    comeBehindTheAgents();
    ASSERT_TRUE(holds(kind == OpKind::kWrite ? *there_ : *here_, salt, part))
        << "thread " << index << ", round " << salt;
  }

  std::optional<Pin> here_, there_;
};

TEST_P(ThreadsContract, MoveEveryByteWhileMemoryIsPinnedAndReleased) {
  const int rounds = onGpus() ? kRoundsOnGpus : kRounds;
  std::atomic<std::uint64_t> running{kThreads};
  std::vector<std::jthread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      std::array transfers{planOf(OpKind::kWrite, i), planOf(OpKind::kRead, i)};
      for (int round = 0; round < rounds && !HasFailure(); ++round)
        for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
          move(transfers.at(kind == OpKind::kWrite ? 0 : 1), kind, i,
               i * 2 * kRounds + 2 * static_cast<std::uint64_t>(round) +
                   (kind == OpKind::kWrite ? 0 : 1));
      --running;
    });
  std::vector<std::byte> more(4096);
  while (running > 0) {
    auto pin = a_->pin(Segment::host(more.data(), more.size()), "more");
    ASSERT_TRUE(pin);
    ASSERT_TRUE(pin->release());
    std::this_thread::yield();
  }
}

VIADUCT_INSTANTIATE_CONTRACT(ThreadsContract);

}  // namespace viaduct::testing
