#include "measure/run/schedule.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/random.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kFewest = 12;    // fewest transfers of a stream if the row has a duration
constexpr std::uint64_t kTimedRuns = 3;  // timed runs of a repeat that has enough transfers
constexpr std::uint64_t kParts = 6;      // parts of a repeat
constexpr std::uint64_t kOfARun = 8;     // fewest transfers of a timed run, for each in flight
// If a backend skips one transfer in ten, 66 checks notice it in 999 rows of 1,000, because 0.9^66
// is less than 0.001. The other checks are a margin.
constexpr std::uint64_t kChecks = 72;
constexpr std::uint64_t kFewestShort = 6;  // fewest short runs of a row, even if they take long
// Short runs may take kPartOfRow of the row's time, plus kMoreSeconds.
constexpr double kPartOfRow = 0.1, kMoreSeconds = 0.05;
constexpr std::uint64_t kExchanges = 2;     // exchanges of a run
constexpr double kExchangeSeconds = 1;      // for exchanges of a row's short runs
constexpr double kComparedPerSecond = 4e9;  // bytes that both ends compare

std::uint64_t ceilOf(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

double secondsOf(Duration time) { return std::chrono::duration<double>(time).count(); }

std::uint64_t transfersOf(const Spec& spec, const Workload& row, double seconds) {
  if (row.iterations != 0) return row.iterations;
  const double each = std::max({seconds, 1e-9, spec.rate > 0 ? 1 / spec.rate : 0});
  return std::max(kFewest, static_cast<std::uint64_t>(secondsOf(spec.duration) / each));
}

class Planner {
 public:
  Planner(const Spec& spec, const Workload& row, const ScheduleFacts& facts)
      : spec_(spec), row_(row), facts_(facts), random_(facts.warm.dice) {}

  // Returns a schedule that checks every transfer, in runs of as many transfers as are in flight.
  Schedule full() const {
    const std::uint64_t all =
        transfersOf(spec_, row_, facts_.warm.seconds + kExchanges * facts_.warm.exchange);
    const std::uint64_t together = std::min<std::uint64_t>(spec_.depth, facts_.sets);
    return {.repeat = {.iterations = all},
            .repeats = spec_.repeat,
            .timed_of_repeat = ceilOf(all, together),
            .every_transfer = true,
            .refills = true};
  }

  Schedule mixed() {
    Schedule out{
        .repeat = wholeRepeat(), .repeats = spec_.repeat, .every_transfer = checksEveryRead()};
    for (std::uint32_t i = 0; i < spec_.repeat; ++i) {
      std::vector<Goal> runs = timedRuns(out.repeat);
      out.timed_of_repeat = runs.size();
      addShortRuns(runs, out.repeat);
      for (std::size_t left = runs.size(); left > 1; --left)
        std::swap(runs[left - 1], runs[random_.below(left)]);
      out.mixed.insert(out.mixed.end(), runs.begin(), runs.end());
    }
    return out;
  }

 private:
  bool checksEveryRead() const {
    return spec_.verify != Verified::kOff && facts_.sets >= spec_.depth &&
           everyReadIsChecked(spec_, row_);
  }

  Goal wholeRepeat() const {
    // An operation of a pattern ends when its last pair ends. So all pairs must make the same
    // number of transfers.
    if (row_.iterations != 0 || spec_.layout.pattern())
      return {.iterations = transfersOf(spec_, row_, facts_.warm.seconds)};
    return {.iterations = kFewest, .time = spec_.duration};
  }

  // Splits a repeat into timed runs at random. Each run has at least half of an equal share, so
  // that no part of the row is very short.
  std::vector<Goal> timedRuns(const Goal& whole) {
    const std::uint64_t all = transfersOf(spec_, row_, facts_.warm.seconds);
    const std::uint64_t count =
        std::clamp<std::uint64_t>(all / (kOfARun * spec_.depth), 1, kTimedRuns);
    std::vector<double> ends{1};
    while (ends.size() < count)
      ends.push_back(static_cast<double>(random_.next() >> 11U) * 0x1p-53);
    std::ranges::sort(ends);
    std::vector<Goal> out;
    Goal before;
    for (std::size_t i = 0; i < count; ++i) {
      const double end = (static_cast<double>(i + 1) / static_cast<double>(count) + ends[i]) / 2;
      const Goal until{.iterations = static_cast<std::uint64_t>(
                           std::llround(static_cast<double>(whole.iterations) * end)),
                       .time = std::chrono::duration_cast<Duration>(whole.time * end)};
      out.push_back({.iterations = until.iterations - before.iterations,
                     .time = until.time - before.time,
                     .lead = facts_.streams == 1 ? spec_.depth : 0,
                     .parts = kParts / count});
      before = until;
    }
    return out;
  }

  // Adds short untimed runs, until the repeat has its part of the checks or the time is used up.
  void addShortRuns(std::vector<Goal>& runs, const Goal& whole) {
    if (spec_.verify == Verified::kOff) return;
    const double row = std::max(
        secondsOf(whole.time),
        static_cast<double>(transfersOf(spec_, row_, facts_.warm.seconds)) * facts_.warm.seconds);
    double left = kPartOfRow * row + kMoreSeconds / spec_.repeat;
    // Exchanges between distant or busy hosts take long. So they have a time allowance of their
    // own.
    double exchanges = kExchangeSeconds / spec_.repeat;
    std::uint64_t missing = checksEveryRead() ? 0 : ceilOf(kChecks, spec_.repeat);
    const auto count = [&](const Goal& run) {
      missing -= std::min(missing, checksOf(run.iterations));
    };
    for (const Goal& run : runs) count(run);
    const std::uint64_t fewest = ceilOf(kFewestShort, spec_.repeat);
    for (std::uint64_t i = 0; i < fewest || (missing > 0 && left > 0 && exchanges > 0); ++i) {
      const Goal run{.iterations = 1 + random_.below(std::uint64_t{2} * spec_.depth),
                     .timed = false};
      count(run);
      left -= costOf(run.iterations);
      exchanges -= kExchanges * facts_.warm.exchange;
      runs.push_back(run);
    }
  }

  std::uint64_t checksOf(std::uint64_t iterations) const {
    return facts_.streams * std::min<std::uint64_t>({iterations, spec_.depth, facts_.sets});
  }

  double costOf(std::uint64_t iterations) const {
    const auto more = static_cast<double>(iterations - 1);
    // In an open loop, the first transfer is due at once.
    const double seconds =
        spec_.rate > 0 ? std::max(facts_.warm.seconds - 1 / spec_.rate, 0.0) + more / spec_.rate
                       : facts_.warm.seconds * (more + 1);
    const auto bytes = static_cast<double>(checksOf(iterations) * row_.bytes());
    return seconds + bytes / kComparedPerSecond;
  }

  const Spec& spec_;
  const Workload& row_;
  const ScheduleFacts facts_;
  base::Random random_;
};

}  // namespace

