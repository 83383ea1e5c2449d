// Agents that drain: running transfers end, nothing new begins at either end, and a successor takes
// the name. The fake backend keeps transfers in flight for as long as a test wants.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "backends/fake/fake_rail.h"
#include "meet/groups/server.h"
#include "support/bytes.h"
#include "support/text.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;
using testing::has;

using Drained = Result<std::vector<DrainLeft>>;

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20U;

// The agent `leaver` drains, and `user` is its peer.
class Drain : public ::testing::Test {
 protected:
  void SetUp() override {
    leaver_.emplace(open("leaver"));
    user_.emplace(open("user"));
    theirs_.emplace(*leaver_->allocate(kBytes, {.label = "data"}));
    ours_.emplace(*user_->allocate(kBytes, {.label = "ours"}));
    leaver_at_user_ = *user_->find("leaver", 20s);
    ASSERT_TRUE(leaver_at_user_->ready(20s) && leaver_at_user_->waitPin("data", 20s));
    user_at_leaver_ = *leaver_->peer("user");
    ASSERT_TRUE(user_at_leaver_->ready(20s) && user_at_leaver_->waitPin("ours", 20s));
  }
  void TearDown() override { letMove(); }

  Agent open(const std::string& name) const {
    Settings settings{.backends = {"fake"}};
    settings.secret = "swordfish";
    settings.name = name;
    settings.meet = server_->addresses().front();
    settings.deadline = 20s;
    settings.others["VIADUCT_FAKE"] = "rails=1";  // so that a thread may copy by itself
    auto agent = Agent::open(settings);
    EXPECT_TRUE(agent) << agent.error().text();
    return *std::move(agent);
  }
  // Until letMove(), no transfer moves.
  static void holdAll() {
    fake::interruption.with([](auto& one) { one = [] { return false; }; });
  }
  static void letMove() {
    fake::interruption.with([](auto& one) { one = nullptr; });
  }
  static Selection all(const PinInfo& pin) {
    return {*Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1}), {}};
  }
  static Selection block(const PinInfo& pin, std::uint64_t index) {
    return {*Blocks::strided({.base = pin.address + index * 4096, .bytes = 4096, .count = 1}), {}};
  }
  Transfer userReads() {
    auto planned = user_->plan(OpKind::kRead, *leaver_at_user_, all(ours_->info()),
                               all(leaver_at_user_->waitPin("data", 20s).value()));
    EXPECT_TRUE(planned) << planned.error().text();
    return *std::move(planned);
  }
  Transfer leaverWrites() {
    auto planned = leaver_->plan(OpKind::kWrite, *user_at_leaver_, all(theirs_->info()),
                                 all(user_at_leaver_->waitPin("ours", 20s).value()));
    EXPECT_TRUE(planned) << planned.error().text();
    return *std::move(planned);
  }
  std::future<Drained> drain(Deadline until = 20s) {
    return std::async(std::launch::async, [this, until] { return leaver_->drain(until); });
  }
  // The peer has learnt of the drain, and the peer's answer has arrived.
  void waitUntilTold() {
    ASSERT_TRUE(holdsSoon([&] {
      const auto state = leaver_->drainState();
      return leaver_at_user_->state() == PeerState::kDraining && state.draining &&
             std::ranges::all_of(state.left, &DrainLeft::answered);
    }));
  }
  template <class F>
  static bool holdsSoon(F holds) {
    const auto until = Clock::now() + 20s;
    while (!holds() && Clock::now() < until) std::this_thread::sleep_for(1ms);
    return holds();
  }
  // Expects that the drain ended by itself, and that nothing was cut off.
  static void expectClean(std::future<Drained>& drained) {
    const auto rest = drained.get();
    ASSERT_TRUE(rest) << rest.error().text();
    EXPECT_TRUE(rest->empty()) << rest->front().transfers << " transfers, "
                               << rest->front().their_transfers << " of the peer";
  }
  template <class R>
  static void expectDraining(const R& result, const std::string& text) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kDraining) << result.error().text();
    EXPECT_TRUE(has(result.error().text(), text)) << result.error().text();
    EXPECT_FALSE(result.error().remedy.empty());
  }

  std::unique_ptr<meet::EmbeddedServer> server_ =
      std::move(*meet::EmbeddedServer::start({.token = "swordfish"}));
  std::optional<Agent> leaver_, user_;
  std::optional<Pin> theirs_, ours_;
  std::optional<Peer> leaver_at_user_, user_at_leaver_;
};

