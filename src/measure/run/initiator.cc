#include "measure/run/initiator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/sizes.h"
#include "measure/stats/histogram.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr auto kAnnounced = std::chrono::seconds(10);  // for the target's pin to be known here
constexpr std::uint64_t kWarmEpoch = 1;
constexpr std::uint64_t kTimedEpoch = 2;
constexpr std::uint64_t kParts = 5;  // of a row's iterations; their median is its rate
constexpr std::uint64_t kWarmLeast = 3;
constexpr Seconds kWarmFor{0.05};
constexpr Seconds kTimeFor{0.4};
constexpr std::uint64_t kFewest = 2 * kParts, kMost = 200'000;

struct Timing {
  Histogram latency;  // nanoseconds
  std::vector<double> gb_per_s;
  std::uint64_t iterations = 0;
  double elapsed = 0;  // seconds
};

Row rowOf(const Workload& w) {
  return {.backend = w.backend,
          .op = w.op,
          .block_size = w.block_bytes,
          .batch_size = w.batch,
          .memory = memoryChoiceName(w.memory)};
}

class Measurement {
 public:
  Measurement(Target& target, Region& region, const Workload& workload, const StopFlag& stop)
      : target_(target), region_(region), workload_(workload), stop_(stop) {}

  Result<Row> run(Transfer& transfer) {
    VIADUCT_CHECK(fillSource(kWarmEpoch));
    VIADUCT_TRY(const double each, warmUp(transfer));
    VIADUCT_CHECK(fillSource(kTimedEpoch));
    VIADUCT_TRY(const double cpu_before, cpuOfBoth());
    VIADUCT_TRY(const Timing timing, time(transfer, each));
    VIADUCT_TRY(const double cpu_after, cpuOfBoth());
    Row row = summary(timing, cpu_after - cpu_before);
    row.path = unproven(transfer.path());
    VIADUCT_CHECK(check(row));
    return row;
  }

 private:
  bool writes() const { return workload_.op == OpKind::kWrite; }

  Status fillSource(std::uint64_t epoch) {
    if (!writes()) return target_.fill(epoch);
    region_.fill(epoch);
    return Ok{};
  }

  Status check(Row& row) {
    std::optional<Mismatch> wrong;
    if (writes()) {
      VIADUCT_TRY(wrong, target_.verify(kTimedEpoch));
    } else {
      wrong = region_.verify(kTimedEpoch);
    }
    row.verified = Verified::kFull;
    if (!wrong) return Ok{};
    row.verdict = Verdict::kCorrupt;
    row.why = fmt::format("block {} is wrong from offset {}: {}", wrong->block, wrong->offset,
                          wrong->text);
    return Ok{};
  }

  Result<double> cpuOfBoth() {
    VIADUCT_TRY(const double theirs, target_.cpu());
    return theirs + cpuSeconds();
  }

  Status once(Transfer& transfer) {
    if (stop_.load(std::memory_order_relaxed))
      return Error{.code = Code::kCancelled, .operation = "bench"};
    VIADUCT_CHECK(transfer.post());
    return transfer.wait();
  }

  // Gives the seconds that one transfer takes.
  Result<double> warmUp(Transfer& transfer) {
    const auto start = Clock::now();
    std::uint64_t done = 0;
    Seconds took{0};
    while (done < kWarmLeast || (took < kWarmFor && workload_.iterations == 0)) {
      VIADUCT_CHECK(once(transfer));
      ++done;
      took = Clock::now() - start;
    }
    return took.count() / static_cast<double>(done);
  }

  Result<Timing> time(Transfer& transfer, double each) {
    Timing out;
    out.iterations = workload_.iterations;
    if (out.iterations == 0)
      out.iterations = static_cast<std::uint64_t>(
          std::clamp(kTimeFor.count() / each, double{kFewest}, double{kMost}));
    const std::uint64_t parts = std::min(kParts, out.iterations);
    for (std::uint64_t part = 0; part < parts; ++part) {
      const std::uint64_t count = out.iterations / parts + (part < out.iterations % parts ? 1 : 0);
      VIADUCT_CHECK(timePart(transfer, count, out));
    }
    return out;
  }

  Status timePart(Transfer& transfer, std::uint64_t count, Timing& into) {
    const auto start = Clock::now();
    auto before = start;
    for (std::uint64_t i = 0; i < count; ++i) {
      VIADUCT_CHECK(once(transfer));
      const auto now = Clock::now();
      into.latency.record(
          static_cast<std::uint64_t>(std::chrono::nanoseconds(now - before).count()));
      before = now;
    }
    const double elapsed = Seconds(before - start).count();
    into.elapsed += elapsed;
    into.gb_per_s.push_back(static_cast<double>(workload_.bytes() * count) / elapsed * 1e-9);
    return Ok{};
  }

  Row summary(const Timing& timing, double cpu) const {
    Row row = rowOf(workload_);
    row.iterations = timing.iterations;
    row.seconds = timing.elapsed;
    const auto transfers = static_cast<double>(timing.iterations);
    row.gb_per_s = median(timing.gb_per_s);
    row.gb_per_s_parts = timing.gb_per_s;
    row.gb_per_s_spread = spread(timing.gb_per_s);
    row.cpu_s_per_gb = cpu / (transfers * static_cast<double>(workload_.bytes()) * 1e-9);
    row.completions_per_s = transfers / timing.elapsed;
    const auto us = [&](double q) { return timing.latency.quantile(q) * 1e-3; };
    row.latency_us = {.mean = timing.elapsed / transfers * 1e6,
                      .p50 = us(0.5),
                      .p90 = us(0.9),
                      .p99 = us(0.99),
                      .p99_9 = us(0.999),
                      .max = static_cast<double>(timing.latency.max()) * 1e-3};
    return row;
  }

  Target& target_;
  Region& region_;
  const Workload& workload_;
  const StopFlag& stop_;
};

Result<Row> prepareAndRun(Agent& agent, const Peer& peer, Target& target, const Workload& workload,
                          const StopFlag& stop) {
  const std::string label = fmt::format("bench-{}-{}", workload.backend, workload.seed);
  VIADUCT_CHECK(target.prepare(workload, label));
  VIADUCT_TRY(Region region, Region::make(agent, workload, Role::kInitiator, label));
  VIADUCT_TRY(const PinInfo theirs, peer.pin(label, kAnnounced));
  VIADUCT_TRY(Transfer transfer, agent.plan(workload.op, peer, region.selection(),
                                            selectionAt(workload, Role::kTarget, theirs.address),
                                            {.require = "backend:" + workload.backend}));
  VIADUCT_TRY(Row row, Measurement(target, region, workload, stop).run(transfer));
  VIADUCT_CHECK(region.release());
  VIADUCT_CHECK(target.release());
  return row;
}

}  // namespace

Result<Row> measureRow(Agent& agent, const Peer& peer, Target& target, const Workload& workload,
                       const StopFlag& stop) {
  auto row = prepareAndRun(agent, peer, target, workload, stop);
  if (row || stop.load() || row.error().code == Code::kPeerLost ||
      row.error().code == Code::kCancelled)
    return row;
  VIADUCT_CHECK(target.release());
  Row failed = rowOf(workload);
  failed.verdict = Verdict::kFailed;
  failed.why = row.error().text();
  return failed;
}

}  // namespace viaduct::measure
