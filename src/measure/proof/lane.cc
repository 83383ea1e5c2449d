#include "measure/proof/lane.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace viaduct::measure {
namespace {

using Seconds = std::chrono::duration<double>;
using namespace std::chrono_literals;

constexpr std::uint64_t kWarmLeast = 3;
// A sleeping thread wakes up to this much late, so the rest of a pause is spent spinning.
constexpr auto kAwake = 150us;

std::uint64_t nanoseconds(Duration time) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(std::chrono::nanoseconds(time).count(), 0));
}

Error cancelled() { return {.code = Code::kCancelled, .operation = "bench"}; }

}  // namespace

Goal warmGoal(const Spec& spec, const Workload& row) {
  if (row.warm_iterations != 0) return {.iterations = row.warm_iterations, .timed = false};
  return {.iterations = kWarmLeast, .time = spec.warmup, .timed = false};
}

// One run of a lane. It starts transfers when they are due, and waits for them in the order of
// their starts. So a transfer that overtakes older transfers counts only when those have ended.
class Lane::Drive {
 public:
  Drive(Lane& lane, const Goal& goal, const Orders& orders)
      : lane_(lane),
        spec_(lane.seed_.spec),
        goal_(goal),
        orders_(orders),
        first_(lane.begun_),
        depth_(spec_.depth),
        flights_(depth_) {}

  Result<LaneTimes> go() {
    start_ = now_ = part_start_ = next_ = Clock::now();
    out_.start = start_;
    while (!enough() || posted_ != ended_) {
      const Order order = orders_.load(std::memory_order_relaxed);
      if (order == Order::kCancel) return cancelled();
      finishes_ = order == Order::kFinish;
      while (posted_ - ended_ < depth_ && !enough() && due()) VIADUCT_CHECK(launch());
      if (posted_ == ended_)
        rest();
      else
        VIADUCT_CHECK(land());
    }
    if (!leads() && ended_ != part_first_) closePart();
    out_.iterations = ended_ - std::min(ended_, goal_.lead);
    out_.transfers = ended_;
    lane_.begun_ += ended_;
    return std::move(out_);
  }

 private:
  struct Flight {
    Clock::time_point intended, posted;
  };
  bool open() const { return spec_.rate > 0; }
  bool enough() const {
    return finishes_ ||
           (posted_ >= goal_.lead + goal_.iterations && !leads() && now_ - start_ >= goal_.time);
  }
  bool leads() const { return ended_ < goal_.lead; }
  bool due() const { return !open() || next_ <= now_; }

  Status launch() {
    const std::uint64_t number = posted_++;
    auto intended = now_;
    if (open()) {
      intended = next_;
      next_ += gap();
    }
    if (spec_.recreate || spec_.reregister) {
      VIADUCT_CHECK(lane_.planAgain(first_ + number));
      now_ = Clock::now();
    }
    if (LaneMarks* const marks = lane_.seed_.marks) {
      const bool slow = marks->posting(first_ + number, lane_.setOf(first_ + number));
      if (slow) now_ = Clock::now();
      if (slow && !open()) intended = now_;
    }
    const auto called = now_;
    VIADUCT_CHECK(lane_.post(first_ + number));
    now_ = Clock::now();
    if (goal_.timed && number >= goal_.lead) lane_.counts_.post.record(nanoseconds(now_ - called));
    flights_[number % depth_] = {intended, now_};
    return Ok{};
  }

  // Waits for the oldest transfer, until the next one is due or kLaneSlice has passed.
  Status land() {
    const bool more = open() && posted_ - ended_ < depth_ && !enough();
    const auto until = std::min(now_ + kLaneSlice, more ? next_ : Clock::time_point::max());
    auto ended = lane_.wait(first_ + ended_, until);
    now_ = Clock::now();
    if (!ended) return ended.error().code == Code::kTimeout && now_ >= until ? Status(Ok{}) : ended;
    if (LaneMarks* const marks = lane_.seed_.marks) marks->ended(first_ + ended_);
    if (leads()) return lead();
    const Flight& flight = flights_[ended_ % depth_];
    if (goal_.timed) {
      lane_.counts_.latency.record(nanoseconds(now_ - flight.intended));
      lane_.counts_.tx.record(nanoseconds(now_ - flight.posted));
    }
    ++ended_;
    lane_.countTransfer();
    if (partIsOver()) closePart();
    return Ok{};
  }

  Status lead() {
    ++ended_;
    lane_.countTransfer();
    if (leads()) return Ok{};
    part_first_ = ended_;
    start_ = part_start_ = out_.start = now_;
    return Ok{};
  }

  void rest() {
    const auto left = next_ - now_;
    if (left > kAwake) std::this_thread::sleep_for(std::min<Duration>(left - kAwake, kLaneSlice));
    now_ = Clock::now();
  }

  Duration gap() {
    double seconds = 1 / spec_.rate;
    // `dice` is above 0 and at most 1, so that its logarithm is finite.
    const double dice = (static_cast<double>(lane_.arrivals_.next() >> 11U) + 1) * 0x1.0p-53;
    if (spec_.poisson) seconds *= -std::log(dice);
    return std::chrono::duration_cast<Duration>(Seconds(seconds));
  }

