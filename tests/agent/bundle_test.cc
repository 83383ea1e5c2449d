// Tests slices and rails without an agent: rails are slow, refuse, break and come back, by a seed.
#include "agent/traffic/bundle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/sink_testing.h"

namespace viaduct::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kWhole = 42;  // the bundle's number in Work::whole

const base::Poller& steadyClock() {
  static const auto poller = std::move(*base::Poller::open());
  return *poller;
}

// A rail that moves a number of bytes per turn, and has room for a number of ops.
class SlowRail final : public core::Rail {
 public:
  std::string_view name() const override { return "slow"; }
  std::size_t post(const core::Work& work) override {
    std::size_t taken = 0;
    wholes.push_back(work.whole);
    for (; taken < work.ops.size() && queue_.size() < room; ++taken)
      queue_.push_back({work.slice, work.ops[taken], work.ops[taken].bytes});
    return taken;
  }
  void poll(core::Completions& out) override {
    std::uint64_t budget = speed;
    while (!queue_.empty() && budget > 0) {
      Ride& ride = queue_.front();
      const std::uint64_t part = std::min(budget, ride.left);
      budget -= part;
      ride.left -= part;
      if (ride.left > 0) return;
      moved.push_back(ride.op);
      out.emplace_back(core::Moved{ride.slice, 1, ride.op.bytes});
      queue_.pop_front();
    }
  }
  void cancel(const core::Sink& sink) override { cancelled.push_back(&sink); }
  bool busy() const override { return !queue_.empty(); }
  void collect(core::Completions& out) override { poll(out); }

  // Fails all ops in flight.
  void breakDown(core::Completions& out) {
    for (const Ride& ride : queue_)
      out.emplace_back(core::Failed{ride.slice, 1, {.code = Code::kDevice}, true});
    queue_.clear();
  }

  std::size_t room = 1000;
  std::uint64_t speed = kMiB;
  bool gone = false;
  std::vector<core::Op> moved;
  std::vector<const core::Sink*> cancelled;
  std::vector<std::uint64_t> wholes;  // Work::whole of each post

 private:
  struct Ride {
    core::SliceOf slice;
    core::Op op;
    std::uint64_t left;
  };
  std::deque<Ride> queue_;
};

class SlowLink final : public core::Link {
 public:
  core::LinkState state() const override { return {core::LinkState::Phase::kReady}; }
  void receive(std::span<const std::byte>, std::vector<core::Fd>) override {}
  void addPin(const core::RemotePin&) override {}
  void dropPin(std::uint32_t) override {}
  std::optional<std::string_view> reaches(OpKind, std::uint32_t, std::uint32_t) const override {
    return "way";
  }
  bool servedBy(const core::Rail& rail) const override {
    return !static_cast<const SlowRail&>(rail).gone;
  }
  void close(core::Completions&) override {}
};

// A bundle, its rails, and the calls of a transfer on both.
class Rig {
 public:
  // The plan has ops of `piece` bytes, or one op if `piece` is 0. Only the first `near` rails are
  // near the memory.
  Rig(std::size_t rails, std::uint64_t bytes, std::uint32_t first = 0, std::uint64_t piece = 0,
      std::size_t near = SIZE_MAX)
      : rails_(rails), counts_(rails), health_(rails, RailHealth(steadyClock())) {
    Bundle::RailUses uses;
    uses.reserve(rails);
    for (std::size_t i = 0; i < rails; ++i)
      uses.push_back({.rail = &rails_[i],
                      .runner = &runners_.emplace_back(rails_[i], core::Capabilities{}, news_),
                      .counts = &counts_[i],
                      .health = &health_[i],
                      .name = std::to_string(i),
                      .near = i < near});
    bundle_ = std::make_unique<Bundle>(
        Bundle::Route{.link = &link_, .backend = "fake", .way = "way", .whole = kWhole},
        core::slice({.ops = opsOf(bytes, piece), .spans = {}, .bytes = bytes}, {.rails = rails}),
        std::move(uses), first);
    bundle_->start();
  }
  Bundle& bundle() { return *bundle_; }
  core::Link& link() { return link_; }
  static core::Sink& sink() { return core::testing::sinkOf(0); }
  SlowRail& rail(std::size_t i) { return rails_[i]; }
  RailHealth& health(std::size_t i) { return health_[i]; }
  const RailCounts& counts(std::size_t i) const { return counts_[i]; }
  std::uint64_t load(std::size_t i) const { return counts_[i].load; }

