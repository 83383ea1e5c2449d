// Runs target and initiator in one process, each with its own agent and thread.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "measure/p2p/initiator.h"
#include "measure/p2p/target.h"

namespace viaduct::measure::p2p {
namespace {

using namespace std::chrono_literals;

class P2p : public ::testing::Test {
 protected:
  ~P2p() override { endTarget(); }
  Agent open(const std::string& name) {
    auto agent = Agent::open({.name = name, .backends = {"tcp"}});
    EXPECT_TRUE(agent) << agent.error().text();
    return *std::move(agent);
  }
  void endTarget() {
    stop_target_.store(true);
    if (serving_.joinable()) serving_.join();
  }
  P2pInitiator initiator(Agent& agent) {
    const Peer peer = *agent.importCard(target_->exportCard());
    EXPECT_TRUE(peer.ready(10s));
    return {agent, {}, peer, stop_};
  }
  static Spec specOf(const std::vector<std::uint64_t>& sizes, std::uint64_t iterations) {
    Spec spec{.warmup = 0ns};
    for (const std::uint64_t size : sizes)
      spec.rows.push_back({.block_bytes = size, .warm_iterations = 2, .iterations = iterations});
    return spec;
  }
  std::vector<Row> rows(P2pInitiator& initiator, const Spec& spec) {
    std::vector<Row> out;
    const auto done =
        initiator.measure(spec, [&](const Composed& measured) { out.push_back(measured.row); });
    EXPECT_TRUE(done) << done.error().text();
    return out;
  }

  // Waits for the line, because the target hears of a disconnect later than the initiator.
  bool isTold(const std::string& line) {
    std::unique_lock held(mutex_);
    return changed_.wait_for(held, 30s, [&] { return std::ranges::count(told_, line) > 0; });
  }
  void tell(const std::string& line) {
    const std::lock_guard held(mutex_);
    told_.push_back(line);
    changed_.notify_all();
  }

  const StopFlag stop_{false};
  StopFlag stop_target_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> told_;  // guarded by the mutex until the target has ended
  std::optional<Agent> target_ = open("target");
  std::thread serving_{[this] {
    serveP2p(*target_, {}, {}, [this](const std::string& line) { tell(line); }, stop_target_);
  }};
};

// The least number of checked runs: a timed run and six short ones. On a busy machine, exchanges
// take so long that there is no time for more.
constexpr std::uint64_t kFewestChecks = 7;

TEST_F(P2p, MeasuresEachSizeAndProvesIt) {
  Agent agent = open("initiator");
  P2pInitiator initiator = this->initiator(agent);
  const auto target = initiator.greet(10s, [](const std::string&) {});
  ASSERT_TRUE(target) << target.error().text();
  EXPECT_EQ(target->name, "target");
  EXPECT_EQ(target->role, "target");
  const auto found = rows(initiator, specOf({4096, 1'000'000}, 12));
  ASSERT_EQ(found.size(), 2U);
  for (const Row& row : found) {
    EXPECT_TRUE(isGood(row.verdict)) << row.why;
    EXPECT_EQ(row.backend, "tcp");
    EXPECT_EQ(row.iterations, 12U);
    ASSERT_TRUE(row.checks);
    EXPECT_GE(row.checks->transfers, kFewestChecks) << "after each run";
    ASSERT_TRUE(row.gb_per_s && row.latency_us);
    EXPECT_GT(*row.gb_per_s, 0);
    EXPECT_GT(row.latency_us->mean, 0);
    EXPECT_LE(row.latency_us->p50, row.latency_us->p99);
    ASSERT_EQ(row.path.size(), 1U);
    EXPECT_EQ(row.path[0].bytes, row.transfers * row.block_size);
  }
}

TEST_F(P2p, MeasuresInEveryDirectionAndChecksManyTransfers) {
  Agent agent = open("initiator");
  P2pInitiator initiator = this->initiator(agent);
  ASSERT_TRUE(initiator.greet(10s, [](const std::string&) {}));
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
    for (const bool both : {false, true}) {
      Spec spec = specOf({4096}, 200);
      spec.rows[0].op = op;
      spec.bidirectional = both;
      const auto found = rows(initiator, spec);
      ASSERT_EQ(found.size(), 1U);
      EXPECT_TRUE(isGood(found[0].verdict)) << found[0].why;
      EXPECT_EQ(found[0].iterations, both ? 400U : 200U);
      ASSERT_TRUE(found[0].checks);
      EXPECT_GE(found[0].checks->transfers, kFewestChecks);
    }
}

TEST_F(P2p, InitiatorsAreServedOneAfterTheOther) {
  for (const char* name : {"first", "second"}) {
    Agent agent = open(name);
    P2pInitiator initiator = this->initiator(agent);
    ASSERT_TRUE(initiator.greet(10s, [](const std::string&) {}));
    EXPECT_EQ(rows(initiator, specOf({4096}, 2)).size(), 1U);
    initiator.leave();
    EXPECT_TRUE(isTold(std::string(name) + " disconnected"));
  }
  endTarget();
  EXPECT_EQ(told_, (std::vector<std::string>{"first connected", "first disconnected",
                                             "second connected", "second disconnected"}));
}

TEST_F(P2p, ASecondInitiatorLearnsThatTheTargetIsBusy) {
  Agent first_agent = open("first"), second_agent = open("second");
  P2pInitiator first = initiator(first_agent), second = initiator(second_agent);
  ASSERT_TRUE(first.greet(10s, [](const std::string&) {}));
  std::string busy;
  const auto greeted = second.greet(30s, [&](const std::string& text) {
    busy = text;
    first.leave();
  });
  EXPECT_TRUE(greeted) << greeted.error().text();
  EXPECT_EQ(busy, "the target is busy with first");
}

TEST_F(P2p, ATooLargeBufferIsAFailedRow) {
  Agent agent = open("initiator");
  P2pInitiator initiator = this->initiator(agent);
  ASSERT_TRUE(initiator.greet(10s, [](const std::string&) {}));
  const auto found = rows(initiator, specOf({std::uint64_t{1} << 36U, 4096}, 2));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].verdict, Verdict::kFailed);
  EXPECT_NE(found[0].why.find("a quarter of its memory"), std::string::npos) << found[0].why;
  EXPECT_TRUE(isGood(found[1].verdict)) << found[1].why;
}

TEST_F(P2p, AMissingRequiredPathHasItsVerdict) {
  Agent agent = open("initiator");
  P2pInitiator initiator = this->initiator(agent);
  ASSERT_TRUE(initiator.greet(10s, [](const std::string&) {}));
  Spec spec = specOf({4096}, 2);
  spec.require = "rdma";
  const auto found = rows(initiator, spec);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].verdict, Verdict::kNotRequired) << found[0].why;
}

TEST_F(P2p, AMeasurementEndsWithItsTarget) {
  Agent agent = open("initiator");
  P2pInitiator initiator = this->initiator(agent);
  ASSERT_TRUE(initiator.greet(10s, [](const std::string&) {}));
  endTarget();
  target_.reset();  // otherwise the initiator reconnects, and nobody answers
  const auto done = initiator.measure(specOf({4096}, 2), [](const Composed&) {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kPeerLost) << done.error().text();
}

}  // namespace
}  // namespace viaduct::measure::p2p
