// The memory for the rings of staged transfers: all peers of an agent share it, and a session that
// ends frees its part. VIADUCT_STAGED_SESSIONS sets the number of sessions.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMemory = 2 << 20, kFile = 3 << 20;

class RingMemory : public ::testing::TestWithParam<std::string> {
 protected:
  // Two rings of four chunks fit.
  Settings settings(const std::string& name) const {
    return {.name = name,
            .backends = {GetParam(), "file"},
            .staging_chunk = kMemory / 8,
            .staging_memory = kMemory};
  }
  void openOwner(const Settings& chosen) {
    auto opened = Agent::open(chosen);
    ASSERT_TRUE(opened) << opened.error().text();
    owner_.emplace(*std::move(opened));
    std::ofstream(folder_.path() + "/f", std::ios::binary) << std::string(kFile, 'f');
    auto file = owner_->pin(Segment::file(folder_.path() + "/f"), "f");
    ASSERT_TRUE(file) << file.error().text();
    file_.emplace(*std::move(file));
  }
  Result<Agent> openUser(int number) {
    VIADUCT_TRY(Agent user, Agent::open(settings("user-" + std::to_string(number))));
    VIADUCT_TRY(const Peer peer, user.connect(owner_->card()));
    VIADUCT_CHECK(peer.ready(20s));
    return user;
  }
  static Status read(Agent& user) {
    VIADUCT_TRY(const Pin memory, user.allocate(kFile));
    Peer owner = *user.peer("owner");
    VIADUCT_TRY(const PinInfo there, owner.waitPin("f", 20s));
    const auto all = [](const PinInfo& pin) {
      return Selection{
          *Blocks::strided({.base = pin.address, .bytes = 65536, .count = kFile / 65536})};
    };
    VIADUCT_TRY(auto transfer, user.plan(OpKind::kRead, owner, all(memory.info()), all(there)));
    VIADUCT_CHECK(transfer.post());
    VIADUCT_CHECK(transfer.wait(60s));
    const std::string expected(kFile, 'f');
    const bool right = std::memcmp(memory.data(), expected.data(), kFile) == 0;
    return right ? Status(Ok{}) : Status(Error{.detail = "wrong bytes"});
  }
  static std::uint64_t ringsOf(Agent& user) {
    const auto pins = user.peer("owner")->pins();
    return static_cast<std::uint64_t>(
        std::ranges::count(pins, "viaduct: staging", &PinInfo::label));
  }

  TemporaryFolder folder_;
  std::optional<Agent> owner_;
  std::optional<Pin> file_;
};

TEST_P(RingMemory, IsTakenFromSessionsThatDoNotUseIt) {
  openOwner(settings("owner"));
  std::vector<Agent> users;
  std::uint64_t rings = 0;
  for (int i = 0; i < 5; ++i) {
    auto user = openUser(i);
    ASSERT_TRUE(user) << user.error().text();
    users.push_back(*std::move(user));
    const Status done = read(users.back());
    ASSERT_TRUE(done) << done.error().text();
  }
  for (Agent& user : users) rings += ringsOf(user);
  EXPECT_LE(rings, 2U);
  const Status again = read(users.front());
  EXPECT_TRUE(again) << again.error().text();
}

TEST_P(RingMemory, IsUsedInTurnByManySessionsAtATime) {
  openOwner(settings("owner"));
  std::vector<std::jthread> threads;
  for (int i = 0; i < 5; ++i)
    threads.emplace_back([this, i] {
      auto user = openUser(i);
      ASSERT_TRUE(user) << user.error().text();
      for (int round = 0; round < 2; ++round) {
        const Status done = read(*user);
        ASSERT_TRUE(done) << done.error().text();
      }
    });
}

// The resident memory of this process, in bytes.
std::uint64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

TEST_P(RingMemory, IsFreedWhenItsSessionEnds) {
  const char* const text = std::getenv("VIADUCT_STAGED_SESSIONS");
  const int sessions = text == nullptr ? 6 : std::atoi(text);
  Settings chosen = settings("owner");
  chosen.staging_memory = 1 << 30;
  chosen.staging_chunk = 2 << 20;
  openOwner(chosen);
  std::uint64_t before = 0;
  for (int i = 0; i < sessions; ++i) {
    auto user = openUser(i);
    ASSERT_TRUE(user) << user.error().text();
    const Status done = read(*user);
    ASSERT_TRUE(done) << done.error().text();
    if (i == 0) before = residentBytes();
    if (i % 2 != 0) owner_->peer("user-" + std::to_string(i))->forget();
  }
  const std::uint64_t after = residentBytes();
  std::printf("%d sessions, resident: %llu bytes more\n", sessions,
              static_cast<unsigned long long>(std::max(after, before) - before));
  EXPECT_LE(after, before + (std::uint64_t{64} << 20U));
}

INSTANTIATE_TEST_SUITE_P(Over, RingMemory, ::testing::Values("local", "tcp"),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace viaduct::testing
