// Makes one row from the shares of all members.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "base/sizes.h"
#include "measure/proof/account.h"
#include "measure/proof/judge.h"
#include "measure/proof/share.h"
#include "measure/proof/timeline.h"
#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

constexpr double kMuchChecking = 0.25, kMuchSeconds = 0.2;  // part of the row's time; seconds
constexpr std::size_t kWindows = 3;     // parts of a round, if it has several streams
constexpr std::size_t kMostParts = 12;  // parts of a repeat

class Composer {
 public:
  Composer(const Spec& spec, const Workload& workload, std::span<const RowShare> shares,
           const Rounds& rounds)
      : spec_(spec),
        workload_(workload),
        shares_(shares),
        rounds_(rounds),
        streams_(streamsOf(spec.layout, spec.threads, spec.bidirectional)),
        facts_{.backend = workload.backend,
               .require = spec.require,
               .transfer_bytes = smallestTransfer(),
               .block = workload.block_bytes,
               .pages = spec.huge_pages                        ? causes::Pages::kHuge
                        : spec.memory == MemoryChoice::kMalloc ? causes::Pages::kOrdinary
                                                               : causes::Pages::kShared,
               .flags = spec.flags},
        row_{.backend = workload.backend,
             .op = workload.op,
             .scheme = schemeName(spec.layout.scheme),
             .block_size = workload.block_bytes,
             .batch_size = workload.batch,
             .threads = spec.threads,
             .pipeline_depth = spec.depth,
             .initiators = spec.layout.initiators,
             .targets = spec.layout.targets,
             .bidirectional = spec.bidirectional,
             .heat = spec.working_set == 0 && !workload.kv ? "hot" : "cold"} {
    if (workload.kv) {
      row_.kind = kvOf(*workload.kv);
      row_.scheme = workload.trace ? "kv-trace" : workload.kv->bulk ? "kv-bulk" : "kv-paged";
    }
  }

  Result<Composed> composed() {
    for (const RowShare& share : shares_) {
      VIADUCT_TRY(proof::Observation one, proof::decodeObservation(share.observation));
      hosts_.push_back(one.place.boot_id);
      seen_.push_back(std::move(one));
    }
    row_.memory = memoryWords();
    if (spec_.layout.pattern()) {
      const OperationBytes bytes = operationBytes(spec_.layout, workload_);
      row_.kind =
          Operation{.size = bytes.size, .moved_bytes = bytes.moved, .busiest_bytes = bytes.busiest};
    }
    facts_.failure = failure();
    if (!facts_.failure) {
      count();
      repeats();
      openLoop();
      intervals();
      pairs();
      if (const auto side = scaledSide(spec_)) devices(*side);
      verified();
      computeFigures(row_);
      if (rounds_.stopped && !isWhole()) row_.interrupted = rounds_.planned;
    }
    return judged();
  }

 private:
  static KvWorkload kvOf(const KvPoint& point) {
    return KvWorkload{.model = point.model,
                      .tokens = point.tokens,
                      .source_block = point.source.block,
                      .destination_block = point.destination.block,
                      .source_tp = point.source.tp,
                      .destination_tp = point.destination.tp,
                      .order = base::wordOf(kKvOrders, point.source.order),
                      .arrangement = base::wordOf(kKvArrangements, point.source.arrangement),
                      .bulk = point.bulk,
                      .trial = point.trial,
                      .trials = point.trials,
                      .table_sets = point.sets,
                      .pool_bytes = std::max(point.source.bytes, point.destination.bytes),
                      .descriptors = (point.bulk ? 1 : point.pages) * point.requests};
  }

  // The smallest transfer decides whether all rails had to take part.
  std::uint64_t smallestTransfer() const {
    std::uint64_t bytes = workload_.bytes();
    for (const Stream& stream : streams_)
      bytes = std::min(bytes, workOf(workload_, stream).bytes());
    return bytes;
  }

  using Repeat = std::vector<std::vector<Placed>>;  // by round

