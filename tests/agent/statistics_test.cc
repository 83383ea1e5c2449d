// Agent::statistics() counts each event once, in the right place.
#include <gtest/gtest.h>
#include <viaduct/statistics.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "backends/fake/fake_rail.h"
#include "base/log.h"
#include "base/movable_clock.h"
#include "support/agent_of_a_clock.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMovedBytes = std::uint64_t{1} << 20U;

// Two agents of one process over one backend, and transfers of all their memory. The test moves
// their clock.
struct Pair {
  explicit Pair(const char* backend, const char* faults = "", const char* fake = "") {
    for (auto* agent : {&a, &b}) {
      auto opened = agent::AgentOfAClock::open({.backends = {backend},
                                                .detect = 8h,
                                                .deadline = 8h,
                                                .faults = faults,
                                                .faults_allowed = true,
                                                .others = {{"VIADUCT_FAKE", fake}}},
                                               clock);
      EXPECT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    here.emplace(*a->allocate(kMovedBytes));
    there.emplace(*b->allocate(kMovedBytes, {.label = "there"}));
    peer.emplace(*a->importCard(b->exportCard()));
    EXPECT_TRUE(peer->ready(10s) && peer->waitPin("there", 10s));
  }
  Transfer plan(std::uint64_t blocks = 4) {
    const auto all = [&](const Pin& pin) {
      const std::uint64_t each = kMovedBytes / blocks;
      return *Blocks::strided({.base = pin.info().address,
                               .stride = each,
                               .bytes = each / 2,  // separate blocks, so that each is an op
                               .count = blocks});
    };
    auto planned = a->plan(OpKind::kWrite, *peer, {.blocks = all(*here)}, {.blocks = all(*there)});
    EXPECT_TRUE(planned) << planned.error().text();
    return *std::move(planned);
  }

  // Moves the clock until the transfer has ended. Returns whether it is done.
  bool ends(Transfer& transfer) {
    while (transfer.poll() == TransferState::kRunning) clock.advance(1s);
    return transfer.state() == TransferState::kDone;
  }

  base::MovableClock clock;
  std::optional<Agent> a, b;
  std::optional<Pin> here, there;
  std::optional<Peer> peer;
};

std::uint64_t errorsOf(const RailStatistics& rail) {
  return std::accumulate(rail.errors.begin(), rail.errors.end(), std::uint64_t{0});
}

std::uint64_t errorsOf(const Statistics& all, Code code) {
  std::uint64_t errors = all.errors_without_rail[static_cast<std::size_t>(code)];
  for (const RailStatistics& rail : all.rails)
    errors += rail.errors[static_cast<std::size_t>(code)];
  return errors;
}

std::uint64_t timed(const Statistics& all) {
  return std::accumulate(all.latencies.counts.begin(), all.latencies.counts.end(),
                         std::uint64_t{0});
}

class OfEachBackend : public ::testing::TestWithParam<const char*> {};

TEST_P(OfEachBackend, StatisticsCountTheBytesOfItsRails) {
  Pair pair(GetParam());
  Transfer transfer = pair.plan();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(transfer.post());
    ASSERT_TRUE(transfer.wait(10s));
  }
  const Statistics all = pair.a->statistics();
  EXPECT_EQ(all.agent, pair.a->name());
  EXPECT_EQ(all.endpoint, "");
  EXPECT_EQ(all.started, 10U);
  EXPECT_EQ(all.done, 10U);
  EXPECT_EQ(all.failed + all.cancelled, 0U);
  std::uint64_t bytes = 0, ops = 0;
  for (const RailStatistics& rail : all.rails) {
    EXPECT_EQ(rail.backend, GetParam());
    EXPECT_NE(rail.rail, "");
    EXPECT_EQ(errorsOf(rail), 0U);
    bytes += rail.bytes;
    ops += rail.ops;
  }
  EXPECT_EQ(bytes, 10 * transfer.bytes());
  // Only a backend with its own TCP sockets reports sockets. The sockets carry more than the
  // payload.
  const auto& sockets = all.rails.front().sockets;
  EXPECT_EQ(sockets.has_value(), std::string(GetParam()) == "tcp");
  if (sockets) {
    EXPECT_GE(sockets->sockets, 1U);
    EXPECT_GE(sockets->sent_bytes, bytes);
    EXPECT_GT(sockets->round_trip, 0ns);
    EXPECT_GT(sockets->path_mtu, sockets->segment_bytes);
  }
  std::uint64_t carried = 0;
  for (const PathShare& share : transfer.carried().shares) carried += share.ops;
  EXPECT_EQ(ops, carried);
  EXPECT_GT(timed(all), 0U);
  EXPECT_GT(all.latencies.sum, 0ns);
  EXPECT_EQ(all.pins, 1U);
  EXPECT_EQ(all.pinned_bytes, kMovedBytes);
  EXPECT_EQ(all.peers[static_cast<std::size_t>(PeerState::kReady)], 1U);
  // Only the agent that posts a transfer counts it.
  EXPECT_EQ(pair.b->statistics().started, 0U);
}

INSTANTIATE_TEST_SUITE_P(Statistics, OfEachBackend, ::testing::Values("fake", "local", "tcp"),
                         [](const auto& one) { return std::string(one.param); });

TEST(Statistics, CountATransferAsStartedUntilItEndsAndThenAsCancelled) {
  Pair pair("fake", "stop");
  Transfer transfer = pair.plan();
  ASSERT_TRUE(transfer.post());
  EXPECT_EQ(pair.a->statistics().started, 1U);
  EXPECT_EQ(pair.a->statistics().done, 0U);
  transfer.cancel();
  EXPECT_FALSE(transfer.wait(10s));
  const Statistics all = pair.a->statistics();
  EXPECT_EQ(all.cancelled, 1U);
  EXPECT_EQ(all.done + all.failed, 0U);
  EXPECT_EQ(timed(all), 0U);
  // A cancelled transfer is not an error.
  for (std::size_t code = 0; code < kCodes; ++code)
    EXPECT_EQ(errorsOf(all, static_cast<Code>(code)), 0U) << code;
}