TEST_F(Drain, WithoutPeersOrWorkEndsAtOnceAndCloses) {
  Agent alone = open("alone");
  const auto rest = alone.drain(1h);
  ASSERT_TRUE(rest) << rest.error().text();
  EXPECT_TRUE(rest->empty());
  EXPECT_TRUE(has(alone.drain(1h).error().text(), "the agent is closed"));
  EXPECT_TRUE(has(alone.undrain().error().text(), "the agent is closed"));
  EXPECT_FALSE(alone.drainState().draining);
  ASSERT_TRUE(leaver_->drain(1h)) << "with an idle peer";
  EXPECT_TRUE(holdsSoon([&] { return leaver_at_user_->state() == PeerState::kGone; }));
  expectDraining(leaver_at_user_->note("late"), "the peer has drained and left");
}

TEST_F(Drain, OneAfterAnotherHasItsOwnText) {
  EXPECT_EQ(leaver_->undrain().error().code, Code::kInvalid);
  EXPECT_TRUE(has(leaver_->undrain().error().text(), "no drain runs"));
  EXPECT_FALSE(leaver_->undrain().error().remedy.empty());
  holdAll();
  Transfer reads = userReads();
  ASSERT_TRUE(reads.post());
  auto drained = drain();
  waitUntilTold();
  const auto second = leaver_->drain(20s);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kInvalid);
  EXPECT_TRUE(has(second.error().text(), "drains already")) << second.error().text();
  EXPECT_FALSE(second.error().remedy.empty());
  letMove();
  expectClean(drained);
}

TEST_F(Drain, LetsTransfersInFlightEndAtBothEnds) {
  testing::fillRandom(theirs_->bytes(), 1);
  holdAll();
  Transfer reads = userReads(), writes = leaverWrites();
  ASSERT_TRUE(reads.post() && writes.post());
  auto drained = drain();
  waitUntilTold();
  const auto state = leaver_->drainState();
  ASSERT_EQ(state.left.size(), 1U);
  EXPECT_EQ(state.left.front().peer, "user");
  EXPECT_EQ(state.left.front().transfers, 1U);
  EXPECT_EQ(state.left.front().bytes, kBytes);
  EXPECT_EQ(state.left.front().their_transfers, 1U);
  EXPECT_EQ(state.left.front().their_bytes, kBytes);
  EXPECT_GT(state.remaining, 0s);
  EXPECT_TRUE(leaver_->statistics().draining);
  EXPECT_EQ(user_->statistics().peers[static_cast<std::size_t>(PeerState::kDraining)], 1U);
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout);
  letMove();
  EXPECT_TRUE(reads.wait(20s));
  EXPECT_TRUE(writes.wait(20s));
  expectClean(drained);
  EXPECT_TRUE(testing::same(ours_->bytes(), theirs_->bytes()));
}

TEST_F(Drain, BeginsNothingNewAtEitherEnd) {
  testing::fillWith(ours_->bytes(), std::byte{0});
  testing::fillRandom(theirs_->bytes(), 1);
  Transfer reads = userReads(), writes = leaverWrites();
  const auto card = leaver_->exportCard();
  auto lease = leaver_->lease(*user_at_leaver_, block(theirs_->info(), 0));  // holds up the drain
  ASSERT_TRUE(lease);
  auto drained = drain();
  waitUntilTold();
  const PinInfo there = *leaver_at_user_->waitPin("data", 20s);
  expectDraining(user_->plan(OpKind::kRead, *leaver_at_user_, all(ours_->info()), all(there)),
                 "the peer drains");
  expectDraining(reads.post(), "the peer drains");
  expectDraining(user_->lease(*leaver_at_user_, all(ours_->info())), "the peer drains");
  expectDraining(user_->openMarks(*leaver_at_user_, {.number = 1, .marks = 1}), "the peer drains");
  expectDraining(leaver_at_user_->ready(20s), "the peer drains");
  expectDraining(
      leaver_->plan(OpKind::kWrite, *user_at_leaver_, all(theirs_->info()), all(ours_->info())),
      "agent leaver drains");
  expectDraining(writes.post(), "agent leaver drains");
  expectDraining(leaver_->lease(*user_at_leaver_, block(theirs_->info(), 1)),
                 "agent leaver drains");
  expectDraining(leaver_->openMarks(*user_at_leaver_, {.number = 1, .marks = 1}),
                 "agent leaver drains");
  expectDraining(leaver_->find("user", 20s), "agent leaver drains");
  expectDraining(leaver_->importCard(user_->exportCard()), "agent leaver drains");
  expectDraining(leaver_->connect("127.0.0.1:1"), "agent leaver drains");
  EXPECT_EQ(reads.state(), TransferState::kIdle);
  EXPECT_TRUE(std::ranges::all_of(ours_->bytes(), [](auto b) { return b == std::byte{0}; }));
  Agent stranger = open("stranger");
  const auto refused = stranger.importCard(card);
  ASSERT_TRUE(refused);
  expectDraining(refused->ready(20s), "drains");
  EXPECT_FALSE(leaver_->peer("stranger")) << "no session has begun";
  // Notes still pass.
  EXPECT_TRUE(leaver_at_user_->note("goodbye"));
  EXPECT_TRUE(leaver_->waitNote(20s));
  EXPECT_TRUE(lease->revoke());
  expectClean(drained);
}

