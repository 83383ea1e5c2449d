// Tests threads that post at the same time while pins, peers and agents come and go.
#include <gtest/gtest.h>
#include <sched.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_impl.h"
#include "backends/fake/fake_rail.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kThreads = 4;

Agent openLocal(const std::string& name) {
  auto agent = Agent::open({.name = name, .backends = {"local"}, .copy_threads = 2, .detect = 60s});
  EXPECT_TRUE(agent) << agent.error().text();
  return *std::move(agent);
}

Selection wholeOf(std::uint64_t address, std::uint64_t bytes) {
  return {*Blocks::strided({.base = address, .bytes = bytes, .count = 1}), {}};
}

// A target agent in this process, with memory for each posting thread.
struct TargetAgent {
  TargetAgent(const std::string& name, std::uint64_t each)
      : agent(openLocal(name)),
        pin(*agent.allocate(kThreads * each, {.label = "memory"})),
        each_(each) {}
  std::byte* of(std::size_t thread) const { return pin.data() + thread * each_; }

  Agent agent;
  Pin pin;

 private:
  std::uint64_t each_;
};

class PostingThreads : public ::testing::Test {
 protected:
  // Each thread moves `each` bytes.
  explicit PostingThreads(std::uint64_t each = 4096)
      : each_(each), me_(openLocal("me")), memory_(*me_.allocate(kThreads * each)) {
    for (const char* name : {"one", "two"}) {
      targets_.push_back(std::make_unique<TargetAgent>(name, each));
      peers_.push_back(*me_.importCard(targets_.back()->agent.exportCard()));
      EXPECT_TRUE(peers_.back().ready(10s));
      EXPECT_TRUE(peers_.back().waitPin("memory", 10s));
    }
  }
  std::byte* of(std::size_t thread) const { return memory_.data() + thread * each_; }
  Transfer plan(std::size_t thread, std::size_t peer) {
    const auto address = [&](const std::byte* memory) {
      return reinterpret_cast<std::uintptr_t>(memory);
    };
    return *me_.plan(OpKind::kWrite, peers_[peer], wholeOf(address(of(thread)), each_),
                     wholeOf(address(targets_[peer]->of(thread)), each_));
  }
  // Transfers fresh bytes. Returns whether the transfer succeeded, after a check of the bytes.
  // Returns nothing if the post was refused.
  std::optional<bool> move(Transfer& transfer, std::size_t thread, std::size_t peer, int round) {
    std::memset(of(thread), round, each_);
    if (!transfer.post()) return std::nullopt;
    const bool done = static_cast<bool>(transfer.wait(10s));
    if (done) {
      EXPECT_EQ(std::memcmp(of(thread), targets_[peer]->of(thread), each_), 0);
    }
    return done;
  }

  void postWhilePinsComeAndGoAndAPeerIsLost(int pins);
  void releaseMemoryWhileThreadsPost(std::uint64_t bytes, int rounds);

  const std::uint64_t each_;
  Agent me_;
  Pin memory_;
  std::vector<std::unique_ptr<TargetAgent>> targets_;
  std::vector<Peer> peers_;
};

// Two threads post to each peer. Meanwhile a thread pins and releases memory, and then the second
// peer leaves.
void PostingThreads::postWhilePinsComeAndGoAndAPeerIsLost(int pins) {
  std::atomic<bool> over{false}, lost{false};
  std::atomic<std::uint64_t> done{0}, failed{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i, peer = i % 2, transfer = plan(i, i % 2)]() mutable {
      for (int round = 0; !over; ++round) {
        const auto moved = move(transfer, i, peer, round);
        if (moved) ++(*moved ? done : failed);
        if (peer == 1 && !(moved && *moved)) {
          EXPECT_TRUE(lost);
          return;
        }
        EXPECT_TRUE(moved && *moved);
      }
    });
  std::vector<std::byte> more(each_);
  const Segment segment{.address = reinterpret_cast<std::uintptr_t>(more.data()), .bytes = each_};
  const auto come_and_go = [&] {
    for (int i = 0; i < pins; ++i) {
      auto pin = me_.pin(segment, "more");
      ASSERT_TRUE(pin);
      ASSERT_TRUE(pin->release());
    }
  };
  come_and_go();
  lost = true;
  targets_[1]->agent.close();
  threads[1].join();
  threads[3].join();
  come_and_go();
  over = true;
  threads.clear();
  const Statistics counted = me_.statistics();
  EXPECT_EQ(counted.done, done);
  EXPECT_EQ(counted.started, done + failed);
  EXPECT_EQ(counted.rails.at(0).bytes, done * each_);
}