  void offer() { out_ += bundle_->offer(OpKind::kWrite, Priority::kNormal, sink()); }
  void breakDown(std::size_t rail) {
    core::Completions ended;
    runners_[rail].takeEnded(ended);
    rails_[rail].breakDown(ended);
    apply(ended);
  }
  void turn() {
    for (move::RailRunner& runner : runners_) {
      core::Completions ended;
      runner.run();
      runner.takeEnded(ended);
      apply(ended);
    }
  }
  // Returns false if the bundle is stranded, or is not done after 100,000 turns.
  bool run() {
    offer();
    for (int turns = 0; turns < 100'000 && !bundle_->done(); ++turns) {
      if (bundle_->stranded()) return false;
      turn();
    }
    return bundle_->done();
  }
  std::uint64_t out() const { return out_; }

  // Checks the ops that rails have moved: each byte once, or at least once.
  void expectEveryByte(std::uint64_t bytes, bool once) {
    std::vector<core::Op> all;
    for (const SlowRail& rail : rails_) all.insert(all.end(), rail.moved.begin(), rail.moved.end());
    std::sort(all.begin(), all.end(),
              [](const core::Op& a, const core::Op& b) { return a.remote < b.remote; });
    std::uint64_t end = 0;
    for (const core::Op& op : all) {
      EXPECT_LE(op.remote, end) << "a hole";
      if (once) {
        EXPECT_EQ(op.remote, end) << "twice";
      }
      end = std::max(end, op.remote + op.bytes);
    }
    EXPECT_EQ(end, bytes);
  }

 private:
  static std::vector<core::Op> opsOf(std::uint64_t bytes, std::uint64_t piece) {
    if (piece == 0) return {{0, 0, bytes, 0, 0}};
    std::vector<core::Op> ops;
    for (std::uint64_t at = 0; at < bytes; at += piece)
      ops.push_back({at, at, std::min(piece, bytes - at), 0, 0});
    return ops;
  }
  void apply(const core::Completions& ended) {
    bool room = false;
    for (const core::Completion& one : ended) {
      if (const auto* moved = std::get_if<core::Moved>(&one)) {
        ASSERT_EQ(moved->slice.sink, &sink());
        out_ -= moved->ops;
        room |= bundle_->moved(*moved);
      } else {
        const auto& failed = std::get<core::Failed>(one);
        out_ -= failed.ops;
        EXPECT_TRUE(bundle_->failed(failed.slice.number, failed.ops, failed.rail_lost));
        room = true;
      }
    }
    if (room) offer();
  }
  SlowLink link_;
  std::vector<SlowRail> rails_;
  move::RailNews news_;
  std::deque<move::RailRunner> runners_;
  std::vector<RailCounts> counts_;
  std::vector<RailHealth> health_;
  std::unique_ptr<Bundle> bundle_;
  std::uint64_t out_ = 0;
};

std::uint64_t total(const Path& path) {
  std::uint64_t bytes = 0;
  for (const PathShare& share : path.shares) bytes += share.bytes;
  return bytes;
}
Path pathOf(Rig& rig) {
  Path path;
  rig.bundle().addTo(path);
  return path;
}

TEST(Bundle, OneRailGetsAllOpsInOneCall) {
  Rig rig(1, 64 * kMiB);
  rig.offer();
  EXPECT_EQ(rig.out(), 1U);
  rig.offer();
  EXPECT_EQ(rig.out(), 1U);
}