TEST_F(Drain, WaitsForLeasesAndThePostsUnderThem) {
  testing::fillRandom(theirs_->bytes(), 1);
  auto lease = leaver_->lease(*user_at_leaver_, all(theirs_->info()), {.duration = 1h});
  ASSERT_TRUE(lease);
  auto drained = drain(Deadline::never());
  waitUntilTold();
  // The lease was lent before the drain, and is borrowed during the drain.
  auto borrowed = user_->borrow(*leaver_at_user_, lease->ticket());
  ASSERT_TRUE(borrowed) << borrowed.error().text();
  auto reads = user_->plan(OpKind::kRead, *borrowed, all(ours_->info()));
  ASSERT_TRUE(reads) << reads.error().text();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reads->post());
    ASSERT_TRUE(reads->wait(20s));
  }
  EXPECT_TRUE(testing::same(ours_->bytes(), theirs_->bytes()));
  ASSERT_TRUE(lease->renew(2h));
  ASSERT_EQ(leaver_->drainState().left.size(), 1U);
  EXPECT_EQ(leaver_->drainState().left.front().lent, 1U);
  EXPECT_EQ(drained.wait_for(0s), std::future_status::timeout);
  borrowed->giveBack();
  expectClean(drained);
  EXPECT_EQ(*lease->wait(20s), LeaseState::kReturned);
}

TEST_F(Drain, WaitsForOpenStreamsOfMarks) {
  std::optional<MarkStream> here(*user_->openMarks(*leaver_at_user_, {.number = 7, .marks = 0}));
  std::optional<MarkStream> there(*leaver_->openMarks(*user_at_leaver_, {.number = 7, .marks = 2}));
  Transfer reads = userReads();
  ASSERT_TRUE(reads.post({.mark = Mark{.stream = 7, .number = 0}}));
  ASSERT_TRUE(reads.wait(20s));
  auto drained = drain();
  waitUntilTold();
  EXPECT_EQ(leaver_->drainState().left.front().streams, 1U);
  expectDraining(reads.post(), "the peer drains");
  expectDraining(reads.post({.mark = Mark{.stream = 8, .number = 0}}), "the peer drains");
  ASSERT_TRUE(reads.post({.mark = Mark{.stream = 7, .number = 1}}));
  ASSERT_TRUE(reads.wait(20s));
  ASSERT_TRUE(there->waitCount(2, 20s));
  here.reset();
  there.reset();
  expectClean(drained);
}