  // Returns the memory of a side's devices: "DRAM", "VRAM 0-7".
  std::string memoryOf(bool initiators) const {
    std::set<std::uint32_t> gpus;
    for (std::uint32_t rank = 0; rank < shares_.size(); ++rank)
      if (spec_.layout.isInitiator(rank) == initiators)
        gpus.insert(shares_[rank].gpus.begin(), shares_[rank].gpus.end());
    if (gpus.empty()) return "DRAM";
    const bool row = *gpus.rbegin() - *gpus.begin() + 1 == gpus.size();
    if (gpus.size() > 1 && row) return fmt::format("VRAM {}-{}", *gpus.begin(), *gpus.rbegin());
    return fmt::format("VRAM {}", fmt::join(gpus, ","));
  }

  // Returns the memory of both sides. If neither side has GPUs, returns the chosen kind of host
  // memory.
  std::string memoryWords() const {
    const std::string here = memoryOf(true);
    const bool alike = spec_.layout.stored() || spec_.layout.pattern();
    const std::string there = alike ? here : memoryOf(false);
    if (here == "DRAM" && there == here) return memoryChoiceName(spec_.memory);
    return here == there ? here : fmt::format("{}/{}", here, there);
  }

  // Says that a row of GPU memory was staged, because staging makes the row slower than its backend
  // is.
  std::string stagingWords() const {
    const auto staged = [](const ProvenShare& share) { return share.stage != 0; };
    if (!usesGpu(row_) || std::none_of(row_.path.begin(), row_.path.end(), staged)) return {};
    return fmt::format("staged through host memory, because {} does not reach this GPU memory",
                       row_.backend);
  }

  // Returns the first failure that is not kCancelled, or the first failure. A member is cancelled
  // because another member failed, so the other failure is the cause.
  Failure failure() const {
    Failure found;
    for (std::size_t rank = 0; rank < shares_.size(); ++rank) {
      const Failure& failure = shares_[rank].failure;
      if (!failure || (found && failure->code == Code::kCancelled)) continue;
      if (found && found->code != Code::kCancelled) continue;
      found = failure;
      found->detail = fmt::format("rank {}: {}", rank, found->detail);
    }
    return found;
  }

  // Fills in the counts, from which the row's figures are computed.
  void count() {
    RowCounts& counts = row_.counts.emplace();
    counts.streams = static_cast<std::uint32_t>(streams_.size());
    counts.echo = spec_.ping_pong;
    counts.all_checked = rounds_.every_transfer_checked;
    counts.checking_s = rounds_.checking_s;
    if (spec_.background != 0) row_.background = {.size = spec_.background};
    Histogram latency, prep, post, tx;
    for (std::uint32_t rank = 0; rank < shares_.size(); ++rank) {
      const RowShare& share = shares_[rank];
      latency.add(share.latency);
      prep.add(share.prep);
      post.add(share.post);
      tx.add(share.tx);
      counts.members.push_back(countsOf(rank));
    }
    const auto keep = [](const Histogram& ns) {
      return ns.count() == 0 ? std::nullopt : std::optional(ns.distribution());
    };
    counts.latency_ns = keep(latency);
    counts.prep_ns = keep(prep);
    counts.post_ns = keep(post);
    counts.tx_ns = keep(tx);
    if (const TimedBytes alone = wallOf(placed(rounds_.alone, hosts_)); alone.bytes != 0)
      counts.alone = alone;
  }

  MemberCounts countsOf(std::uint32_t rank) const {
    const RowShare& share = shares_[rank];
    const auto host = std::ranges::find(hosts_, hosts_[rank]);
    MemberCounts out{
        .initiator = spec_.layout.isInitiator(rank),
        .host = static_cast<std::uint32_t>(host - hosts_.begin()),
        .in_process = static_cast<std::uint32_t>(membersWith(rank)),
        .transfers = share.transfers,
        .bytes = share.bytes,
        .background = share.background.transfers,
        .background_gb_per_s = share.background.gb_per_s,
        .background_gap_s = share.background.longest_gap_s,
        .checks = share.checks,
        .missed = share.missed,
        .wrong = !share.mismatch.empty(),
        .ops = workload_.kv ? share.ops : 0,
        .words = share.words,
        .cpu_s = share.cpu.used,
        .counted_s = share.cpu.over,
        .sealing_s = std::chrono::duration<double>(proof::sealingOf(seen_[rank])).count(),
        .machine_cpu_s = share.cpu.machine,
        .machine_idle_s = share.cpu.idle,
        .processors = share.cpu.processors,
        .clock_s = share.clock.seconds + share.clock.ahead,
        .second_clock_s = share.clock.seconds};
    for (const StreamShare& s : share.streams) {
      out.timed += s.iterations;
      out.timed_bytes += s.bytes;
    }
    return out;
  }