TEST(Bundle, EachSliceKeepsTheNumberOfItsObject) {
  for (const std::size_t rails : {1U, 2U}) {
    Rig rig(rails, 256 * kMiB);
    ASSERT_TRUE(rig.run());
    for (std::size_t i = 0; i < rails; ++i) {
      const auto& wholes = rig.rail(i).wholes;
      EXPECT_FALSE(wholes.empty());
      EXPECT_EQ(std::count(wholes.begin(), wholes.end(), kWhole), std::ssize(wholes));
    }
  }
}

TEST(Bundle, AFasterRailCarriesMore) {
  Rig rig(2, 256 * kMiB);
  rig.rail(1).speed = 3 * kMiB;
  ASSERT_TRUE(rig.run());
  const Path path = pathOf(rig);
  ASSERT_EQ(path.shares.size(), 2U);
  EXPECT_EQ(total(path), 256 * kMiB);
  // Shares follow the rails' speeds, except for the last slices.
  EXPECT_NEAR(static_cast<double>(path.shares[1].bytes), 192.0 * kMiB, 8.0 * kMiB);
  rig.expectEveryByte(256 * kMiB, true);
}

TEST(Bundle, NoRailHasMoreThanTwoSlices) {
  Rig rig(4, 256 * kMiB);
  rig.offer();
  for (const Bundle::RailUse& use : rig.bundle().rails()) EXPECT_EQ(use.busy, 2U);
  rig.offer();
  for (const Bundle::RailUse& use : rig.bundle().rails()) EXPECT_EQ(use.busy, 2U);
}

TEST(Bundle, SmallTransfersTakeTheLeastLoadedRail) {
  Rig rig(2, 8);
  rig.bundle().rails()[0].counts->load = 100;
  rig.offer();
  EXPECT_EQ(rig.bundle().rails()[1].busy, 1U);
}

TEST(Bundle, OtherRailsTakeTheSlicesOfALostRail) {
  Rig rig(4, 256 * kMiB);
  rig.offer();
  for (int i = 0; i < 20; ++i) rig.turn();
  rig.rail(2).gone = true;
  rig.breakDown(2);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(total(pathOf(rig)), 256 * kMiB);
  rig.expectEveryByte(256 * kMiB, true);
  EXPECT_EQ(rig.out(), 0U);
}

// If a rail had moved a part of a slice's ops, all of them are moved again, and counted once.
TEST(Bundle, BytesThatALostRailMovedInVainAreNotCounted) {
  Rig rig(2, 64 * kMiB, 0, kMiB / 4);
  rig.offer();
  rig.turn();
  EXPECT_GT(rig.rail(1).moved.size(), 1U);
  rig.rail(1).gone = true;
  rig.breakDown(1);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(total(pathOf(rig)), 64 * kMiB);
  EXPECT_EQ(rig.bundle().movedOps(), rig.bundle().ops().size());
  rig.expectEveryByte(64 * kMiB, false);
}

TEST(Bundle, ARailThatComesBackIsUsedAgain) {
  Rig rig(2, 256 * kMiB);
  rig.offer();
  rig.rail(1).gone = true;
  rig.breakDown(1);
  for (int i = 0; i < 50; ++i) rig.turn();
  EXPECT_EQ(rig.bundle().rails()[1].busy, 0U);
  rig.rail(1).gone = false;
  ASSERT_TRUE(rig.run());
  EXPECT_GT(rig.rail(1).moved.size(), 1U);
}

