// Peers that know the secret and obey no rule come to an agent and leave. A bystander reads the
// agent's memory all the time, and is served all the time. Afterwards the agent has no more memory
// than before. VIADUCT_LIARS sets the number of sessions.
#include "support/lying_peer.h"

#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/net/crypto.h"
#include "process/pair.h"
#include "process/seeds.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kAtOnce = 4;
// These limits are far above a busy machine's figures, and far below those of the faults to be
// found.
constexpr auto kMostDeaf = 10s;
#ifdef __SANITIZE_ADDRESS__
constexpr long kMostKiB = 1 << 20;  // ASan keeps freed memory
#else
constexpr long kMostKiB = 64 << 10;
#endif

std::uint64_t sessions() { return fromEnvironment("VIADUCT_LIARS", 24); }

// Reads eight bytes of the agent again and again. The agent's own threads answer, so the longest
// read is the longest time for which the agent was deaf.
class Bystander {
 public:
  explicit Bystander(const std::vector<std::byte>& card)
      : agent_(*Agent::open(
            {.name = "bystander", .secret = "ours", .backends = {"tcp"}, .detect = 30s})),
        pin_(*agent_.pin(Segment::host(into_.data(), into_.size()), "into")),
        peer_(*agent_.importCard(card)) {
    EXPECT_TRUE(peer_.ready(30s));
    const auto there = *peer_.waitPin("data", 30s);
    const auto eight = [&](std::uint64_t address) {
      return Selection{*Blocks::strided({.base = address, .bytes = into_.size(), .count = 1}), {}};
    };
    read_ = *agent_.plan(OpKind::kRead, peer_, eight(pin_.info().address), eight(there.address));
    thread_ = std::thread([this] { run(); });
  }
  ~Bystander() { stop(); }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Returns the longest read so far, and begins to count anew.
  Duration longest() { return longest_.exchange({}); }
  const Peer& peer() const { return peer_; }

 private:
  void run() {
    while (!stopping_) {
      const auto start = Clock::now();
      EXPECT_TRUE(read_->post());
      const Status ended = read_->wait(60s);
      EXPECT_TRUE(ended) << ended.error().text();
      if (!ended) return;
      longest_ = std::max<Duration>(longest_, Clock::now() - start);
      std::this_thread::sleep_for(1ms);
    }
  }
  std::vector<std::byte> into_ = std::vector<std::byte>(8);
  Agent agent_;
  Pin pin_;
  Peer peer_;
  std::optional<Transfer> read_;
  std::atomic<bool> stopping_{false};
  std::atomic<Duration> longest_{};
  std::thread thread_;
};

void lie(const Card& card, std::uint64_t number) {
  std::mt19937_64 random(number);
  const std::string where = random() % 2 == 0 ? "unix:@" + card.unix_name : card.addresses.at(0);
  auto liar =
      LyingPeer::meet(where, base::secretFromText("ours"), "liar-" + std::to_string(number));
  ASSERT_TRUE(liar) << liar.error().text();
  for (int i = 0; i < 4 && liar->listen(); ++i) {
    const Lie& one = lies()[random() % lies().size()];
    one.tell(*liar);
  }
}

TEST(LyingPeers, LeaveNoMemoryAndKeepNobodyWaiting) {
  PeerProcess victim("name=victim secret=ours detect=30000");
  victim.must("memory data 1048576");
  Bystander bystander(fromHex(victim.card()));
  const auto card = *Card::decode(fromHex(victim.card()));
  const auto residentKiB = [&] {
    const auto usage = words(victim.must("usage"));
    return std::stol(usage.at(2));
  };
  std::this_thread::sleep_for(300ms);
  lie(card, 0);  // what the first session allocates stays
  victim.must("takenotes 100");
  const long before = residentKiB();
  const Duration quiet = bystander.longest();
  std::atomic<std::uint64_t> next{1};
  std::vector<std::thread> liars;
  for (int i = 0; i < kAtOnce; ++i)
    liars.emplace_back([&] {
      for (std::uint64_t mine = next++; mine <= sessions(); mine = next++) lie(card, mine);
    });
  while (next <= sessions()) victim.must("takenotes 100", 60s);
  for (std::thread& one : liars) one.join();
  victim.must("takenotes 1000", 60s);
  bystander.stop();
  const long with_free_heap = residentKiB() - before;
  // The victim frees the rest of a session only once it has noticed the session's end.
  long more = with_free_heap;
  for (const Deadline until = 10s; more > kMostKiB && !until.passed(); ::usleep(10'000)) {
    victim.must("trim");
    more = residentKiB() - before;
  }
  const Duration deaf = bystander.longest();
  const auto ms = [](Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  std::printf(
      "%llu lying sessions: %ld KiB more, %ld with malloc's free memory; longest read %.1f ms, "
      "without liars %.1f ms\n",
      static_cast<unsigned long long>(sessions()), more, with_free_heap, ms(deaf), ms(quiet));
  EXPECT_LE(more, kMostKiB);
  EXPECT_LE(deaf, kMostDeaf);
  EXPECT_EQ(bystander.peer().state(), PeerState::kReady);
  EXPECT_EQ(bystander.peer().epoch(), 1U);
}

}  // namespace
}  // namespace viaduct::testing
