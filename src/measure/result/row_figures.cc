#include "measure/result/row_figures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/lists.h"
#include "measure/result/statistics.h"

namespace viaduct::measure {
namespace {

template <class Field>
auto sumOf(const RowCounts& counts, Field field) {
  std::remove_cvref_t<decltype(MemberCounts{}.*field)> out = 0;
  for (const MemberCounts& member : counts.members) out += member.*field;
  return out;
}

std::vector<double> ratesOf(const std::vector<TimedBytes>& moved) {
  return base::mapped(moved, &TimedBytes::rate);
}

void iterations(Row& row) { row.iterations = sumOf(*row.counts, &MemberCounts::timed); }

void seconds(Row& row) {
  row.seconds = 0;
  for (const RepeatCounts& repeat : row.counts->repeats) row.seconds += repeat.whole.seconds;
}

void parts(Row& row) {
  row.gb_per_s_parts.clear();
  for (const RepeatCounts& repeat : row.counts->repeats)
    for (const double rate : ratesOf(repeat.parts)) row.gb_per_s_parts.push_back(rate);
}

// For a single stream the rate is the median of its parts, which is steadier. With several streams
// only the time of all streams together gives the true rate.
void rate(Row& row) {
  row.gb_per_s.reset();
  if (row.seconds <= 0) return;
  std::vector<double> rates;
  for (const RepeatCounts& repeat : row.counts->repeats)
    if (row.counts->streams == 1)
      for (const double part : ratesOf(repeat.parts)) rates.push_back(part);
    else
      rates.push_back(repeat.whole.rate());
  row.gb_per_s = median(std::move(rates));
}

void spreadOfParts(Row& row) {
  row.gb_per_s_spread.reset();
  if (row.gb_per_s_parts.size() > 1) row.gb_per_s_spread = spread(row.gb_per_s_parts);
}

void completions(Row& row) {
  row.completions_per_s.reset();
  if (row.seconds > 0) row.completions_per_s = static_cast<double>(row.iterations) / row.seconds;
}

void reached(Row& row) {
  if (row.rate && row.completions_per_s) row.rate->reached_per_s = *row.completions_per_s;
}

std::optional<Histogram> histogramOf(const std::optional<Distribution>& distribution) {
  auto out = distribution ? Histogram::of(*distribution) : std::nullopt;
  return out && out->count() != 0 ? out : std::nullopt;
}

std::optional<Latency> latencyFrom(const std::optional<Distribution>& nanoseconds) {
  const auto values = histogramOf(nanoseconds);
  return values ? std::optional(latencyOf(*values)) : std::nullopt;
}

std::optional<MeanP99> briefFrom(const std::optional<Distribution>& nanoseconds) {
  const auto values = histogramOf(nanoseconds);
  if (!values) return std::nullopt;
  return MeanP99{.mean = values->mean() * 1e-3, .p99 = values->quantile(0.99) * 1e-3};
}

void latency(Row& row) { row.latency_us = latencyFrom(row.counts->latency_ns); }
void prep(Row& row) { row.prep_us = briefFrom(row.counts->prep_ns); }
void post(Row& row) { row.post_us = briefFrom(row.counts->post_ns); }
void tx(Row& row) { row.tx_us = briefFrom(row.counts->tx_ns); }

// Each member reports the CPU of its whole process, so members of one process share it evenly.
void cpu(Row& row) {
  CpuSeconds used;
  for (const MemberCounts& member : row.counts->members)
    (member.initiator ? used.initiators : used.targets) +=
        member.cpu_s / static_cast<double>(member.in_process);
  row.cpu_s = used;
}

double usedBy(const Row& row) { return row.cpu_s ? row.cpu_s->initiators + row.cpu_s->targets : 0; }

double besideOf(const Row& row) {
  const double size = row.background ? static_cast<double>(row.background->size) : 0;
  return size * static_cast<double>(sumOf(*row.counts, &MemberCounts::background));
}

void cpuPerGb(Row& row) {
  row.cpu_s_per_gb.reset();
  const double moved = totalsOf(row).timed + besideOf(row);
  if (moved > 0) row.cpu_s_per_gb = usedBy(row) / (moved * 1e-9);
}

double countedBy(const RowCounts& counts) {
  double out = 0;
  for (const MemberCounts& member : counts.members) out = std::max(out, member.counted_s);
  return out;
}

void coresOfOurs(Row& row) {
  row.cores_busy.reset();
  const double busy = coresBusy(usedBy(row), row.seconds, countedBy(*row.counts));
  if (busy > 0) row.cores_busy = busy;
}

void coresOfOthers(Row& row) {
  row.cores_others.reset();
  const auto machines = machinesOf(*row.counts);
  if (row.cores_busy && machines)
    row.cores_others = std::max(0.0, machines->cpu_s - usedBy(row)) / countedBy(*row.counts);
}

void background(Row& row) {
  if (!row.background) return;
  row.background->gb_per_s = sumOf(*row.counts, &MemberCounts::background_gb_per_s);
  double gap = 0;
  for (const MemberCounts& member : row.counts->members)
    gap = std::max(gap, member.background_gap_s);
  row.background->longest_gap_ms = gap * 1e3;
}

void pairs(Row& row) {
  for (PairResult& pair : row.pairs) pair.gb_per_s = median(ratesOf(pair.repeats));
}

void devices(Row& row) {
  for (DeviceResult& device : row.devices) device.gb_per_s = median(ratesOf(device.repeats));
}

void scaling(Row& row) {
  row.scaling.reset();
  if (row.devices.empty() || !row.gb_per_s) return;
  const auto [slowest, fastest] = std::ranges::minmax(row.devices, {}, &DeviceResult::gb_per_s);
  if (fastest.gb_per_s <= 0) return;
  Scaling& out = row.scaling.emplace();
  out.devices = static_cast<std::uint32_t>(row.devices.size());
  out.slowest_of_fastest = slowest.gb_per_s / fastest.gb_per_s;
  const double alone = row.counts->alone ? row.counts->alone->rate() : 0;
  if (alone <= 0) return;
  out.alone_gb_per_s = alone;
  out.of_linear = *row.gb_per_s / (alone * out.devices);
}

void intervals(Row& row) {
  for (RateInterval& one : row.intervals)
    one.gb_per_s = TimedBytes{one.bytes, one.end - one.start}.rate();
}

// The check after the last round counts no transfers. So each member that found wrong bytes counts
// as one.
std::uint64_t wrongTransfers(const RowCounts& counts) {
  std::uint64_t members = 0;
  for (const MemberCounts& member : counts.members) members += member.wrong ? 1 : 0;
  return std::max(sumOf(counts, &MemberCounts::missed), members);
}

// All figures of an operation follow from the rate of the row.
void operation(Row& row) {
  auto* const operation = row.as<Operation>();
  if (operation == nullptr) return;
  if (row.verified != Verified::kOff) operation->wrong = wrongTransfers(*row.counts);
  if (row.gb_per_s.value_or(0) <= 0) return;
  const double ns = static_cast<double>(operation->moved_bytes) / *row.gb_per_s;
  operation->time_us = ns * 1e-3;
  operation->algbw = static_cast<double>(operation->size) / ns;
  operation->busbw = static_cast<double>(operation->busiest_bytes) / ns;
}

void kv(Row& row) {
  auto* const kv = row.as<KvWorkload>();
  if (kv == nullptr) return;
  kv->runs = sumOf(*row.counts, &MemberCounts::ops);
  kv->checked_words = sumOf(*row.counts, &MemberCounts::words);
}

void replay(Row& row) {
  if (auto* const kv = row.as<KvWorkload>(); kv != nullptr && kv->replay)
    computeFigures(*kv->replay);
}

void stages(Row& row) {
  if (auto* const pipeline = row.as<PipelineRow>())
    for (StageResult& stage : pipeline->stages) computeFigures(stage);
}

void transfers(Row& row) {
  row.transfers =
      sumOf(*row.counts, &MemberCounts::transfers) + sumOf(*row.counts, &MemberCounts::background);
}

// If every transfer was checked, the checks notice every skipped one, so the smallest part that
// they catch is 0.
void checks(Row& row) {
  row.checks.reset();
  const std::uint64_t checked = sumOf(*row.counts, &MemberCounts::checks);
  if (checked == 0) return;
  row.checks = Checks{.transfers = checked,
                      .smallest_caught = row.counts->all_checked ? 0 : smallestCaught(checked),
                      .seconds = row.counts->checking_s};
}

void ceiling(Row& row) {
  if (row.ceiling)
    row.ceiling->percent = percentOfCeiling(row.gb_per_s.value_or(0), row.ceiling->gb_per_s);
}

constexpr std::array kRules{
    FigureRule{"iterations", "sum of counts.members[].timed", iterations},
    FigureRule{"seconds", "sum of counts.repeats[].seconds", seconds},
    FigureRule{"gb_per_s_parts", "bytes / seconds of each of counts.repeats[].parts[]", parts},
    FigureRule{"gb_per_s",
               "counts.streams is 1: median of bytes / seconds of the parts; else of the repeats",
               rate},
    FigureRule{"gb_per_s_spread",
               "median distance of gb_per_s_parts from their median, as a fraction of it",
               spreadOfParts},
    FigureRule{"completions_per_s", "iterations / seconds", completions},
    FigureRule{"rate.reached_per_s", "completions_per_s", reached},
    FigureRule{"latency_us", "sum, quantiles and ends of counts.latency_ns", latency},
    FigureRule{"prep_us", "mean and 99th percentile of counts.prep_ns", prep},
    FigureRule{"post_us", "mean and 99th percentile of counts.post_ns", post},
    FigureRule{"tx_us", "mean and 99th percentile of counts.tx_ns", tx},
    FigureRule{"cpu_s", "sum of cpu_s / in_process of counts.members[] of a side", cpu},
    FigureRule{"cpu_s_per_gb",
               "cpu_s of both sides / 10^9 timed bytes, with both directions and the background",
               cpuPerGb},
    FigureRule{"cores_busy",
               "cpu_s of both sides / the longest counts.members[].counted_s, unless much of that "
               "lies outside of the row",
               coresOfOurs},
    FigureRule{
        "cores_others",
        "machine_cpu_s of each host of counts.members[] without cpu_s / the longest counted_s",
        coresOfOthers},
    FigureRule{"background",
               "sum of counts.members[].background_gb_per_s, the longest background_gap_s",
               background},
    FigureRule{"pairs[].gb_per_s", "median of bytes / seconds of pairs[].repeats[]", pairs},
    FigureRule{"devices[].gb_per_s", "median of bytes / seconds of devices[].repeats[]", devices},
    FigureRule{"scaling", "devices[].gb_per_s, gb_per_s, and counts.alone", scaling},
    FigureRule{"intervals[].gb_per_s", "bytes / (end_s - start_s)", intervals},
    FigureRule{"operation",
               "moved_bytes / gb_per_s is its time; size and busiest_bytes / time are the rates; "
               "counts.members[].missed are wrong",
               operation},
    FigureRule{"kv", "runs and checked_words: sums of counts.members[].ops and words", kv},
    FigureRule{"replay",
               "hit_ids / hash_ids; mean, quantiles and ends of ttft_ns and "
               "of_ttft_millionths",
               replay},
    FigureRule{"pipeline.stages[]", "bytes / seconds of moved[]; seconds / of_seconds of worked[]",
               stages},
    FigureRule{"transfers", "sum of counts.members[].transfers and background", transfers},
    FigureRule{"checks",
               "sum of counts.members[].checks; smallest_caught: 1 - 0.001^(1 / checks), or 0 if "
               "counts.all_checked; seconds: counts.checking_s",
               checks},
    FigureRule{"ceiling.percent", "100 x gb_per_s / ceiling.gb_per_s", ceiling},
};

}  // namespace

std::span<const FigureRule> figureRules() { return kRules; }

void computeFigures(Row& row) {
  for (const FigureRule& rule : kRules) rule.compute(row);
}

void computeFigures(StageResult& stage) {
  stage.gb_per_s = ratesOf(stage.moved);
  stage.busy.clear();
  for (const BusyTime& one : stage.worked)
    stage.busy.push_back(one.of_seconds > 0 ? one.seconds / one.of_seconds : 0);
}

void computeFigures(KvReplayed& replayed) {
  replayed.hit_rate = replayed.hash_ids == 0 ? 0
                                             : static_cast<double>(replayed.hit_ids) /
                                                   static_cast<double>(replayed.hash_ids);
  replayed.ttft_us = latencyFrom(replayed.ttft_ns);
  replayed.of_ttft.reset();
  replayed.of_ttft_p99.reset();
  const auto parts = histogramOf(replayed.of_ttft_millionths);
  if (!parts) return;
  replayed.of_ttft = parts->mean() * 1e-6;
  replayed.of_ttft_p99 = parts->quantile(0.99) * 1e-6;
}

Latency latencyOf(const Histogram& ns) {
  const auto us = [&](double q) { return ns.quantile(q) * 1e-3; };
  return {.mean = ns.mean() * 1e-3,
          .p50 = us(0.5),
          .p90 = us(0.9),
          .p95 = us(0.95),
          .p99 = us(0.99),
          .p99_9 = us(0.999),
          .max = static_cast<double>(ns.max()) * 1e-3,
          .min = static_cast<double>(ns.min()) * 1e-3};
}

Totals totalsOf(const Row& row) {
  Totals out{.seconds = row.seconds};
  for (const RepeatCounts& repeat : row.counts->repeats)
    out.rated += static_cast<double>(repeat.whole.bytes);
  out.timed = static_cast<double>(sumOf(*row.counts, &MemberCounts::timed_bytes)) *
              (row.counts->echo ? 2 : 1);
  out.all = static_cast<double>(sumOf(*row.counts, &MemberCounts::bytes)) + besideOf(row);
  return out;
}

bool bytesDiffer(double a, double b) {
  constexpr double kTolerance = 0.01;
  return std::abs(a - b) > kTolerance * std::max(a, b);
}

std::optional<Machines> machinesOf(const RowCounts& counts) {
  std::map<std::uint32_t, const MemberCounts*> longest;  // by host
  for (const MemberCounts& member : counts.members) {
    if (member.processors == 0) return std::nullopt;
    const auto [at, fresh] = longest.try_emplace(member.host, &member);
    if (!fresh && member.counted_s > at->second->counted_s) at->second = &member;
  }
  Machines out;
  for (const auto& [host, member] : longest) {
    out.cpu_s += member->machine_cpu_s;
    out.processors += member->processors;
  }
  return out;
}

double coresBusy(double cpu, double row, double counted) {
  constexpr double kMostly = 0.6;
  return counted > 0 && row >= kMostly * counted ? cpu / counted : 0;
}

double percentOfCeiling(double gb_per_s, double ceiling) { return gb_per_s / ceiling * 100; }

}  // namespace viaduct::measure