TEST(Bundle, OtherRailsReplaceLostNearRailsUntilOneReturns) {
  Rig rig(4, 256 * kMiB, 0, kMiB, 2);
  rig.offer();
  for (int i = 0; i < 20; ++i) rig.turn();
  EXPECT_TRUE(rig.rail(2).moved.empty());
  rig.rail(0).gone = rig.rail(1).gone = true;
  rig.breakDown(0);
  rig.breakDown(1);
  for (int i = 0; i < 20; ++i) rig.turn();
  const auto uses = rig.bundle().rails();
  EXPECT_FALSE(rig.rail(2).moved.empty() || rig.rail(3).moved.empty());
  rig.rail(1).gone = false;
  for (int i = 0; i < 50; ++i) rig.turn();
  EXPECT_EQ(uses[2].busy + uses[3].busy, 0U);
  EXPECT_EQ(uses[1].busy, 2U);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(total(pathOf(rig)), 256 * kMiB);
}

TEST(Bundle, AFarRailFinishesTheSlicesThatItWasGiven) {
  Rig rig(2, 64 * kMiB, 0, kMiB / 4, 1);
  rig.rail(0).gone = true;
  rig.rail(1).room = 1;
  rig.offer();
  rig.turn();
  rig.rail(0).gone = false;
  ASSERT_TRUE(rig.run());
  EXPECT_GT(rig.rail(1).moved.size(), 1U);
  EXPECT_GT(rig.rail(0).moved.size(), rig.rail(1).moved.size());
  rig.expectEveryByte(64 * kMiB, true);
}

TEST(Bundle, UsesAllNearRailsOrElseAllWorkingRails) {
  Rig rig(5, 64 * kMiB, 0, 0, 2);
  const auto uses = rig.bundle().rails();
  core::Link& link = rig.link();
  EXPECT_EQ(Bundle::serving(link, uses), 2U);
  rig.rail(3).gone = rig.rail(0).gone = true;
  EXPECT_EQ(Bundle::serving(link, uses), 1U);
  EXPECT_FALSE(rig.bundle().stillServed()) << "it is planned anew";
  rig.rail(1).gone = true;
  EXPECT_EQ(Bundle::serving(link, uses), 2U);
  rig.rail(2).gone = rig.rail(4).gone = true;
  EXPECT_EQ(Bundle::serving(link, uses), 0U);
}

TEST(Bundle, ABundleWithoutRailsIsStranded) {
  Rig rig(2, 64 * kMiB);
  rig.offer();
  for (const std::size_t i : {0U, 1U}) {
    rig.rail(i).gone = true;
    rig.breakDown(i);
  }
  EXPECT_TRUE(rig.bundle().stranded());
  EXPECT_FALSE(rig.run());
}

TEST(Bundle, ARailThatClaimsToServeAndFailsIsGivenUp) {
  Rig rig(2, 64 * kMiB);
  rig.rail(0).speed = rig.rail(1).speed = 0;
  rig.offer();
  for (int i = 0; i < 10; ++i) {
    rig.breakDown(0);
    rig.breakDown(1);
  }
  EXPECT_TRUE(rig.bundle().stranded());
}

// Sets a rail aside: reports failures to its health, over some time.
void setAside(Rig& rig, std::size_t rail) {
  const auto now = Clock::now();
  for (int failures = RailHealth::kFailures; failures > 0; --failures)
    static_cast<void>(rig.health(rail).failed(now - (failures - 1) * RailHealth::kSameFailure));
  ASSERT_TRUE(rig.health(rail).isSetAside());
}

TEST(Bundle, ARailThatIsSetAsideGetsNothingWhileAnotherServes) {
  Rig rig(3, 64 * kMiB);
  setAside(rig, 1);
  EXPECT_EQ(Bundle::serving(rig.link(), rig.bundle().rails()), 2U);
  EXPECT_FALSE(rig.bundle().stillServed());  // the next post plans for the remaining rails
  ASSERT_TRUE(rig.run());
  EXPECT_TRUE(rig.rail(1).moved.empty());
  rig.expectEveryByte(64 * kMiB, true);
}

TEST(Bundle, ARailThatIsSetAsideIsUsedIfNoOtherServes) {
  Rig rig(2, 64 * kMiB);
  rig.rail(0).gone = true;
  setAside(rig, 1);
  EXPECT_EQ(Bundle::serving(rig.link(), rig.bundle().rails()), 1U);
  ASSERT_TRUE(rig.run());
  EXPECT_FALSE(rig.rail(1).moved.empty());
}

