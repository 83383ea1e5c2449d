// Thousands of silent connections to an agent that may open 1,024 files. Peers still connect, even
// from the strangers' address: while the strangers are idle, and while each closed one connects
// again.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "process/pair.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

// An agent in its own process, with an ordinary user's limits.
PeerProcess besieged(const std::string& backends, int files = 1024) {
  return PeerProcess("name=besieged secret=ours detect=10000 backends=" + backends, 0,
                     {"bash", "-c", "ulimit -S -n " + std::to_string(files) + "; exec \"$0\""});
}

// Holds `count` silent connections to one address until its destructor. In a flood, a closed one
// connects again.
class Crowd {
 public:
  Crowd(const std::string& where, const std::string& count, const std::string& how)
      : process_({kStrangers, where, count, how}) {
    const std::string there = process_.answer(60s).value_or("nothing");
    EXPECT_TRUE(there.starts_with("ok")) << there;
    if (there != "ok " + count)
      std::printf("the limit of open files lets only %s strangers come\n", there.c_str() + 3);
  }

 private:
  Process process_;
};

std::vector<std::unique_ptr<Crowd>> everywhere(const Card& card, const std::string& count,
                                               const std::string& how) {
  std::vector<std::string> where = card.addresses;
  where.push_back("unix:@" + card.unix_name);
  std::vector<std::unique_ptr<Crowd>> out;
  for (const std::string& one : where) out.push_back(std::make_unique<Crowd>(one, count, how));
  return out;
}

Agent opened(const std::string& name, const std::string& backend) {
  return *Agent::open({.name = name, .secret = "ours", .backends = {backend}, .detect = 10s});
}

// Half of the peers have the card, and dial the Unix socket. The others have only the address, and
// dial TCP first.
void expectOpen(const std::string& backend, const char* count, const char* how, int peers) {
  PeerProcess victim = besieged(backend);
  const auto card = *Card::decode(fromHex(victim.card()));
  const auto strangers = everywhere(card, count, how);
  std::int64_t longest = 0;
  for (int i = 0; i < peers; ++i) {
    const auto start = Clock::now();
    Agent peer = opened("peer-" + std::to_string(i), backend);
    const auto to =
        i % 2 == 0 ? peer.importCard(fromHex(victim.card())) : peer.connect(card.addresses.at(0));
    ASSERT_TRUE(to);
    const Status ready = to->ready(60s);
    ASSERT_TRUE(ready) << backend << ": " << ready.error().text();
    longest = std::max(longest, since(start));
  }
  std::printf("%s, %s %s strangers at each address: a peer is ready within %lld ms\n",
              backend.c_str(), count, how, static_cast<long long>(longest));
}

TEST(Strangers, ThatSendNothingKeepNoPeerOut) {
  for (const char* backend : {"local", "tcp"}) expectOpen(backend, "2000", "idle", 20);
}

TEST(Strangers, ThatReconnectWithoutEndKeepNoPeerOut) {
  for (const char* backend : {"local", "tcp"}) expectOpen(backend, "500", "flood", 6);
}

// More peers dial at once than the limit of unproven connections. In the end all are connected.
TEST(Strangers, AreLimitedAndProvenPeersAreNot) {
  constexpr int kPeers = 70, kFiles = 512;  // strangers may use 64 of these files
  PeerProcess victim = besieged("local", kFiles);
  const auto strangers = everywhere(*Card::decode(fromHex(victim.card())), "500", "idle");
  std::vector<Agent> peers;
  std::vector<Peer> to;
  for (int i = 0; i < kPeers; ++i) peers.push_back(opened("p" + std::to_string(i), "local"));
  const auto start = Clock::now();
  for (Agent& peer : peers) to.push_back(*peer.importCard(fromHex(victim.card())));
  for (const Peer& peer : to) {
    const Status ready = peer.ready(60s);
    ASSERT_TRUE(ready) << ready.error().text();
  }
  std::printf("%d peers that dial at once are ready within %lld ms\n", kPeers,
              static_cast<long long>(since(start)));
  for (const Peer& peer : to) {
    EXPECT_EQ(peer.state(), PeerState::kReady);
    EXPECT_EQ(peer.epoch(), 1U) << "none was pushed out since";
  }
}

}  // namespace
}  // namespace viaduct::testing