  void repeats() {
    for (std::size_t i = 0; i < rounds_.each.size(); ++i) {
      std::vector<Placed> round = placed(rounds_.each[i], hosts_);
      // No bytes: the run ended before the round began.
      if (wallOf(round).bytes == 0) continue;
      if (repeats_.empty() || i % rounds_.of_a_repeat == 0) repeats_.emplace_back();
      repeats_.back().push_back(std::move(round));
    }
    for (const Repeat& repeat : repeats_) {
      RepeatCounts& out = row_.counts->repeats.emplace_back();
      std::vector<LaneTimes::Part> parts;
      for (const std::vector<Placed>& round : repeat) {
        out.whole.add(wallOf(round));
        for (const LaneTimes::Part& part : partsOf(round, kWindows)) parts.push_back(part);
      }
      for (const LaneTimes::Part& part : merged(parts, kMostParts))
        out.parts.push_back({part.bytes, part.seconds});
    }
  }

  void openLoop() {
    double asked = spec_.rate;
    for (const RowShare& share : shares_) asked = share.asked_per_s.value_or(asked);
    if (asked > 0 && !repeats_.empty())
      row_.rate = OpenLoop{.asked_per_s = asked * static_cast<double>(streams_.size()),
                           .arrivals = workload_.trace ? "trace"
                                       : spec_.poisson ? "poisson"
                                                       : "constant"};
  }

  std::string backgroundWords() const {
    if (!row_.background) return {};
    return fmt::format("beside background transfers of {}: {:.3g} GB/s, longest gap {:.3g} ms",
                       base::showSize(row_.background->size), row_.background->gb_per_s,
                       row_.background->longest_gap_ms);
  }

  bool isWhole() const {
    return rounds_.each.size() >= rounds_.all && row_.iterations >= rounds_.planned.of_transfers &&
           row_.seconds >= rounds_.planned.of_seconds;
  }

  std::string freshWords() const {
    if (!spec_.fresh) return {};
    return "fresh: all bytes of a transfer are written before it, which the rate contains and the "
           "latency does not";
  }

  // Reports the CPU time of encrypting and authenticating data over tcp, if it is at least kVisible
  // of the row's CPU time.
  std::string sealingWords() const {
    constexpr double kVisible = 0.05;
    double seconds = 0, bytes = 0;
    if (row_.counts)
      for (const MemberCounts& member : row_.counts->members) {
        seconds += member.sealing_s;
        bytes += static_cast<double>(member.bytes);
      }
    const double per_gb = bytes > 0 ? seconds / (bytes * 1e-9) : 0;
    if (!row_.cpu_s_per_gb || per_gb < kVisible * *row_.cpu_s_per_gb || per_gb <= 0) return {};
    return fmt::format("sealing and opening took {:.2g} of {:.2g} CPU s/GB", per_gb,
                       *row_.cpu_s_per_gb);
  }

  std::string checkWords() const {
    const double took = row_.checks ? row_.checks->seconds : 0;
    if (took < kMuchSeconds || took < kMuchChecking * (took + row_.seconds)) return {};
    return fmt::format("checks of the contents took {:.2g} s beside {:.2g} s of timed transfers",
                       took, row_.seconds);
  }

  std::string interruptionWords() const {
    if (!row_.interrupted) return {};
    if (row_.interrupted->of_transfers == 0 && row_.seconds >= row_.interrupted->of_seconds)
      return fmt::format("interrupted after {} of {} rounds", rounds_.each.size(), rounds_.all);
    if (row_.interrupted->of_seconds > 0)
      return fmt::format("interrupted after {:.1f} of {:g} s", row_.seconds,
                         row_.interrupted->of_seconds);
    return fmt::format("interrupted after {} of {} {}", row_.iterations,
                       row_.interrupted->of_transfers, workload_.trace ? "requests" : "transfers");
  }