TEST(Bundle, ARailIsSetAsideOnlyForItsOwnFailuresAndIfThereAreOthers) {
  Rig several(2, 64 * kMiB), single(1, 64 * kMiB);
  for (Rig* rig : {&several, &single}) {
    rig->offer();
    Clock::time_point now = Clock::now();
    for (int failures = 0; failures < RailHealth::kFailures; ++failures, now += 1s)
      static_cast<void>(rig->bundle().setAsideIfItFailsAgain(0, now));
  }
  EXPECT_EQ(several.counts(0).times_set_aside, 1U);
  EXPECT_EQ(several.counts(1).times_set_aside, 0U);
  EXPECT_EQ(single.counts(0).times_set_aside, 0U);
}

TEST(RailHealth, SetsARailAsideForATimeThatDoublesWhileItGoesOnFailing) {
  RailHealth health(steadyClock());
  Clock::time_point now(1h);
  EXPECT_FALSE(health.failed(now));
  EXPECT_FALSE(health.failed(now += 1s));
  EXPECT_FALSE(health.isSetAside(now));
  EXPECT_TRUE(health.failed(now += 1s));
  for (const auto time : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    EXPECT_EQ(health.time(), time);
    EXPECT_TRUE(health.isSetAside(now + time - 1ms));
    EXPECT_FALSE(health.failed(now + time / 2)) << "it was used where no other served";
    now += time;
    EXPECT_FALSE(health.isSetAside(now));
    EXPECT_TRUE(health.failed(now)) << "it was tried again, and failed again";
  }
}

TEST(RailHealth, CountsTheFailuresOfOneMomentOnce) {
  RailHealth health(steadyClock());
  const Clock::time_point now(1h);
  for (int transfers = 0; transfers < 50; ++transfers) EXPECT_FALSE(health.failed(now + 1ms));
}

TEST(RailHealth, ForgetsFailuresThatAreFarApartInTime) {
  RailHealth health(steadyClock());
  Clock::time_point now(1h);
  for (int failures = 0; failures < 10; ++failures, now += RailHealth::kCalm + 1s)
    EXPECT_FALSE(health.failed(now));
  health = RailHealth(steadyClock());
  for (int failures = 0; failures < RailHealth::kFailures; ++failures)
    static_cast<void>(health.failed(now += 1s));
  ASSERT_TRUE(health.isSetAside(now));
  now += RailHealth::kFirst + RailHealth::kCalm + 1s;
  EXPECT_FALSE(health.failed(now)) << "it has served long enough since";
}

TEST(Bundle, AnOpThatFailsWithoutALostRailIsNotRepeated) {
  Rig rig(2, 64 * kMiB);
  rig.offer();
  EXPECT_FALSE(rig.bundle().failed(0, 1, false));
}

TEST(Bundle, OpsOfALostOnlyRailAreNotRepeated) {
  Rig rig(1, 64 * kMiB);
  rig.offer();
  rig.rail(0).gone = true;
  EXPECT_FALSE(rig.bundle().failed(0, 1, true));
}

// This end has one rail, but the peer may have several. Then one connection of the rail is lost,
// and another one still serves the link.
TEST(Bundle, AnOnlyRailThatStillServesTheLinkIsTriedAgain) {
  Rig rig(1, 64 * kMiB);
  rig.offer();
  rig.breakDown(0);
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(total(pathOf(rig)), 64 * kMiB);
  rig.bundle().stop();
  EXPECT_EQ(rig.load(0), 0U);

  Rig bad(1, 64 * kMiB);
  bad.offer();
  for (int i = 0; i < 2; ++i) bad.breakDown(0);
  EXPECT_FALSE(bad.bundle().failed(0, 1, true));
}

