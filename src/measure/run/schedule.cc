#include "measure/run/schedule.h"

#include <algorithm>
#include <chrono>

#include "measure/run/spot_checks.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kFewest = 12;  // transfers of a stream, if the row has a duration
constexpr std::uint64_t kRounds = 2;   // of a repeat with spot checks
// Duration of two barriers and the check, apart from the transfers.
constexpr double kRoundSeconds = 1e-3;

std::uint64_t ceilOf(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

std::uint64_t transfersOf(const Spec& spec, const Workload& row, double seconds) {
  if (row.iterations != 0) return row.iterations;
  const double time = std::chrono::duration<double>(spec.duration).count();
  return std::max(kFewest, static_cast<std::uint64_t>(time / std::max(seconds, 1e-9)));
}

// One repeat.
Schedule repeatOf(const Spec& spec, const Workload& row, double seconds, std::size_t streams,
                  std::uint64_t sets) {
  // A small number of transfers is checked completely, which is cheaper than spot checks between
  // them.
  const bool few = transfersOf(spec, row, seconds) * streams < kSpotChecks && spec.rate == 0;
  // A check of a KV row looks at each page.
  const bool each = few || row.kv;
  if (spec.verify == Verified::kFull || (each && spec.verify == Verified::kSampled)) {
    const std::uint64_t all = transfersOf(spec, row, seconds + kRoundSeconds);
    const std::uint64_t together = std::min<std::uint64_t>(spec.depth, sets);
    return {.rounds = ceilOf(all, together), .iterations = all, .every_transfer = true};
  }
  Schedule out{.rounds = kRounds, .iterations = kFewest, .time = spec.duration};
  if (row.iterations != 0)
    out = {.rounds = std::min(kRounds, row.iterations), .iterations = row.iterations};
  else if (spec.layout.pattern())
    // An operation has ended when its last pair has, so all pairs move the same number of them.
    out = {.rounds = kRounds, .iterations = transfersOf(spec, row, seconds)};
  if (spec.verify == Verified::kSampled)
    out.checks = ceilOf(kSpotChecks, streams * (out.rounds + 1));
  return out;
}

}  // namespace

Goal Schedule::goalOf(std::uint64_t round) const {
  return {.iterations = iterations / rounds + (round < iterations % rounds ? 1 : 0),
          .time = time / static_cast<std::int64_t>(rounds)};
}

Schedule scheduleOf(const Spec& spec, const Workload& row, double seconds, std::size_t streams,
                    std::uint64_t sets) {
  Schedule out = repeatOf(spec, row, seconds, streams, sets);
  out.repeats = spec.repeat;
  if (out.time > Duration(0))
    out.planned.of_seconds = std::chrono::duration<double>(out.time).count() * spec.repeat;
  else
    out.planned.of_transfers = out.iterations * spec.repeat * streams;
  return out;
}

}  // namespace viaduct::measure
