#include "measure/report/row_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "measure/proof/account.h"
#include "measure/proof/clock_watch.h"
#include "measure/proof/prove.h"
#include "measure/result/row_figures.h"

namespace viaduct::measure {
namespace {

using Found = std::optional<std::string>;

Found unless(bool agrees, std::string text) {
  return agrees ? std::nullopt : Found(std::move(text));
}

Found sameBytes(double a, double b) {
  return unless(!bytesDiffer(a, b), fmt::format("{:.0f} and {:.0f} bytes", a, b));
}

double bytesIn(const std::vector<TimedBytes>& moved) {
  double out = 0;
  for (const TimedBytes& one : moved) out += static_cast<double>(one.bytes);
  return out;
}

Found partsAddUp(const Row& row) {
  for (const RepeatCounts& repeat : row.counts->repeats) {
    double seconds = 0;
    for (const TimedBytes& part : repeat.parts) seconds += part.seconds;
    const double bytes = bytesIn(repeat.parts);
    // The parts of a row with several streams have rounded byte counts.
    const auto slack = static_cast<double>(repeat.parts.size());
    if (std::abs(bytes - static_cast<double>(repeat.whole.bytes)) > slack)
      return fmt::format("{:.0f} and {} bytes", bytes, repeat.whole.bytes);
    if (!areNear(seconds, repeat.whole.seconds, 1e-6))
      return fmt::format("{:.9g} and {:.9g} seconds", seconds, repeat.whole.seconds);
  }
  return std::nullopt;
}

// The run itself marks a row invalid if these totals differ. So only good rows are checked.
Found ratedIsTimed(const Row& row) {
  if (!isGood(row.verdict)) return std::nullopt;
  const Totals totals = totalsOf(row);
  return sameBytes(totals.rated, totals.timed);
}

Found pathIsAll(const Row& row) {
  if (row.path.empty() || !isGood(row.verdict)) return std::nullopt;
  std::uint32_t counted = 3;  // all bytes pass each stage, so count one stage
  for (const ProvenShare& share : row.path)
    if (share.stage != 0) counted = std::min(counted, share.stage);
  double bytes = 0;
  for (const ProvenShare& share : row.path)
    if (share.stage == 0 || share.stage == counted) bytes += static_cast<double>(share.bytes);
  return sameBytes(bytes, totalsOf(row).all);
}

// Compares the sum over pairs or devices with the whole row, for each repeat.
template <class Parts>
Found repeatsAddUp(const Row& row, const Parts& parts) {
  if (parts.empty()) return std::nullopt;
  for (std::size_t i = 0; i < row.counts->repeats.size(); ++i) {
    std::uint64_t bytes = 0;
    for (const auto& part : parts) {
      if (part.repeats.size() != row.counts->repeats.size())
        return fmt::format("{} and {} repeats", part.repeats.size(), row.counts->repeats.size());
      const TimedBytes& moved = part.repeats[i];
      bytes += moved.bytes;
      const double most = row.counts->repeats[i].whole.seconds * (1 + 1e-9);
      if (moved.seconds > most || (parts.size() == 1 && moved.seconds * (1 + 2e-9) < most))
        return fmt::format("{:.9g} and {:.9g} s", moved.seconds, most);
    }
    if (bytes != row.counts->repeats[i].whole.bytes)
      return fmt::format("{} and {} bytes", bytes, row.counts->repeats[i].whole.bytes);
  }
  return std::nullopt;
}
Found pairsAddUp(const Row& row) { return repeatsAddUp(row, row.pairs); }
Found devicesAddUp(const Row& row) { return repeatsAddUp(row, row.devices); }

// True for rows whose transfers all have block_size x batch_size bytes.
bool isUniform(const Row& row) {
  const auto* const kv = row.as<KvWorkload>();
  return row.scheme != "matrix" && (kv == nullptr || !kv->replay);
}

Found blocksAddUp(const Row& row) {
  if (!isUniform(row)) return std::nullopt;
  for (const MemberCounts& member : row.counts->members) {
    const std::uint64_t one = row.block_size * row.batch_size;
    if (member.timed_bytes != member.timed * one)
      return fmt::format("{} transfers and {} bytes", member.timed, member.timed_bytes);
    if (member.bytes != member.transfers * one)
      return fmt::format("{} transfers and {} bytes", member.transfers, member.bytes);
  }
  return std::nullopt;
}

Found timedIsPart(const Row& row) {
  for (const MemberCounts& member : row.counts->members) {
    if (member.timed > member.transfers)
      return fmt::format("{} and {}", member.timed, member.transfers);
    if (member.missed > member.checks)
      return fmt::format("{} wrong ones of {}", member.missed, member.checks);
  }
  return std::nullopt;
}

Found countsOfTimes(const Row& row) {
  for (const auto& times : {row.counts->latency_ns, row.counts->post_ns, row.counts->tx_ns}) {
    if (!times) continue;
    const auto values = Histogram::of(*times);
    if (!values) return "the buckets cannot be read";
    if (values->count() != row.iterations)
      return fmt::format("{} and {}", values->count(), row.iterations);
  }
  return std::nullopt;
}

Found endsOfTimes(const Row& row) {
  const RowCounts& counts = *row.counts;
  for (const auto& times : {counts.latency_ns, counts.prep_ns, counts.post_ns, counts.tx_ns}) {
    if (!times) continue;
    const auto values = Histogram::of(*times);
    if (!values) return "the buckets cannot be read";
    if (!values->fits())
      return fmt::format("sum {:.0f}, min {}, max {}", times->sum, times->min, times->max);
  }
  return std::nullopt;
}

// Latency is the time of post plus tx. It is longer if the transfer is planned again for each post.
Found latencyIsPostAndTx(const Row& row) {
  if (!row.latency_us || !row.post_us || !row.tx_us || row.rate || row.counts->echo)
    return std::nullopt;
  const auto plans = row.counts->prep_ns ? Histogram::of(*row.counts->prep_ns) : std::nullopt;
  const double both = row.post_us->mean + row.tx_us->mean, all = row.latency_us->mean;
  const bool again = plans && plans->count() >= row.iterations;
  return unless(again ? both <= all * 1.001 : areNear(both, all, 0.02),
                fmt::format("{:.6g} and {:.6g} us", both, all));
}

Found quantilesAscend(const Latency& l) {
  const std::array values{
      l.min.value_or(0), l.p50, l.p90.value_or(l.p50), l.p95.value_or(l.p50), l.p99,
      l.p99_9,           l.max};
  if (l.mean > l.max || l.mean < l.min.value_or(0)) return fmt::format("mean {:.6g} us", l.mean);
  return unless(std::ranges::is_sorted(values), "a higher quantile is lower");
}

// For rows with one stream per pair: all pairs' latencies together are the row's latencies.
Found latenciesTogether(const Row& row) {
  double sum = 0, bytes = 0, min = row.latency_us->max, max = 0;
  for (const PairResult& pair : row.pairs) {
    sum += pair.latency_us->mean * bytesIn(pair.repeats);
    bytes += bytesIn(pair.repeats);
    min = std::min(min, pair.latency_us->min.value_or(0));
    max = std::max(max, pair.latency_us->max);
  }
  if (!areNear(sum / bytes, row.latency_us->mean, 0.02))
    return fmt::format("means of {:.6g} and {:.6g} us", sum / bytes, row.latency_us->mean);
  return unless(min == row.latency_us->min && max == row.latency_us->max,
                fmt::format("{:.6g}..{:.6g} us in all pairs", min, max));
}

// A pair has the latencies of its slowest thread.
Found latenciesOfPair(const Row& row, const Latency& pair) {
  if (row.counts->streams == 1)
    return unless(pair == row.latency_us, "one stream has two latencies");
  if (auto found = quantilesAscend(pair)) return found;
  if (row.latency_us && pair.max > row.latency_us->max)
    return fmt::format("max {:.6g} and {:.6g} us", pair.max, row.latency_us->max);
  return unless(!row.latency_us || !(pair.min < row.latency_us->min),
                "a pair is faster than the fastest transfer");
}

Found latenciesOfPairs(const Row& row) {
  for (const PairResult& pair : row.pairs)
    if (pair.latency_us)
      if (auto found = latenciesOfPair(row, *pair.latency_us)) return found;
  const bool all = std::ranges::all_of(row.pairs, [](const PairResult& pair) {
    return pair.latency_us && bytesIn(pair.repeats) > 0;
  });
  // The pairs of a matrix file have transfers of several sizes.
  if (!all || !row.latency_us || row.counts->streams != row.pairs.size() || !isUniform(row))
    return std::nullopt;
  return latenciesTogether(row);
}

Found clocksAgree(const Row& row) {
  if (!isGood(row.verdict)) return std::nullopt;
  for (const MemberCounts& member : row.counts->members) {
    const proof::ClockDrift drift{.seconds = member.second_clock_s,
                                  .ahead = member.clock_s - member.second_clock_s};
    if (drift.isImpossible())
      return fmt::format("{:.6g} and {:.6g} s", member.clock_s, member.second_clock_s);
  }
  return std::nullopt;
}

Found streamsOfPairs(const Row& row) {
  const std::size_t streams = row.pairs.size() * row.threads * (row.bidirectional ? 2 : 1);
  for (const PairResult& pair : row.pairs)
    if (std::ranges::count_if(row.pairs,
                              [&](const PairResult& other) {
                                return other.initiator == pair.initiator &&
                                       other.target == pair.target;
                              }) > 1 &&
        row.counts->members.size() > 2)
      return fmt::format("ranks {} and {} are two pairs", pair.initiator, pair.target);
  return unless(row.pairs.empty() || streams == row.counts->streams,
                fmt::format("{} and {}", streams, row.counts->streams));
}

bool allProven(const Row& row) {
  return !row.path.empty() && std::ranges::all_of(row.path, [](const ProvenShare& share) {
    return share.proven == Proven::kYes;
  });
}

Found verdictFitsPath(const Row& row) {
  if (!isGood(row.verdict)) return std::nullopt;
  const bool ok = row.verdict == Verdict::kOk;
  return unless(ok == allProven(row),
                fmt::format("{}, and the path is {}", verdictName(row.verdict),
                            ok ? "not proven" : "proven"));
}

Found verdictHasReason(const Row& row) {
  const bool ok = row.verdict == Verdict::kOk;
  return unless(ok == row.why.empty(), fmt::format("{}, {} why", verdictName(row.verdict),
                                                   row.why.empty() ? "without" : "with"));
}

Found verdictFitsChecks(const Row& row) {
  const bool wrong = std::ranges::any_of(row.counts->members, [](const MemberCounts& member) {
    return member.wrong || member.missed != 0;
  });
  return unless(wrong == (row.verdict == Verdict::kCorrupt),
                fmt::format("{}, and {}", verdictName(row.verdict),
                            wrong ? "wrong bytes" : "no wrong bytes"));
}

// A row above a measured ceiling has no percentage, and a row above a link's rate is invalid.
Found belowCeiling(const Row& row) {
  constexpr double kMost = 105;
  if (!row.ceiling || !isGood(row.verdict)) return std::nullopt;
  return unless(row.ceiling->percent <= kMost, fmt::format("{:.4g} %", row.ceiling->percent));
}

Found backendIsOnPath(const Row& row) {
  if (row.path.empty() || !isGood(row.verdict)) return std::nullopt;
  return unless(
      std::ranges::any_of(row.path,
                          [&](const ProvenShare& share) { return share.backend == row.backend; }),
      row.backend);
}

Found copiedByPath(const Row& row) {
  const std::string expected = proof::copiedBy(row.path);
  return unless(row.copied_by == expected,
                fmt::format("\"{}\" and \"{}\"", row.copied_by, expected));
}

Found kernelsCopyOps(const Row& row) {
  for (const ProvenShare& share : row.path)
    if (share.by_kernel > share.ops) return fmt::format("{} of {}", share.by_kernel, share.ops);
  return std::nullopt;
}

// A shortened proof ends with " more" and may lack any text.
bool proofLacks(const Row& row, const std::string& text) {
  return row.proof.find(text) == std::string::npos && !row.proof.ends_with(" more");
}

Found proofIsCounted(const Row& row) {
  for (const CountedPayload& one : row.counts->payload) {
    const std::string text = proof::countedText(one);
    if (proofLacks(row, text)) return fmt::format("\"{}\" is missing", text);
    if (allProven(row) && !proof::isCarried(one)) return fmt::format("\"{}\" is no proof", text);
  }
  return std::nullopt;
}

Found deviceFitsProof(const CountedPayload& proof, const DeviceCounts& device) {
  if (device.host != proof.host || device.device != proof.devices) return std::nullopt;
  const auto bytes = static_cast<double>((proof.sent ? device.sent : device.received).value_or(0));
  const double others = proof.sent ? device.sent_by_others : device.received_by_others;
  return unless(bytes <= proof.counted && others <= proof.others,
                fmt::format("{:.0f} and {:.0f} bytes of {}", bytes, proof.counted, proof.devices));
}

// A proof may use only some of the counted devices.
Found countersFitProof(const Row& row) {
  for (const CountedPayload& one : row.counts->payload)
    for (const DeviceCounts& device : row.counts->devices)
      if (auto found = deviceFitsProof(one, device)) return found;
  return std::nullopt;
}

bool areOfOneHost(const std::vector<DeviceCounts>& devices) {
  return std::ranges::all_of(
      devices, [&](const DeviceCounts& device) { return device.host == devices.front().host; });
}

Found memoryIsSilent(const Row& row) {
  for (const ProvenShare& share : row.path) {
    const auto payload = static_cast<double>(share.bytes);
    if (share.proven != Proven::kYes || share.stage != 0 ||
        !proof::staysInHost(proof::realmOf(share.backend, share.way)))
      continue;
    // The proof only covers the hosts of the share's two ends.
    if (!areOfOneHost(row.counts->devices)) return std::nullopt;
    for (const DeviceCounts& device : row.counts->devices)
      if (device.sent && !proof::isQuiet(static_cast<double>(*device.sent), payload))
        return fmt::format("{} sent {}", device.device, *device.sent);
    const std::string text = "carried " + proof::amount(payload);
    if (proofLacks(row, text)) return fmt::format("\"{}\" is missing", text);
  }
  return std::nullopt;
}

bool isDistributionOf(std::uint64_t requests, const Distribution& values) {
  const auto read = Histogram::of(values);
  return read && read->fits() && read->count() == requests;
}

Found replayAddsUp(const Row& row) {
  const auto* const kv = row.as<KvWorkload>();
  if (kv == nullptr || !kv->replay) return std::nullopt;
  const KvReplayed& replay = *kv->replay;
  if (replay.hit_ids > replay.hash_ids || replay.hit_tokens > replay.tokens)
    return "more hits than ids or tokens";
  if (replay.requests != row.iterations)
    return fmt::format("{} and {}", replay.requests, row.iterations);
  for (const auto& values : {replay.ttft_ns, replay.of_ttft_millionths})
    if (values && !isDistributionOf(replay.requests, *values)) return "a distribution is wrong";
  if (replay.ttft_ns && row.counts->latency_ns) {
    const auto missed = static_cast<double>(replay.tokens - replay.hit_tokens);
    const double prefill = missed / replay.prefill_tokens_per_s.value_or(1) * 1e9;
    if (!areNear(row.counts->latency_ns->sum + prefill, replay.ttft_ns->sum, 1e-3))
      return "ttft is not the prefill and the latency";
  }
  const double mean = totalsOf(row).timed / static_cast<double>(replay.requests);
  return unless(row.interrupted || std::abs(static_cast<double>(row.block_size) - mean) <= 1,
                fmt::format("requests of {} and {:.0f} bytes", row.block_size, mean));
}

Found descriptors(const Row& row) {
  const auto* const kv = row.as<KvWorkload>();
  if (kv == nullptr || kv->replay) return std::nullopt;
  if (kv->trial >= kv->trials) return fmt::format("trial {} of {}", kv->trial, kv->trials);
  return unless(kv->runs <= kv->descriptors || kv->bulk,
                fmt::format("{} and {}", kv->descriptors, kv->runs));
}

Found operationAddsUp(const Row& row) {
  const auto* const operation = row.as<Operation>();
  if (operation == nullptr || row.counts->streams == 0) return std::nullopt;
  const double operations = static_cast<double>(row.iterations) / row.counts->streams;
  if (operation->busiest_bytes > operation->moved_bytes)
    return fmt::format("{} of {} bytes", operation->busiest_bytes, operation->moved_bytes);
  const double moved = operations * static_cast<double>(operation->moved_bytes);
  return row.scheme == "matrix" ? std::nullopt : sameBytes(moved, totalsOf(row).timed);
}

Found interruptedEarly(const Row& row) {
  if (!row.interrupted) return std::nullopt;
  return unless(
      row.iterations < row.interrupted->of_transfers || row.seconds < row.interrupted->of_seconds,
      "the row has its planned length");
}

constexpr std::array kRowChecks{
    RowCheck{"counts.repeats[]", "the parts have the bytes and seconds of their repeat",
             partsAddUp},
    RowCheck{
        "counts.repeats[].bytes",
        "the rate and the timed transfers have the same bytes (1 %), unless the row is invalid",
        ratedIsTimed},
    RowCheck{
        "path[].bytes",
        "the path and the counted transfers have the same bytes (1 %), unless the row is invalid",
        pathIsAll},
    RowCheck{"pairs[].repeats[]", "the pairs have the bytes of the repeats, and take no longer",
             pairsAddUp},
    RowCheck{"devices[].repeats[]", "the devices have the bytes of the repeats, and take no longer",
             devicesAddUp},
    RowCheck{"counts.members[].bytes", "transfers x block_size x batch_size, timed and in all",
             blocksAddUp},
    RowCheck{"counts.members[].timed", "no more than transfers; missed no more than checks",
             timedIsPart},
    RowCheck{"counts.latency_ns", "one value for each of iterations, as in post_ns and tx_ns",
             countsOfTimes},
    RowCheck{"counts.latency_ns",
             "min, max and sum fit the buckets, as in prep_ns, post_ns and tx_ns", endsOfTimes},
    RowCheck{
        "latency_us.mean",
        "closed loop: post_us.mean + tx_us.mean (2 %), or more if each transfer is planned anew",
        latencyIsPostAndTx},
    RowCheck{"pairs[].latency_us",
             "quantiles ascend and lie within latency_us; one stream each: the same mean (2 %), "
             "min and max together",
             latenciesOfPairs},
    RowCheck{"counts.members[].clock_s", "as second_clock_s, unless the row is invalid",
             clocksAgree},
    RowCheck{"counts.streams", "pairs x threads, twice if bidirectional; no pair is listed twice",
             streamsOfPairs},
    RowCheck{"verdict", "ok if all of path[] is proven, unproven if not", verdictFitsPath},
    RowCheck{"why", "there if, and only if, the verdict is not ok", verdictHasReason},
    RowCheck{"verdict", "corrupt if, and only if, a member found wrong bytes", verdictFitsChecks},
    RowCheck{"ceiling", "a valid row is not above it", belowCeiling},
    RowCheck{"backend", "part of path[]", backendIsOnPath},
    RowCheck{"copied_by", "follows from path[].by_kernel and ops", copiedByPath},
    RowCheck{"path[].by_kernel", "no more than ops", kernelsCopyOps},
    RowCheck{"proof", "has the bytes of counts.payload[], which are enough if the path is proven",
             proofIsCounted},
    RowCheck{"counts.devices[]", "no device counted more than counts.payload[] says",
             countersFitProof},
    RowCheck{"path[].proven", "memory: no device counted half of the bytes; `proof` has the bytes",
             memoryIsSilent},
    RowCheck{"replay",
             "requests are iterations, block_size is their mean; no more hits than ids and tokens; "
             "ttft_ns has the prefill and the latency",
             replayAddsUp},
    RowCheck{"kv", "trial is below trials; runs are no more than descriptors", descriptors},
    RowCheck{"operation.moved_bytes", "x iterations / streams are the timed bytes",
             operationAddsUp},
    RowCheck{"interrupted", "the planned length was not reached", interruptedEarly},
};

}  // namespace

std::span<const RowCheck> rowChecks() { return kRowChecks; }

bool areNear(double a, double b, double tolerance) {
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

}  // namespace viaduct::measure
