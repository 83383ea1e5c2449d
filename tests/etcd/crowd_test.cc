// Many processes start at the same instant, round after round under one name. Before each round,
// the processes of an extra round are killed at a random moment. Every complete group has to be
// right. VIADUCT_MEET_ROUNDS sets the number of rounds, of 64 processes each; VIADUCT_SEED sets the
// moments.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <set>
#include <thread>

#include "base/random.h"
#include "process/process.h"
#include "support/etcd_server.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

struct Crowd {
  int members = 12;
  std::uint64_t rounds = 3;
};
Crowd crowd() {
  const char* const rounds = std::getenv("VIADUCT_MEET_ROUNDS");
  return rounds == nullptr ? Crowd() : Crowd{64, std::strtoull(rounds, nullptr, 10)};
}

class Round {
 public:
  Round(const std::string& where, int members) {
    for (int i = 0; i < members; ++i)
      processes_.emplace_back(std::vector<std::string>{
          kEtcdMember, where, "crowd", std::to_string(members), "-", fmt::format("m{}", i), "60"});
  }
  // Expects distinct ranks, one epoch and one roster. Returns the epoch.
  std::string expectRight() {
    std::set<std::string> ranks, agreed;
    for (Process& process : processes_) {
      std::string line = process.answer(60s).value_or("nothing");
      while (line.starts_with("waiting ")) line = process.answer(60s).value_or("nothing");
      const std::size_t space = line.find(' ', 6);
      if (!line.starts_with("whole ") || space == std::string::npos) {
        ADD_FAILURE() << line;
        return {};
      }
      ranks.insert(line.substr(6, space - 6));
      agreed.insert(line.substr(space + 1));
    }
    EXPECT_EQ(ranks.size(), processes_.size());
    EXPECT_EQ(agreed.size(), 1U);
    return *agreed.begin();
  }
  void expectBarrier() {
    for (Process& process : processes_) process.send("gather x");
    for (Process& process : processes_) {
      const std::string line = process.answer(60s).value_or("nothing");
      EXPECT_TRUE(line.starts_with("values x")) << line;
    }
  }
  void kill() {
    for (Process& process : processes_) process.kill();
  }

 private:
  std::deque<Process> processes_;
};

TEST(EtcdCrowd, EveryGroupIsRightOverTheLeftoversOfKilledOnes) {
  VIADUCT_NEEDS_ETCD();
  const char* const given = std::getenv("VIADUCT_SEED");
  const std::uint64_t seed = given == nullptr ? 7 : std::strtoull(given, nullptr, 10);
  base::Random random(seed);
  EtcdServer etcd;
  const Crowd size = crowd();
  std::set<std::string> epochs;
  for (std::uint64_t round = 0; round < size.rounds; ++round) {
    {
      // A round that is killed at a random moment: while it starts, forms, or is complete.
      Round doomed(etcd.url(), size.members);
      std::this_thread::sleep_for(std::chrono::milliseconds(random.below(400)));
      doomed.kill();
    }
    Round right(etcd.url(), size.members);
    epochs.insert(right.expectRight());
    right.expectBarrier();
    right.kill();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "in round " << round << " of seed " << seed;
  }
  EXPECT_EQ(epochs.size(), size.rounds);
}

}  // namespace
}  // namespace viaduct::testing