  // Reports one long pause, which the median of the parts and all percentiles hide.
  std::string stallWords() const {
    constexpr double kSeconds = 0.1, kOfTheRow = 0.05, kTimesTheMedian = 10;
    if (!row_.latency_us || row_.seconds <= 0) return {};
    const double longest = row_.latency_us->max * 1e-6;
    if (longest < kSeconds || longest < kOfTheRow * row_.seconds ||
        longest < kTimesTheMedian * row_.latency_us->p50 * 1e-6)
      return {};
    return fmt::format("stalled: one transfer took {:.2f} s, and the median {:.3g} ms", longest,
                       row_.latency_us->p50 * 1e-3);
  }

  // Adds up the members' intervals. All members' streams move at the same time, in intervals of
  // nearly the same length.
  void intervals() {
    std::vector<double> members;  // number of members that moved bytes, by interval
    for (const RowShare& share : shares_)
      for (std::size_t i = 0; i < share.intervals.size(); ++i) {
        const RateInterval& one = share.intervals[i];
        if (i == row_.intervals.size()) {
          row_.intervals.push_back(one);
          members.push_back(one.bytes == 0 ? 0 : 1);
        } else if (one.bytes != 0) {
          RateInterval& all = row_.intervals[i];
          const double more = ++members[i];
          all.start += (one.start - all.start) / more;
          all.end += (one.end - all.end) / more;
          all.bytes += one.bytes;
        }
      }
  }

  // Returns the number of members in the process of `rank`.
  std::ptrdiff_t membersWith(std::uint32_t rank) const {
    return std::count_if(seen_.begin(), seen_.end(), [&](const proof::Observation& one) {
      return one.place.process == seen_[rank].place.process;
    });
  }

  void pairs() {
    for (const Pair& pair : pairsOf(spec_.layout)) {
      PairResult& result = row_.pairs.emplace_back();
      result.initiator = spec_.layout.initiatorRank(pair.initiator);
      result.target = spec_.layout.targetRank(pair.target);
      result.repeats = repeatsOf([&](const Stream& stream) { return stream.pair == pair; });
      result.latency_us = latencyOfPair(pair);
    }
  }

  // Returns the bytes and time of each repeat, of only the streams for which `counts` is true.
  template <class Counts>
  std::vector<TimedBytes> repeatsOf(Counts counts) const {
    std::vector<TimedBytes> out;
    for (const Repeat& repeat : repeats_) {
      TimedBytes& wall = out.emplace_back();
      for (const std::vector<Placed>& round : repeat) {
        std::vector<Placed> own;
        for (const Placed& one : round)
          if (one.stream < streams_.size() && counts(streams_[one.stream])) own.push_back(one);
        wall.add(wallOf(own));
      }
    }
    return out;
  }

  // Adds a DeviceResult for each device of a side.
  void devices(const ScaledSide& side) {
    const bool initiates = side.role == Role::kInitiator;
    for (std::uint32_t i = 0; i < side.devices; ++i) {
      const std::uint32_t rank =
          initiates ? spec_.layout.initiatorRank(i) : spec_.layout.targetRank(i);
      const auto& gpus = seen_[rank].place.gpus;
      const auto gpu = std::ranges::find(gpus, i, &proof::GpuPlace::device);
      row_.devices.push_back({.side = initiates ? "initiator" : "target",
                              .number = i,
                              .gpu = gpu == gpus.end() ? "" : gpu->name,
                              .repeats = repeatsOf([&](const Stream& stream) {
                                return numberOf(stream.pair, side.role) == i;
                              })});
    }
  }

  // Returns the latency of a pair's slowest thread. All threads make equal transfers.
  std::optional<Latency> latencyOfPair(const Pair& pair) const {
    std::optional<Latency> found;
    if (!row_.counts->latency_ns) return found;
    for (const RowShare& share : shares_)
      for (const StreamShare& s : share.streams) {
        if (s.stream >= streams_.size() || streams_[s.stream].reverse) continue;
        if (streams_[s.stream].pair != pair) continue;
        if (!found || found->p50 < s.latency_us.p50) found = s.latency_us;
      }
    return found;
  }