TEST(Bundle, CancelsAllItsSlicesOnARailInOneCall) {
  Rig rig(3, 64 * kMiB, 5);
  rig.rail(2).gone = true;
  rig.offer();
  rig.bundle().cancel(Rig::sink());
  const std::vector<const core::Sink*> once{&Rig::sink()};
  EXPECT_EQ(rig.rail(0).cancelled, once);
  EXPECT_EQ(rig.rail(1).cancelled, once);
  EXPECT_TRUE(rig.rail(2).cancelled.empty());
}

TEST(Bundle, TellsWhichBytesHaveLanded) {
  Rig rig(2, 64 * kMiB, 0, kMiB);
  const auto landed = [&] {
    std::vector<core::Stretch> out;
    rig.bundle().addLanded(out);
    return out;
  };
  const auto bytes = [&] {
    std::uint64_t sum = 0;
    for (const core::Stretch& one : landed()) sum += one.bytes;
    return sum;
  };
  rig.offer();
  rig.turn();
  EXPECT_EQ(bytes(), 0U) << "a part of a slice is unknown";
  rig.rail(1).speed = 0;
  while (rig.rail(0).moved.size() < 20) rig.turn();
  ASSERT_GT(bytes(), 0U);
  EXPECT_LE(bytes(), 20 * kMiB);
  // A slice has landed if the rail has moved all its ops. An op's `remote` is its first byte's
  // number.
  for (const core::Stretch& one : landed())
    for (std::uint64_t at = one.from; at < one.from + one.bytes; at += kMiB)
      EXPECT_TRUE(std::ranges::any_of(rig.rail(0).moved,
                                      [&](const core::Op& op) { return op.remote == at; }));
}

TEST(Bundle, EachRailsLoadReturnsToZero) {
  Rig rig(2, 64 * kMiB);
  rig.rail(0).room = 0;
  rig.offer();
  EXPECT_GT(rig.load(0), 0U);
  rig.rail(1).gone = true;
  rig.breakDown(1);
  EXPECT_EQ(rig.load(1), 0U);
  rig.rail(0).room = 1000;
  ASSERT_TRUE(rig.run());
  EXPECT_EQ(rig.load(0), 0U);
}

// Breaks and repairs rails at random until the bundle (one transfer's slices) is done, or no rail
// is left for it. Returns whether a rail broke.
bool runWhileRailsBreak(Rig& rig, std::size_t rails, base::Random& random) {
  bool broken = false;
  rig.offer();
  for (int turns = 0; turns < 1'000'000 && !rig.bundle().done(); ++turns) {
    if (rig.bundle().stranded()) break;
    rig.turn();
    const std::size_t i = random.below(rails);
    if (rails > 1 && random.chance(0.02)) {
      rig.rail(i).gone = true;
      rig.breakDown(i);
      broken = true;
    } else if (random.chance(0.1)) {
      rig.rail(i).gone = false;
    }
  }
  return broken;
}

TEST(BundleProperty, EveryByteArrivesOrItIsStranded) {
  int stranded = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    base::Random random(seed);
    const std::size_t rails = 1 + random.below(5);
    const std::uint64_t bytes = 1 + random.below(64 * kMiB);
    Rig rig(rails, bytes);
    for (std::size_t i = 0; i < rails; ++i) {
      rig.rail(i).speed = 1 + random.below(4 * kMiB);
      rig.rail(i).room = 1 + random.below(3);
    }
    const bool broken = runWhileRailsBreak(rig, rails, random);
    rig.bundle().stop();
    for (std::size_t i = 0; i < rails; ++i) EXPECT_EQ(rig.load(i), 0U);
    EXPECT_EQ(rig.out(), 0U);
    if (rig.bundle().stranded()) {
      ++stranded;
      continue;
    }
    ASSERT_TRUE(rig.bundle().done());
    EXPECT_EQ(total(pathOf(rig)), bytes);
    rig.expectEveryByte(bytes, !broken);
  }
  EXPECT_LT(stranded, 200);
}

}  // namespace
}  // namespace viaduct::agent
