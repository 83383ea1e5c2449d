// Rolling restarts: one of two publishers is replaced again and again, under the traffic of peers
// that go on with its successor. VIADUCT_RESTARTS and VIADUCT_RESTART_PEERS set their numbers.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "meet/groups/server.h"
#include "process/process.h"
#include "process/published.h"
#include "process/seeds.h"
#include "process/words.h"
#include "support/etcd_server.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = 60s;

struct Tally {
  std::atomic<std::uint64_t> moved{0}, handed_over{0}, refused{0}, wrong{0}, lost{0}, errors{0};
};

// The longest transfer with the replaced publisher since the last take().
class Longest {
 public:
  void add(Duration took) {
    const std::lock_guard lock(mutex_);
    longest_ = std::max(longest_, took);
  }
  Duration take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(longest_, Duration::zero());
  }

 private:
  std::mutex mutex_;
  Duration longest_{};
};

// A peer of both publishers. It reads and writes blocks without a pause, and checks them.
class Traffic {
 public:
  Traffic(std::size_t number, const std::string& meet, const std::string& backend, Tally& tally,
          Longest& longest)
      : number_(number), tally_(tally), longest_(longest), random_(number + 1) {
    Settings settings;
    settings.name = fmt::format("peer-{}", number);
    settings.meet = meet;
    settings.backends = {backend};
    settings.secret = "swordfish";
    settings.detect = published::kDetect;
    auto agent = Agent::open(settings);
    if (!agent) {
      fail(agent.error());
      return;
    }
    agent_.emplace(*std::move(agent));
    memory_.emplace(*agent_->allocate(2 * published::kBlock, {.label = "memory"}));
    for (const char* name : {"steady", "replaced"}) publishers_.push_back({.name = name});
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested() && !failed_) round(publishers_[random_.below(2)]);
    });
  }

 private:
  // A publisher as this peer knows it. The plans are for the agent that has the name now.
  struct Publisher {
    std::string name;
    std::optional<Peer> peer = {};
    std::vector<Transfer> reads = {};
    std::optional<Transfer> writes = {}, reads_back = {};
  };

  void fail(const Error& why) {
    ++tally_.errors;
    failed_ = true;
    ADD_FAILURE() << "peer-" << number_ << ": " << why.text();
  }
  std::span<std::byte> here(std::uint64_t block) {
    return memory_->bytes().subspan(block * published::kBlock, published::kBlock);
  }
  static Selection block(const PinInfo& pin, std::uint64_t index) {
    return {*Blocks::strided({.base = pin.address + index * published::kBlock,
                              .bytes = published::kBlock,
                              .count = 1}),
            {}};
  }

  // Finds the agent that has the name now, and plans anew. False: the agent drains already.
  Result<bool> meet(Publisher& publisher) {
    publisher.reads.clear();
    publisher.writes.reset();
    publisher.reads_back.reset();
    VIADUCT_TRY(Peer found, agent_->find(publisher.name, kLong));
    const auto planned = [&]() -> Status {
      VIADUCT_CHECK(found.ready(kLong));
      VIADUCT_TRY(const PinInfo data, found.waitPin("data", kLong));
      VIADUCT_TRY(const PinInfo room, found.waitPin("room", kLong));
      const auto plan = [&](OpKind kind, std::uint64_t at, const PinInfo& pin, std::uint64_t to) {
        return agent_->plan(kind, found, block(memory_->info(), at), block(pin, to));
      };
      for (std::uint64_t i = 0; i < published::kBlocks; i += 8) {
        VIADUCT_TRY(auto read, plan(OpKind::kRead, 0, data, i));
        publisher.reads.push_back(std::move(read));
      }
      VIADUCT_TRY(publisher.writes, plan(OpKind::kWrite, 1, room, number_));
      VIADUCT_TRY(publisher.reads_back, plan(OpKind::kRead, 0, room, number_));
      return Ok{};
    }();
    if (!planned && planned.error().code == Code::kDraining) return false;
    VIADUCT_CHECK(planned);
    publisher.peer = found;
    ++tally_.handed_over;
    return true;
  }

  // True: the transfer is done. False: the post was refused, and nothing moved.
  Result<bool> move(const Publisher& publisher, Transfer& transfer) {
    const auto start = Clock::now();
    if (auto posted = transfer.post(); !posted) {
      if (posted.error().code != Code::kDraining) return posted.error();
      ++tally_.refused;
      return false;
    }
    if (auto ended = transfer.wait(kLong); !ended) {
      ++tally_.lost;
      return ended.error();
    }
    if (publisher.name == "replaced") longest_.add(Clock::now() - start);
    ++tally_.moved;
    return true;
  }

  Status read(Publisher& publisher) {
    const std::uint64_t index = random_.below(publisher.reads.size());
    std::ranges::fill(here(0), std::byte{0xee});
    VIADUCT_TRY(const bool moved, move(publisher, publisher.reads[index]));
    const std::uint64_t first = index * 8 * published::kBlock / sizeof(std::uint64_t);
    if (moved)
      tally_.wrong += published::wrong(here(0), published::seedOf(publisher.name), first);
    else
      publisher.peer.reset();
    return Ok{};
  }

  Status writeAndReadBack(Publisher& publisher) {
    const std::uint64_t seed = random_.below(~std::uint64_t{0});
    published::fill(here(1), seed);
    VIADUCT_TRY(const bool written, move(publisher, *publisher.writes));
    std::ranges::fill(here(0), std::byte{0xee});
    const auto back = written ? move(publisher, *publisher.reads_back) : Result<bool>(false);
    VIADUCT_CHECK(back);
    if (*back)
      tally_.wrong += published::wrong(here(0), seed);
    else
      publisher.peer.reset();
    return Ok{};
  }

  void round(Publisher& publisher) {
    if (publisher.peer && publisher.peer->state() != PeerState::kReady) publisher.peer.reset();
    if (!publisher.peer) {
      const auto met = meet(publisher);
      if (!met) return fail(met.error());
      if (!*met) return;
    }
    const Status done = random_.chance(0.5) ? read(publisher) : writeAndReadBack(publisher);
    if (!done) fail(done.error());
  }

  const std::size_t number_;
  Tally& tally_;
  Longest& longest_;
  base::Random random_;
  std::optional<Agent> agent_;
  std::optional<Pin> memory_;
  std::vector<Publisher> publishers_;
  std::atomic<bool> failed_{false};
  std::jthread thread_;
};