  void verified() {
    row_.verified = facts_.verified = spec_.verify;
    std::uint64_t checks = 0, missed = 0;
    for (std::uint32_t rank = 0; rank < shares_.size(); ++rank) {
      checks += shares_[rank].checks;
      missed += shares_[rank].missed;
      if (!shares_[rank].mismatch.empty() && !facts_.mismatch)
        facts_.mismatch = fmt::format("at rank {} {}", rank, shares_[rank].mismatch);
    }
    if (missed != 0)
      facts_.mismatch = fmt::format("{} of {} checked transfers have wrong bytes: {}", missed,
                                    checks, facts_.mismatch.value_or(""));
  }

  // Judges the row by the device counters, and takes over path, verdict and ceiling.
  Composed judged() {
    facts_.gb_per_s = row_.gb_per_s.value_or(0);
    if (row_.rate && row_.rate->asked_per_s > 0)
      facts_.rate_kept = row_.rate->reached_per_s / row_.rate->asked_per_s;
    if (!facts_.failure) {
      facts_.totals = totalsOf(row_);
      facts_.parts = row_.gb_per_s_parts;
      cores();
      clocks();
    }
    facts_.working_set = workingSet(spec_, workload_);
    proof::Judgement judgement = proof::judge(seen_, facts_, spec_.link_rates);
    row_.path = std::move(judgement.path);
    if (row_.backend.empty() && !row_.path.empty()) row_.backend = carrier().backend;
    row_.proof = std::move(judgement.proof);
    row_.ceiling = std::move(judgement.ceiling);
    row_.ceiling_unknown = std::move(judgement.ceiling_unknown);
    if (row_.counts) {
      row_.counts->devices = std::move(judgement.devices);
      row_.counts->payload = std::move(judgement.counted);
    }
    row_.copied_by = proof::copiedBy(row_.path);
    row_.verdict = judgement.verdict;
    row_.why = std::move(judgement.why);
    for (const causes::Cause& one : judgement.causes)
      row_.causes.push_back({std::string(one.name), one.what, one.remedy});
    for (const std::string& words :
         {stagingWords(), backgroundWords(), freshWords(), sealingWords(), checkWords(),
          interruptionWords(), stallWords(), judgement.remark})
      if (!words.empty()) row_.remark += (row_.remark.empty() ? "" : "; ") + words;
    return {std::move(row_), std::move(judgement.conclusion)};
  }

  // Returns the share that went from member to member. A staged path has other shares too.
  const ProvenShare& carrier() const {
    constexpr std::uint32_t kLoad = 1;  // PathShare::stage
    const auto at = std::find_if(row_.path.begin(), row_.path.end(),
                                 [](const ProvenShare& share) { return share.stage != kLoad; });
    return at == row_.path.end() ? row_.path.front() : *at;
  }

  void clocks() {
    for (std::uint32_t rank = 0; rank < shares_.size(); ++rank)
      if (std::abs(shares_[rank].clock.ahead) > std::abs(facts_.clock.ahead)) {
        facts_.clock = shares_[rank].clock;
        facts_.clock_rank = rank;
      }
    for (std::uint32_t rank = 0; rank < shares_.size(); ++rank) {
      const CpuUse& cpu = shares_[rank].cpu;
      if (cpu.processors == 0) continue;
      const proof::TickedClock ticks{
          .rank = rank, .seconds = cpu.over, .ticked = (cpu.machine + cpu.idle) / cpu.processors};
      if (ticks.behind() > facts_.ticks.behind()) facts_.ticks = ticks;
    }
  }

  void cores() {
    facts_.cores_busy = row_.cores_busy.value_or(0);
    facts_.cores_others = row_.cores_others.value_or(0);
    if (!row_.cores_busy) return;
    if (const auto machines = machinesOf(*row_.counts)) facts_.cores = machines->processors;
  }

  const Spec& spec_;
  const Workload& workload_;
  std::span<const RowShare> shares_;
  const Rounds& rounds_;
  const std::vector<Stream> streams_;
  std::vector<proof::Observation> seen_;
  std::vector<std::string> hosts_;  // by rank; members of one host share a clock
  std::vector<Repeat> repeats_;
  proof::RowFacts facts_;
  Row row_;
};

}  // namespace

Result<Composed> compose(const Spec& spec, const Workload& workload,
                         std::span<const RowShare> shares, const Rounds& rounds) {
  return Composer(spec, workload, shares, rounds).composed();
}

}  // namespace viaduct::measure
