#include "measure/run/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include "base/random.h"
#include "measure/proof/meter.h"
#include "measure/run/cpu_watch.h"
#include "measure/run/row_member.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookAfter = 50ms;  // how often a running row is watched

bool hasFailed(const Rounds::Round& round) {
  return std::ranges::any_of(round,
                             [](const RoundShare& share) { return share.failure.has_value(); });
}

// Returns the seconds of one transfer of the slowest stream in a round.
double secondsOf(const Rounds::Round& round) {
  double slowest = 0;
  for (const RoundShare& share : round)
    for (const TimeStretch& stretch : share.streams) {
      double seconds = 0;
      for (const LaneTimes::Part& part : stretch.parts) seconds += part.seconds;
      if (stretch.iterations != 0)
        slowest = std::max(slowest, seconds / static_cast<double>(stretch.iterations));
    }
  return slowest;
}

std::uint64_t nanosecondsOf(Clock::time_point at) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

double secondsBetween(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

// Returns the results of a warm-up round. The last member to come to an exchange does not wait, so
// the shortest exchange is the time without waiting.
WarmUp warmUpOf(const Rounds::Round& round, const WarmUp& before) {
  WarmUp out{.seconds = secondsOf(round), .exchange = before.exchange};
  for (const RoundShare& share : round) {
    out.exchange = std::min(out.exchange, share.exchange_s);
    out.dice = base::splitmix(out.dice ^ share.nonce);
  }
  return out;
}

// A row and its figures so far.
struct TimedRow {
  TimedRow(std::unique_ptr<RowTransfers> moved, Duration interval)
      : transfers(std::move(moved)), meter(interval) {}

  std::unique_ptr<RowTransfers> transfers;
  Schedule schedule = {};
  Rounds rounds = {};  // only rank 0 keeps the reports of the rounds
  Meter meter;
  std::vector<RateInterval> intervals = {};
  CpuUse cpu = {};
  proof::ClockWatch clock = {};
  proof::Observation seen = {};
};

class Engine {
 public:
  Engine(WorkerState& worker, std::vector<std::unique_ptr<RowTransfers>> rows)
      : worker_(worker), member_(worker) {
    for (auto& one : rows) rows_.emplace_back(std::move(one), worker.spec.interval);
  }

  Result<std::vector<Composed>> run() {
    VIADUCT_TRY(const bool whole, steps());
    if (!whole) member_.keepFailureOfOthers();
    std::vector<Composed> out;
    for (TimedRow& row : rows_) {
      VIADUCT_TRY(Composed made, member_.finish(shareOf(row), row.transfers->row(), row.rounds));
      if (worker_.rank == 0) row.transfers->complete(made);
      out.push_back(std::move(made));
    }
    return out;
  }

 private:
  // Like all functions here that return Result<bool>, returns false to end the rows: a member
  // failed, or asked to stop before the timed runs.
  Result<bool> steps() {
    auto done = prepare();
    if (!done && worker_.stop.load()) return std::move(done).error();
    VIADUCT_TRY(bool well, allWell(done));
    if (!well) return false;
    for (TimedRow& row : rows_) {
      VIADUCT_TRY(well, warmUp(row));
      if (!well) return false;
    }
    for (TimedRow& row : rows_) member_.keep(row.transfers->refill());
    // From here until all members have read the device counters, no member moves bytes.
    VIADUCT_TRY(well, member_.allWell());
    if (!well) return false;
    for (TimedRow& row : rows_) {
      row.seen = worker_.observer.before();
      row.transfers->begin();
    }
    return timed();
  }

  // Waits for all members. In doing so, the members compare the contents after the last run.
  Result<bool> barrier() {
    for (bool again = true; again;) {
      VIADUCT_TRY(auto answers, member_.exchange(last_ != nullptr ? last_->answer() : ""));
      if (!answers) return false;
      again = false;
      if (last_ == nullptr) return true;
      auto compared = last_->compare(*answers);
      // All members see the same answers, so either all of them fail here or none does.
      if (compared)
        again = *compared;
      else
        member_.keep(std::move(compared).error());
    }
    last_ = nullptr;
    return true;
  }

  Status prepare() {
    VIADUCT_CHECK(worker_.waitForPeers());
    for (TimedRow& row : rows_) VIADUCT_CHECK(row.transfers->prepare());
    return Ok{};
  }

  Result<bool> allWell(const Status& done) {
    member_.keep(done);
    return member_.allWell();
  }

  // Measures the time of a transfer, which decides how the row is timed and checked.
  Result<bool> warmUp(TimedRow& row) {
    WarmUp warm{.exchange = std::numeric_limits<double>::max()};
    for (const Goal& goal : row.transfers->warmUp()) {
      VIADUCT_TRY(const Rounds::Round round, runRound(row, goal));
      member_.keep(row.transfers->ended(round, nullptr));
      if (hasFailed(round) || member_.stopBy()) return false;
      warm = warmUpOf(round, warm);
    }
    row.schedule = row.transfers->schedule(warm);
    return moveAlone(row);
  }

  // Lets only the first of several devices move, for a quarter of the row's time. The device's rate
  // is the base for the scaling with more devices.
  Result<bool> moveAlone(TimedRow& row) {
    if (!row.transfers->moveAlone(true)) return true;
    const Goal& all = row.schedule.repeat;
    VIADUCT_TRY(Rounds::Round round,
                runRound(row, {.iterations = std::max<std::uint64_t>(all.iterations / 4, 1),
                               .time = all.time / 4,
                               .timed = false}));
    row.transfers->moveAlone(false);
    member_.keep(row.transfers->ended(round, nullptr));
    const bool well = !hasFailed(round) && !member_.stopBy();
    if (worker_.rank == 0) row.rounds.alone = std::move(round);
    return well;
  }

  Result<bool> timed() {
    std::uint64_t most = 0;
    for (TimedRow& row : rows_) {
      row.rounds.every_transfer_checked = row.schedule.every_transfer;
      row.rounds.of_a_repeat = row.schedule.timed_of_repeat;
      row.rounds.all = row.schedule.repeats * row.schedule.timed_of_repeat;
      row.rounds.planned = row.schedule.planned;
      most = std::max(most, row.schedule.runs());
    }
    for (std::uint64_t i = 0; i < most; ++i) {
      VIADUCT_TRY(const bool well, turn(i));
      if (!well) return false;
      if (member_.stopBy()) break;
    }
    return endRows();
  }

  // Makes run number `i` of each row, one row after the other.
  Result<bool> turn(std::uint64_t i) {
    const bool backwards = i % 2 != 0 && rows_.front().transfers->anyOrder();
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      TimedRow& row = rows_[backwards ? rows_.size() - 1 - k : k];
      if (i >= row.schedule.runs()) continue;
      sayTurn(i, k, row);
      VIADUCT_TRY(const bool well, makeRun(row, row.schedule.run(i)));
      if (!well) return false;
      if (member_.stopBy()) break;
    }
    return true;
  }

  void sayTurn(std::uint64_t round, std::size_t k, const TimedRow& row) const {
    if (rows_.size() == 1 || !worker_.heard.turn) return;
    const std::uint64_t rounds = row.schedule.runs();
    worker_.heard.turn((round * rows_.size() + k) / rounds,
                       fmt::format("round {} of {}: {}", round + 1, rounds, row.transfers->name()));
  }

  Result<bool> endRows() {
    for (TimedRow& row : rows_) {
      row.rounds.stopped = member_.stopBy().has_value();
      report(row, row.meter.rest());
      if (!member_.failure()) member_.keep(row.transfers->finish());
    }
    VIADUCT_TRY(const bool well, barrier());
    if (!well) return false;
    if (rows_.size() == 1) worker_.observer.pause(rows_.front().seen);
    for (TimedRow& row : rows_) worker_.observer.claim(row.seen, row.transfers->claims());
    for (TimedRow& row : rows_) member_.keep(row.transfers->check(row.rounds.stopped));
    return true;
  }

  Result<bool> makeRun(TimedRow& row, const Goal& run) {
    const auto begin = Clock::now();
    if (!member_.failure()) member_.keep(row.transfers->fill(run));
    // From here until all members have read the device counters, no member moves bytes.
    if (rows_.size() > 1) worker_.observer.resume(row.seen);
    entered_at_ = Clock::now();
    VIADUCT_TRY(bool well, barrier());
    if (!well) return false;
    left_at_ = Clock::now();
    VIADUCT_TRY(Rounds::Round round, run.timed ? timedRound(row, run) : runRound(row, run));
    const double timed_s = run.timed ? secondsBetween(left_at_, Clock::now()) : 0;
    if (rows_.size() > 1) worker_.observer.pause(row.seen);
    well = !hasFailed(round);
    member_.keep(row.transfers->ended(round, well ? &run : nullptr));
    last_ = row.transfers.get();
    row.rounds.checking_s += secondsBetween(begin, Clock::now()) - timed_s;
    if (worker_.rank == 0 && run.timed) row.rounds.each.push_back(std::move(round));
    return well;
  }

  Result<Rounds::Round> timedRound(TimedRow& row, const Goal& goal) {
    const CpuWatch cpu;
    row.clock.start();
    row.meter.begin(Clock::now(), row.transfers->bytesMoved());
    VIADUCT_TRY(Rounds::Round round, runRound(row, goal));
    row.meter.end();
    row.clock.look();
    row.cpu.add(cpu.used());  // includes the wait for others, while this member serves them
    return round;
  }

  // Moves until the goal is reached, and gathers the reports of all members.
  Result<Rounds::Round> runRound(TimedRow& row, const Goal& goal) {
    const Moving here = moving(row);
    here.look();  // a member with a stop request starts no transfers
    auto moved = row.transfers->move(goal, here);
    if (!moved) orders_.store(Order::kCancel);  // the rows are over for all members
    member_.keep(moved);
    RoundShare share{.entered_ns = nanosecondsOf(entered_at_), .left_ns = nanosecondsOf(left_at_)};
    VIADUCT_TRY(share.nonce, base::secretNumber());
    row.transfers->tell(share);
    return member_.report(std::move(share));
  }

  Moving moving(TimedRow& row) {
    return {.orders = orders_, .look = [this, &row] { return look(row); }};
  }

  // Watches a running row: reports intervals, and ends the transfers if a member has failed or
  // asked to stop. A transfer itself only notices failures of its own peer.
  Clock::time_point look(TimedRow& row) {
    report(row, row.meter.look(Clock::now(), row.transfers->bytesMoved()));
    row.clock.look();
    lookForStop();
    if (worker_.group.trouble()) orders_.store(Order::kCancel);
    if (worker_.heard.tick) worker_.heard.tick(row.meter.gbPerSecond());
    return std::min(Clock::now() + kLookAfter, row.meter.due());
  }

  void lookForStop() {
    if (!member_.lookForStop()) return;
    // Must not replace kCancel, which a failed transfer may have ordered already.
    Order from = Order::kGoOn;
    orders_.compare_exchange_strong(from, Order::kFinish);
    if (Clock::now() > member_.stopSeen() + kLastWords) orders_.store(Order::kCancel);
  }

  void report(TimedRow& row, const std::optional<RateInterval>& interval) {
    if (!interval) return;
    row.intervals.push_back(*interval);
    if (worker_.heard.interval) worker_.heard.interval(*interval);
  }

  static RowShare shareOf(const TimedRow& row) {
    RowShare out{.cpu = row.cpu, .clock = row.clock.drift(), .intervals = row.intervals};
    row.transfers->tell(out);
    out.observation = proof::encode(row.seen);
    return out;
  }

  WorkerState& worker_;
  RowMember member_;
  std::vector<TimedRow> rows_;
  Orders orders_{Order::kGoOn};
  RowTransfers* last_ = nullptr;  // the last run's row, until its contents are compared
  // When this member entered and left the last barrier.
  Clock::time_point entered_at_ = {}, left_at_ = {};
};

}  // namespace

Result<std::vector<Composed>> measureInTurns(WorkerState& worker,
                                             std::vector<std::unique_ptr<RowTransfers>> rows) {
  return Engine(worker, std::move(rows)).run();
}

}  // namespace viaduct::measure