TEST_F(Drain, GivesItsNameToASuccessorWhileItsOwnWorkGoesOn) {
  testing::fillRandom(theirs_->bytes(), 1);
  auto lease = leaver_->lease(*user_at_leaver_, all(theirs_->info()), {.duration = 1h});
  auto borrowed = user_->borrow(*leaver_at_user_, lease->ticket());
  ASSERT_TRUE(lease && borrowed);
  auto drained = drain(1h);
  waitUntilTold();
  Agent successor = open("leaver");
  Pin memory = *successor.allocate(kBytes, {.label = "data"});
  testing::fillRandom(memory.bytes(), 2);
  const auto found = user_->find("leaver", 20s);
  ASSERT_TRUE(found) << found.error().text();
  ASSERT_TRUE(found->ready(20s));
  const auto pin = found->waitPin("data", 20s);
  ASSERT_TRUE(pin);
  auto planned = user_->plan(OpKind::kRead, *found, all(ours_->info()), all(*pin));
  ASSERT_TRUE(planned) << planned.error().text();
  ASSERT_TRUE(planned->post());
  ASSERT_TRUE(planned->wait(20s));
  EXPECT_TRUE(testing::same(ours_->bytes(), memory.bytes()));
  // The first handle still names the draining agent, and not the successor.
  EXPECT_EQ(leaver_at_user_->state(), PeerState::kDraining);
  auto reads = user_->plan(OpKind::kRead, *borrowed, all(ours_->info()));
  ASSERT_TRUE(reads) << reads.error().text();
  ASSERT_TRUE(reads->post());
  ASSERT_TRUE(reads->wait(20s));
  EXPECT_TRUE(testing::same(ours_->bytes(), theirs_->bytes()));
  const Status undrained = leaver_->undrain();
  ASSERT_FALSE(undrained) << "the name is the successor's";
  EXPECT_EQ(undrained.error().code, Code::kBusy);
  EXPECT_TRUE(has(undrained.error().text(), "belongs to")) << undrained.error().text();
  EXPECT_TRUE(leaver_->drainState().draining);
  borrowed->giveBack();
  expectClean(drained);
  EXPECT_TRUE(holdsSoon([&] { return leaver_at_user_->state() == PeerState::kGone; }));
  EXPECT_EQ(found->state(), PeerState::kReady);
  EXPECT_EQ(user_->peer("leaver")->state(), PeerState::kReady);
}

// A successor may also dial its predecessor's peers before they look for it.
TEST_F(Drain, ASuccessorThatDialsItsPeersIsAccepted) {
  auto lease = leaver_->lease(*user_at_leaver_, all(theirs_->info()), {.duration = 1h});
  ASSERT_TRUE(lease);
  auto drained = drain(1h);
  waitUntilTold();
  Agent successor = open("leaver");
  const auto user = successor.find("user", 20s);
  ASSERT_TRUE(user);
  const Status ready = user->ready(20s);
  ASSERT_TRUE(ready) << ready.error().text();
  EXPECT_EQ(leaver_at_user_->state(), PeerState::kDraining);
  EXPECT_TRUE(holdsSoon([&] { return user_->peer("leaver")->state() == PeerState::kReady; }));
  ASSERT_TRUE(lease->revoke());
  expectClean(drained);
}

TEST_F(Drain, IsTakenBackByUndrain) {
  auto lease = leaver_->lease(*user_at_leaver_, all(theirs_->info()), {.duration = 1h});
  ASSERT_TRUE(lease);
  Transfer reads = userReads();
  for (int round = 0; round < 3; ++round) {
    auto drained = drain(1h);
    waitUntilTold();
    Agent late = open("late");
    EXPECT_FALSE(late.find("leaver", 10ms)) << "its name is withdrawn";
    const Status undrained = leaver_->undrain();
    ASSERT_TRUE(undrained) << undrained.error().text();
    const auto result = drained.get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kCancelled) << result.error().text();
    EXPECT_FALSE(leaver_->drainState().draining);
    ASSERT_TRUE(holdsSoon([&] { return leaver_at_user_->state() == PeerState::kReady; }));
    EXPECT_EQ(leaver_at_user_->epoch(), 1U) << "the session has gone on";
    ASSERT_TRUE(reads.post());
    ASSERT_TRUE(reads.wait(20s));
    const auto found = late.find("leaver", 20s);
    ASSERT_TRUE(found) << found.error().text();
    ASSERT_TRUE(found->ready(20s));
    ASSERT_TRUE(lease->renew(1h));
  }
  ASSERT_TRUE(lease->revoke());
  auto drained = drain();
  expectClean(drained);
}