TEST_F(PostingThreads, EachPostEndsOnceWhilePinsComeAndGoAndAPeerIsLost) {
  postWhilePinsComeAndGoAndAPeerIsLost(200);
}

// Posts of large copies pause in the middle of a copy while pins come and go.
class PostingThreadsOfLargeCopies : public PostingThreads {
 protected:
  PostingThreadsOfLargeCopies() : PostingThreads((1 << 20) + 4096) {}
};

TEST_F(PostingThreadsOfLargeCopies, EachPostEndsOnceWhilePinsComeAndGoAndAPeerIsLost) {
  postWhilePinsComeAndGoAndAPeerIsLost(20);
}

// Released memory belongs to its owner: no posting thread writes into it any more.
void PostingThreads::releaseMemoryWhileThreadsPost(std::uint64_t bytes, int rounds) {
  TargetAgent& one = *targets_[0];
  const Pin there = *one.agent.allocate(bytes, {.label = "large"});
  std::memset(there.data(), 1, bytes);
  ASSERT_TRUE(peers_[0].waitPin("large", 10s));
  std::vector<std::byte> here(2 * bytes);  // a half for each thread
  const std::vector<std::byte> mine(2 * bytes, std::byte{2});
  const auto address = reinterpret_cast<std::uintptr_t>(here.data());
  for (int round = 0; round < rounds; ++round) {
    Pin pin = *me_.pin({.address = address, .bytes = 2 * bytes});
    std::atomic<unsigned> posting{0};
    std::vector<std::jthread> threads;
    for (std::uint64_t half : {address, address + bytes}) {
      Transfer planned = *me_.plan(OpKind::kRead, peers_[0], wholeOf(half, bytes),
                                   wholeOf(there.info().address, bytes));
      threads.emplace_back([&posting, read = std::move(planned)]() mutable {
        while (read.post() && read.wait(10s)) {
          ++posting;
          posting.notify_all();
        }
      });
    }
    for (unsigned seen = 0; seen < 4; seen = posting) posting.wait(seen);
    ASSERT_TRUE(pin.release());
    std::memcpy(here.data(), mine.data(), mine.size());
    threads.clear();
    ASSERT_EQ(std::memcmp(here.data(), mine.data(), mine.size()), 0);
  }
}

TEST_F(PostingThreads, ReleasedMemoryIsLeftAlone) { releaseMemoryWhileThreadsPost(256 << 10, 100); }

TEST_F(PostingThreads, ReleasedMemoryIsLeftAloneByLargeCopies) {
  releaseMemoryWhileThreadsPost(4 << 20, 10);
}

TEST_F(PostingThreads, AnAgentMayCloseWhileTheyPost) {
  std::atomic<unsigned> posting{0};
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i, transfer = plan(i, i % 2)]() mutable {
      for (int round = 0; move(transfer, i, i % 2, round).value_or(false); ++round)
        if (round == 0) {
          ++posting;
          posting.notify_all();
        }
      EXPECT_FALSE(transfer.post());
    });
  for (unsigned seen = 0; seen < kThreads; seen = posting) posting.wait(seen);
  me_.close();
}

// Only one thread at a time may post the transfer. The other thread gets an error.
TEST_F(PostingThreads, OneTransferIsPostedByOneThreadAtATime) {
  Transfer transfer = plan(0, 0);
  std::atomic<std::uint64_t> posted{0};
  const auto post = [&] {
    for (int i = 0; i < 20000; ++i) {
      const Status status = transfer.post();
      if (status)
        ++posted;
      else
        EXPECT_EQ(status.error().detail, "the transfer is still running");
    }
  };
  std::jthread other(post);
  post();
  other.join();
  EXPECT_TRUE(transfer.wait(10s));
  EXPECT_EQ(me_.statistics().done, posted);
  EXPECT_EQ(transfer.carried().shares.at(0).bytes, posted * each_);
}