Goal Schedule::run(std::uint64_t number) const {
  if (!mixed.empty()) return mixed[number];
  const std::uint64_t more = number % timed_of_repeat < repeat.iterations % timed_of_repeat ? 1 : 0;
  return {.iterations = repeat.iterations / timed_of_repeat + more,
          .time = repeat.time / static_cast<std::int64_t>(timed_of_repeat)};
}

bool everyReadIsChecked(const Spec& spec, const Workload& row) {
  const bool gpu = spec.initiator_gpu || (spec.bidirectional && spec.target_gpu);
  const bool matrix = spec.layout.scheme == Scheme::kMatrix;  // some pairs' blocks may be smaller
  return row.op == OpKind::kRead && !row.kv && !gpu && !spec.ping_pong && !matrix &&
         row.block_bytes >= sizeof(std::uint64_t);
}

Schedule scheduleOf(const Spec& spec, const Workload& row, const ScheduleFacts& facts) {
  Planner planner(spec, row, facts);
  // KV rows use the full schedule even for samples, because a sample has words of each page.
  const bool full = spec.verify == Verified::kFull || (row.kv && spec.verify == Verified::kSampled);
  Schedule out = full ? planner.full() : planner.mixed();
  if (out.repeat.time > Duration(0))
    out.planned.of_seconds = secondsOf(out.repeat.time) * spec.repeat;
  else
    out.planned.of_transfers = out.repeat.iterations * spec.repeat * facts.streams;
  return out;
}

}  // namespace viaduct::measure