  bool partIsOver() const {
    const std::uint64_t part = out_.parts.size() + 1;
    if (part >= goal_.parts) return false;  // the last part ends with the run
    const auto parts = static_cast<std::int64_t>(goal_.parts),
               ends = static_cast<std::int64_t>(part);
    if (goal_.time > Duration(0)) return (now_ - start_) * parts >= goal_.time * ends;
    return (ended_ - goal_.lead) * goal_.parts >= goal_.iterations * part;
  }
  void closePart() {
    out_.parts.push_back(
        {(ended_ - part_first_) * lane_.seed_.row.bytes(), Seconds(now_ - part_start_).count()});
    part_first_ = ended_;
    part_start_ = now_;
  }

  Lane& lane_;
  const Spec& spec_;
  const Goal goal_;
  const Orders& orders_;
  const std::uint64_t first_;  // transfers of earlier runs; also the number of this run's first
  const std::uint64_t depth_;
  std::vector<Flight> flights_;  // a ring
  Clock::time_point start_, now_, part_start_;
  Clock::time_point next_;  // open loop: when the next transfer is due
  std::uint64_t posted_ = 0, ended_ = 0, part_first_ = 0;
  bool finishes_ = false;
  LaneTimes out_;
};

Path carriedBy(std::span<const Transfer> transfers, Path more) {
  for (const Transfer& transfer : transfers)
    for (PathShare& share : transfer.carried().shares) more.add(std::move(share));
  return more;
}

Lane::Lane(const LaneSeed& seed)
    : seed_(seed),
      own_order_(blockOrder(seed.row.batch, seed.spec.seed, seed.role)),
      remote_order_(blockOrder(seed.row.batch, seed.spec.seed, other(seed.role))),
      // Each transfer in flight needs its own Transfer object, even if two of them use one set.
      slots_(std::max<std::uint64_t>(seed.sets, seed.spec.depth)),
      arrivals_(seed.spec.seed + seed.number) {}

Result<std::unique_ptr<Lane>> Lane::plan(const LaneSeed& seed) {
  std::unique_ptr<Lane> lane(new Lane(seed));
  lane->transfers_.reserve(lane->slots_ * seed.row.transfers());
  for (std::uint64_t i = 0; i < lane->slots_; ++i)
    for (std::uint32_t number = 0; number < seed.row.transfers(); ++number) {
      VIADUCT_TRY(Transfer transfer, lane->planOne(i % seed.sets, number));
      lane->transfers_.push_back(std::move(transfer));
    }
  return lane;
}

Result<LaneSides> Lane::sidesOf(std::uint64_t set, std::uint32_t number) const {
  if (seed_.sides) return seed_.sides(set, number);
  const Workload& row = seed_.row;
  const std::uint64_t at = set * seed_.stride;
  VIADUCT_TRY(Blocks own, Blocks::strided({.base = seed_.memory.address() + seed_.own_at + at,
                                           .bytes = row.block_bytes,
                                           .count = row.batch}));
  VIADUCT_TRY(Blocks remote, seed_.remote(set));
  return LaneSides{{std::move(own), own_order_}, {std::move(remote), remote_order_}};
}

Result<Transfer> Lane::planOne(std::uint64_t set, std::uint32_t number) {
  const Workload& row = seed_.row;
  const auto start = Clock::now();
  VIADUCT_TRY(const LaneSides sides, sidesOf(set, number));
  const bool beside = seed_.spec.background != 0;
  auto transfer = seed_.agent.plan(row.op, seed_.peer, sides.own, sides.remote,
                                   {.require = requireOf(row, seed_.spec.require),
                                    .priority = beside ? Priority::kUrgent : Priority::kNormal});
  prep_.record(nanoseconds(Clock::now() - start));
  return transfer;
}

Status Lane::planAgain(std::uint64_t number) {
  if (seed_.spec.reregister) VIADUCT_CHECK(seed_.memory.registerAgain(seed_.agent));
  const std::uint64_t slot = number % slots_;
  const std::span<Transfer> old = flight(slot);
  for (std::uint32_t i = 0; i < old.size(); ++i) {
    retired_ = carriedBy({&old[i], 1}, std::move(retired_));
    VIADUCT_TRY(old[i], planOne(slot % seed_.sets, i));
  }
  return Ok{};
}

Status Lane::post(std::uint64_t number) {
  for (Transfer& transfer : flight(number)) VIADUCT_CHECK(transfer.post());
  return Ok{};
}

Status Lane::wait(std::uint64_t number, Deadline until) {
  for (Transfer& transfer : flight(number)) VIADUCT_CHECK(transfer.wait(until));
  return Ok{};
}

Result<LaneTimes> Lane::run(const Goal& goal, const Orders& orders) {
  return Drive(*this, goal, orders).go();
}

std::uint64_t Lane::ops() const {
  std::uint64_t out = 0;
  for (std::uint32_t i = 0; i < seed_.row.transfers(); ++i) out += transfers_[i].ops();
  return out;
}

}  // namespace viaduct::measure