// Counts the threads that poll the eight rails of an agent on `cores` cores, while one thread posts
// and waits. Ends at `enough` threads, or after 500 posts.
std::size_t pollersOn(unsigned cores, std::size_t enough) {
  agent::cores_for_tests = cores;
  auto agent =
      Agent::open({.name = "me", .backends = {"fake"}, .others = {{"VIADUCT_FAKE", "rails=8"}}});
  agent::cores_for_tests = 0;
  EXPECT_TRUE(agent);
  Peer self = *agent->self();
  EXPECT_TRUE(self.ready(10s));
  constexpr std::uint64_t kLarge = 1 << 20;
  const Pin from = *agent->allocate(kLarge), into = *agent->allocate(kLarge, {.label = "into"});
  EXPECT_TRUE(self.waitPin("into", 10s));
  Transfer transfer = *agent->plan(OpKind::kWrite, self, wholeOf(from.info().address, kLarge),
                                   wholeOf(into.info().address, kLarge));
  fake::pollers.with([](auto& threads) { threads.clear(); });
  // Few polls move bytes, so that a transfer takes many of them.
  std::atomic<unsigned> polls{0};
  fake::interruption.with([&](auto& one) { one = [&] { return ++polls % 64 == 0; }; });
  std::size_t pollers = 0;
  for (int round = 0; round < 500 && pollers < enough; ++round) {
    std::memset(from.data(), round, kLarge);
    EXPECT_TRUE(transfer.post());
    EXPECT_TRUE(transfer.wait(10s));
    EXPECT_EQ(std::memcmp(from.data(), into.data(), kLarge), 0);
    pollers = fake::pollers.with([](auto& threads) { return threads.size(); });
  }
  fake::interruption.with([](auto& one) { one = nullptr; });
  return pollers;
}

TEST(ManyRails, ArePolledByMoreThreadsIfThereAreCores) {
  EXPECT_GE(pollersOn(16, 3), 3U);  // more than the thread that waits and the progress thread
}

TEST(ManyRails, AreLeftToOneThreadIfThereAreFewCores) { EXPECT_LE(pollersOn(2, 3), 2U); }

// While the object lives, its thread and the threads that this one starts share one processor.
class OneProcessor {
 public:
  OneProcessor() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof all_, &all_), 0);
    cpu_set_t one = {};
    CPU_SET(::sched_getcpu(), &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneProcessor() { EXPECT_EQ(::sched_setaffinity(0, sizeof all_, &all_), 0); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t all_ = {};
};

// A thread that polls without progress yields. If it did not, it would poll some thousand times
// until its time slice is over.
TEST(OneProcessorForBoth, APollWithoutProgressLetsThePeerRun) {
  const OneProcessor one;
  constexpr std::uint64_t kBytes = 64 << 10;
  constexpr std::size_t kTransfers = 50;
  auto me = Agent::open({.name = "me", .backends = {"tcp"}});
  auto target = Agent::open({.name = "target", .backends = {"tcp"}});
  ASSERT_TRUE(me && target);
  const Pin from = *me->allocate(kBytes), into = *target->allocate(kBytes, {.label = "into"});
  Peer peer = *me->importCard(target->exportCard());
  ASSERT_TRUE(peer.ready(10s));
  ASSERT_TRUE(peer.waitPin("into", 10s));
  Transfer transfer = *me->plan(OpKind::kWrite, peer, wholeOf(from.info().address, kBytes),
                                wholeOf(into.info().address, kBytes));
  std::vector<int> polls(kTransfers);
  for (int& count : polls) {
    ASSERT_TRUE(transfer.post());
    while (transfer.poll() == TransferState::kRunning) ++count;
    ASSERT_EQ(transfer.state(), TransferState::kDone);
  }
  std::ranges::nth_element(polls, polls.begin() + kTransfers / 2);
  const int middle = polls[kTransfers / 2];
  EXPECT_LT(middle, 1000) << "the peer waited for the end of a time slice";
  EXPECT_GT(middle, 2) << "each wait for a peer may give a time slice away";
}

}  // namespace
}  // namespace viaduct