TEST_F(Drain, EndsTheRestAtItsDeadlineOnceForEach) {
  std::atomic<int> lent_ends{0}, borrowed_ends{0};
  auto lease = leaver_->lease(*user_at_leaver_, block(theirs_->info(), 0),
                              {.duration = 1h, .on_end = [&](LeaseState end) {
                                 lent_ends += end == LeaseState::kRevoked ? 1 : 100;
                               }});
  auto borrowed = user_->borrow(*leaver_at_user_, lease->ticket(), [&](LeaseState end) {
    borrowed_ends += end == LeaseState::kRevoked ? 1 : 100;
  });
  ASSERT_TRUE(lease && borrowed);
  holdAll();
  Transfer reads = userReads(), writes = leaverWrites();
  ASSERT_TRUE(reads.post() && writes.post());
  const auto rest = leaver_->drain(1s);  // the peer answers by then, also on a busy machine
  ASSERT_TRUE(rest) << rest.error().text();
  ASSERT_EQ(rest->size(), 1U);
  EXPECT_EQ(rest->front().lent, 1U);
  EXPECT_EQ(rest->front().transfers, 1U);
  EXPECT_EQ(rest->front().their_transfers, 1U);
  EXPECT_EQ(writes.wait(20s).error().code, Code::kDraining);
  EXPECT_EQ(*lease->wait(20s), LeaseState::kRevoked);
  EXPECT_EQ(*borrowed->wait(20s), LeaseState::kRevoked);
  letMove();
  EXPECT_EQ(reads.wait(20s).error().code, Code::kPeerLost);
  EXPECT_TRUE(holdsSoon([&] { return lent_ends != 0 && borrowed_ends != 0; }));
  EXPECT_EQ(lent_ends, 1);
  EXPECT_EQ(borrowed_ends, 1);
}

TEST_F(Drain, RenewsLeasesUpToItsDeadline) {
  auto lease = leaver_->lease(*user_at_leaver_, all(theirs_->info()), {.duration = 1h});
  ASSERT_TRUE(lease);
  auto drained = drain(100ms);
  ASSERT_TRUE(holdsSoon([&] { return leaver_->drainState().draining; }));
  static_cast<void>(lease->renew(1h));  // the lease may have ended already on a slow machine
  const auto rest = drained.get();
  ASSERT_TRUE(rest);
  const auto end = lease->wait(20s);
  ASSERT_TRUE(end);
  EXPECT_TRUE(*end == LeaseState::kRevoked || *end == LeaseState::kExpired) << leaseStateName(*end);
}

TEST_F(Drain, EndsPostsThatWaitForAPeer) {
  Settings settings{.backends = {"fake"}};
  settings.name = "absent";
  auto absent = Agent::open(settings);
  ASSERT_TRUE(absent);
  const auto card = absent->exportCard();
  absent->close();
  const Peer peer = *leaver_->importCard(card);
  auto waits =
      leaver_->plan(OpKind::kWrite, peer, all(theirs_->info()), all(ours_->info()), {.reach = 1h});
  ASSERT_TRUE(waits) << waits.error().text();
  ASSERT_TRUE(waits->post({.deadline = 1h}));
  auto lease = leaver_->lease(*user_at_leaver_, block(theirs_->info(), 0), {.duration = 1h});
  ASSERT_TRUE(lease);
  auto drained = drain(1h);
  expectDraining(waits->wait(20s), "agent leaver drains");
  expectDraining(waits->post({.deadline = 1h}), "agent leaver drains");
  ASSERT_TRUE(lease->revoke());
  expectClean(drained);
}

// A thread copies by itself when the drain begins. The copy has moved some bytes, so the drain must
// wait for the transfer, although no other thread knew of it before.
TEST_F(Drain, WaitsForAPostThatAThreadCopiesByItself) {
  std::promise<void> begun;
  fake::direct_move.with([&](auto& one) {
    one = [&, first = true](core::DirectMover::Progress& so_far,
                            const std::atomic<bool>& pause) mutable {
      using Outcome = core::DirectMover::Outcome;
      if (!std::exchange(first, false)) return Outcome::kMoved;
      so_far.bytes = 4096;
      begun.set_value();
      while (!pause) std::this_thread::yield();
      holdAll();  // for the rest of the copy, which goes through the rail
      return Outcome::kPaused;
    };
  });
  Transfer reads = userReads();
  auto posted = std::async(std::launch::async, [&] { return reads.post(); });
  begun.get_future().wait();
  auto drained = drain();
  const Status status = posted.get();
  EXPECT_TRUE(status) << status.error().text();
  waitUntilTold();
  const auto state = leaver_->drainState();
  ASSERT_EQ(state.left.size(), 1U);
  EXPECT_EQ(state.left.front().their_transfers, 1U);
  letMove();
  EXPECT_TRUE(reads.wait(20s));
  expectClean(drained);
  fake::direct_move.with([](auto& one) { one = nullptr; });
}

}  // namespace
}  // namespace viaduct
