// Eight threads move, poll and cancel over 64 rails, while memory comes and goes and the statistics
// are read. VIADUCT_SEED chooses their steps, VIADUCT_RAIL_ROUNDS the number of posts of a thread.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_impl.h"
#include "base/random.h"
#include "base/under_tsan.h"
#include "process/seeds.h"
#include "support/bytes.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using testing::allAre;
using testing::fillWith;

constexpr std::size_t kThreads = 8, kRails = 64;
// The sizes of three blocks, which go over one rail, over sixteen rails, and over all rails.
constexpr std::array<std::uint64_t, 3> kSizes{4096, 256 << 10, 1 << 20};
constexpr std::uint64_t kEach = kSizes.back();  // a thread's memory

Agent openOn64Rails(const std::string& name) {
  agent::cores_for_tests = 16;  // so that helpers run rails too
  auto agent = Agent::open(
      {.name = name, .backends = {"tcp"}, .sockets = kRails, .detect = 8h, .grace = 60s});
  agent::cores_for_tests = 0;
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

class SixtyFourRails : public ::testing::Test {
 protected:
  struct One {
    Transfer transfer;
    OpKind kind;
    std::uint64_t bytes;
  };

  SixtyFourRails() {
    EXPECT_EQ(me_.backends().at(0).rails.size(), kRails);
    EXPECT_TRUE(peer_.ready(60s));
    EXPECT_TRUE(peer_.waitPin("there", 60s));
  }
  static Selection part(const Pin& pin, std::size_t thread, std::uint64_t bytes) {
    return {
        *Blocks::strided({.base = pin.info().address + thread * kEach, .bytes = bytes, .count = 1}),
        {}};
  }
  static std::span<std::byte> bytesOf(const Pin& pin, std::size_t thread, std::uint64_t bytes) {
    return pin.bytes().subspan(thread * kEach, bytes);
  }
  // Call it before this thread uses memory that the agents' threads have used. Sockets order these
  // accesses, but TSan sees only the order of the rights to run rails, which pin() takes.
  void comeBehindTheAgents() {
#ifdef VIADUCT_TSAN
    std::uint64_t word = 0;
    for (Agent* agent : {&me_, &target_})
      EXPECT_TRUE(agent->pin(Segment::host(&word, sizeof word)));
#endif
  }
  std::deque<One> plansOf(std::size_t thread) {
    std::deque<One> all;
    for (const std::uint64_t bytes : kSizes)
      for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
        const auto priority = static_cast<Priority>((thread + all.size()) % kPriorities);
        auto planned =
            me_.plan(kind, peer_, part(here_, thread, bytes), part(there_, thread, bytes),
                     {.priority = priority, .on_end = [this](const TransferEnd&) { ++ends_; }});
        EXPECT_TRUE(planned) << planned.error().text();
        all.push_back({*std::move(planned), kind, bytes});
      }
    return all;
  }
  // Posts randomly chosen transfers of the thread. Some are cancelled.
  void use(std::size_t thread, std::uint64_t rounds, base::Random random) {
    auto all = plansOf(thread);
    for (std::uint64_t round = 0; round < rounds && !HasFailure(); ++round)
      move(all[random.below(all.size())], thread, static_cast<std::byte>(round), random);
  }
  void move(One& one, std::size_t thread, std::byte content, base::Random& random) {
    const bool writes = one.kind == OpKind::kWrite;
    const Pin &from = writes ? here_ : there_, &into = writes ? there_ : here_;
    comeBehindTheAgents();
    fillWith(bytesOf(from, thread, one.bytes), content);
    ++posts_;
    const Status posted = one.transfer.post();
    ASSERT_TRUE(posted) << posted.error().text();
    for (std::uint64_t polls = random.below(4); polls > 0; --polls) one.transfer.poll();
    const bool cancels = random.chance(0.2);
    if (cancels) one.transfer.cancel();
    const Status ended = one.transfer.wait(60s);
    const TransferEnd end = one.transfer.end();
    if (cancels && end.state == TransferState::kCancelled) return;
    ASSERT_TRUE(ended) << ended.error().text();
    comeBehindTheAgents();
    EXPECT_TRUE(allAre(bytesOf(into, thread, one.bytes), content));
  }

  std::atomic<std::uint64_t> posts_{0}, ends_{0};
  Agent target_ = openOn64Rails("target"), me_ = openOn64Rails("me");
  Peer peer_ = *me_.importCard(target_.exportCard());
  Pin here_ = *me_.allocate(kThreads * kEach);
  Pin there_ = *target_.allocate(kThreads * kEach, {.label = "there"});
};

TEST_F(SixtyFourRails, CarryTheBytesOfEightThreads) {
  const std::uint64_t seed = testing::fromEnvironment("VIADUCT_SEED", 1);
  const std::uint64_t rounds = testing::fromEnvironment("VIADUCT_RAIL_ROUNDS", 12);
  std::atomic<std::size_t> running{kThreads};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      use(i, rounds, base::Random(seed * kThreads + i));
      --running;
    });
  std::vector<std::byte> more(4096);
  for (Agent* agent = &me_; running > 0; agent = agent == &me_ ? &target_ : &me_) {
    auto pin = agent->pin(Segment::host(more.data(), more.size()), "more");
    ASSERT_TRUE(pin) << pin.error().text();
    EXPECT_LE(agent->statistics().done, posts_);
    const Status released = pin->release();
    ASSERT_TRUE(released) << released.error().text();
    std::this_thread::yield();
  }
  threads.clear();
  me_.close();  // all callbacks have run
  EXPECT_EQ(ends_, posts_);
  EXPECT_EQ(posts_, kThreads * rounds);
}

}  // namespace
}  // namespace viaduct