struct RestartCase {
  const char *name, *backend;
  bool etcd = false;  // the meeting place; otherwise Viaduct's own server
};

class RollingRestarts : public ::testing::TestWithParam<RestartCase> {
 protected:
  void SetUp() override {
    if (GetParam().etcd) {
      VIADUCT_NEEDS_ETCD();
      etcd_.emplace();
      where_ = etcd_->url();
    } else {
      server_ = std::move(*meet::EmbeddedServer::start({.token = "swordfish"}));
      where_ = server_->addresses().front();
    }
    steady_ = start("steady");
    replaced_ = start("replaced");
  }
  std::unique_ptr<Process> start(const std::string& name) const {
    return std::make_unique<Process>(
        std::vector<std::string>{kPublisher, name, where_, GetParam().backend});
  }
  static void expectReady(Process& process) {
    ASSERT_EQ(process.answer(kLong).value_or("nothing"), "ready");
  }
  // The old publisher drains while its successor waits for the name.
  void replace() {
    longest_.take();
    ASSERT_EQ(::kill(replaced_->pid(), SIGTERM), 0);
    auto successor = start("replaced");
    const auto words = testing::words(replaced_->answer(kLong).value_or("nothing"));
    ASSERT_EQ(words.size(), 3U) << words.front();
    ASSERT_EQ(words[0], "drained");
    EXPECT_EQ(words[1], "0") << "peers were cut off";
    EXPECT_EQ(replaced_->wait(kLong), 0);
    const auto took = std::chrono::duration<double, std::milli>(std::stod(words[2]));
    const auto over = took - longest_.take();
    drains_.push_back(took.count());
    over_.push_back(std::chrono::duration<double, std::milli>(over).count());
    replaced_ = std::move(successor);
    expectReady(*replaced_);
  }

  std::unique_ptr<meet::EmbeddedServer> server_;
  std::optional<EtcdServer> etcd_;
  std::string where_;
  Tally tally_;
  Longest longest_;
  std::vector<double> drains_, over_;  // in milliseconds
  std::unique_ptr<Process> steady_, replaced_;
};

TEST_P(RollingRestarts, LoseNothingAtPeersThatKnowTheSuccessor) {
  const std::uint64_t restarts = fromEnvironment("VIADUCT_RESTARTS", 5);
  const std::uint64_t peers = fromEnvironment("VIADUCT_RESTART_PEERS", 4);
  ASSERT_LE(peers, published::kPeers);
  expectReady(*steady_);
  expectReady(*replaced_);
  std::vector<std::unique_ptr<Traffic>> traffic;
  for (std::uint64_t i = 0; i < peers; ++i)
    traffic.push_back(std::make_unique<Traffic>(i, where_, GetParam().backend, tally_, longest_));
  for (std::uint64_t i = 0; i < restarts && !HasFatalFailure(); ++i) {
    // Every peer has met both publishers that there are now.
    const auto met = [&] { return tally_.handed_over >= (2 + i) * peers; };
    const auto until = Clock::now() + kLong;
    while (!met() && Clock::now() < until && !HasFailure()) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(met());
    replace();
  }
  traffic.clear();
  EXPECT_EQ(tally_.wrong, 0U);
  EXPECT_EQ(tally_.lost, 0U);
  EXPECT_EQ(tally_.errors, 0U);
  std::ranges::sort(drains_);
  std::ranges::sort(over_);
  if (drains_.empty()) return;
  fmt::print(
      "{} restarts, {} peers: {} transfers, {} hand-overs, {} refused posts; {} wrong words, {} "
      "lost, {} errors\n",
      restarts, peers, tally_.moved.load(), tally_.handed_over.load(), tally_.refused.load(),
      tally_.wrong.load(), tally_.lost.load(), tally_.errors.load());
  fmt::print(
      "a drain: median {:.1f} ms, most {:.1f} ms; beyond its longest transfer: median "
      "{:.1f} ms, most {:.1f} ms\n",
      drains_[drains_.size() / 2], drains_.back(), over_[over_.size() / 2], over_.back());
}

INSTANTIATE_TEST_SUITE_P(Over, RollingRestarts,
                         ::testing::Values(RestartCase{"local", "local"}, RestartCase{"tcp", "tcp"},
                                           RestartCase{"etcd", "tcp", true}),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace viaduct::testing