TEST(Statistics, CountADeadlineThatPassedAsAnErrorOfTheRailThatWasTooSlow) {
  Pair pair("fake", "stop", "rails=1");
  Transfer transfer = pair.plan(1);
  ASSERT_TRUE(transfer.post({.deadline = 1h}));
  pair.clock.advance(1h);
  EXPECT_FALSE(transfer.wait(10s));
  const Statistics all = pair.a->statistics();
  EXPECT_EQ(all.failed, 1U);
  ASSERT_EQ(all.rails.size(), 1U);
  EXPECT_EQ(all.rails[0].errors[static_cast<std::size_t>(Code::kTimeout)], 1U);
  EXPECT_EQ(errorsOf(all.rails[0]), 1U);
}

TEST(Statistics, CountASliceThatAnotherRailRepeatedAsAnErrorAndItsTransferAsDone) {
  Pair pair("fake", "delay=1s");
  Transfer transfer = pair.plan(64);
  ASSERT_TRUE(transfer.post());
  fake::rails_cut = 1;
  EXPECT_TRUE(pair.ends(transfer));
  fake::rails_cut = 0;
  const Statistics all = pair.a->statistics();
  EXPECT_EQ(all.done, 1U);
  ASSERT_EQ(all.rails.size(), 2U);
  EXPECT_GT(errorsOf(all.rails[0]), 0U);
  EXPECT_EQ(errorsOf(all.rails[1]), 0U);
  EXPECT_EQ(all.rails[1].bytes, transfer.bytes());
}

// The rail is cut and mended again and again, seconds apart.
TEST(Statistics, CountARailThatIsSetAsideBecauseItFailsAgainAndAgain) {
  Pair pair("fake", "delay=1s");
  Transfer transfer = pair.plan(64);
  const auto times = [&] { return pair.a->statistics().rails.at(0).times_set_aside; };
  base::setLogLevel(base::LogLevel::kWarning);
  ::testing::internal::CaptureStderr();
  for (int cuts = 0; cuts < 20 && times() == 0; ++cuts) {
    pair.clock.advance(1s);
    ASSERT_TRUE(transfer.post());
    fake::rails_cut = 1;
    EXPECT_TRUE(pair.ends(transfer));
    fake::rails_cut = 0;
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(times(), 1U);
  EXPECT_NE(said.find("warning: rail fake0 of host "), std::string::npos) << said;
  EXPECT_NE(said.find("set aside for 1s"), std::string::npos) << said;
  EXPECT_EQ(said.find("warning"), said.rfind("warning")) << said;
  // The agent tries the rail again later.
  const std::uint64_t before = pair.a->statistics().rails.at(0).bytes;
  pair.clock.advance(2s);
  ASSERT_TRUE(transfer.post());
  EXPECT_TRUE(pair.ends(transfer));
  EXPECT_GT(pair.a->statistics().rails.at(0).bytes, before);
}

TEST(Statistics, CountALostSessionAndTheTransferThatItEnds) {
  Pair pair("fake", "kill-peer@op:1");
  Transfer transfer = pair.plan(1);
  const std::uint64_t epoch = pair.peer->epoch();
  ASSERT_TRUE(transfer.post());
  EXPECT_FALSE(transfer.wait(10s));
  ASSERT_TRUE(pair.peer->over(epoch, 10s));
  const Statistics all = pair.a->statistics();
  EXPECT_GE(all.sessions_lost, 1U);
  EXPECT_EQ(all.failed, 1U);
  EXPECT_GE(errorsOf(all, Code::kPeerLost), 1U);
}

TEST(Statistics, DoNotCountASessionThatAPeerEndsAsLost) {
  Pair pair("local");
  const std::uint64_t epoch = pair.peer->epoch();
  pair.b.reset();
  ASSERT_TRUE(pair.peer->over(epoch, 10s));
  const Statistics all = pair.a->statistics();
  EXPECT_EQ(all.sessions_lost, 0U);
  EXPECT_EQ(all.peers[static_cast<std::size_t>(PeerState::kReady)], 0U);
}

TEST(Statistics, CountNotesOfBothWays) {
  Pair pair("local");
  ASSERT_TRUE(pair.peer->note("one"));
  ASSERT_TRUE(pair.peer->note(std::string(100'000, 'x')));  // longer than the ring
  ASSERT_TRUE(pair.b->waitNote(10s) && pair.b->waitNote(10s));
  EXPECT_EQ(pair.a->statistics().notes_sent, 2U);
  EXPECT_EQ(pair.b->statistics().notes_received, 2U);
  EXPECT_EQ(pair.a->statistics().notes_received, 0U);
}

TEST(Statistics, FollowThePins) {
  Pair pair("local");
  auto second = pair.a->allocate(4096);
  ASSERT_TRUE(second);
  EXPECT_EQ(pair.a->statistics().pins, 2U);
  EXPECT_EQ(pair.a->statistics().pinned_bytes, kMovedBytes + 4096);
  ASSERT_TRUE(second->release());
  ASSERT_TRUE(second->release());  // returns the first call's result
  EXPECT_EQ(pair.a->statistics().pins, 1U);
  EXPECT_EQ(pair.a->statistics().pinned_bytes, kMovedBytes);
}

}  // namespace
}  // namespace viaduct
