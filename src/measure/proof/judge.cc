#include "measure/proof/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "measure/proof/account.h"
#include "measure/proof/ceilings.h"
#include "measure/proof/prove.h"
#include "measure/proof/scene.h"
#include "measure/workload/workload.h"

namespace viaduct::measure::proof {
namespace {

struct Sentence {
  Verdict verdict;
  std::string why;
};

// All inputs of a verdict.
struct Case {
  const RowFacts& facts;
  const Account& account;
  const Proof& proof;
  const Limits& limits;
  const std::vector<causes::Cause>& causes;
};

double percentOf(const Case& c) {
  return c.limits.binding ? percentOfCeiling(c.facts.gb_per_s, c.limits.binding->gb_per_s) : 0;
}

// The rate of copies is measured once, at the start; a shared host may copy faster later. A row
// above that rate gets no percentage, because the rate did not limit the row.
bool outranMeasured(const Case& c) {
  const auto& binding = c.limits.binding;
  return binding && isMeasured(binding->what) && c.facts.gb_per_s > binding->gb_per_s;
}

// True if a share's backend claims to meet a requirement. A staged transfer has to meet it between
// the members.
bool meets(const Share& share, std::string_view word) {
  constexpr std::uint32_t kBetween = 2;  // PathShare::stage
  if (word == "no-staging" || word == "gpu-direct") return share.told.stage == 0;
  if (word == "packed") return share.told.stage != 0;
  if (share.told.stage != 0 && share.told.stage != kBetween) return true;
  if (word == "rdma") return share.realm == Realm::kRdma;
  if (word == "not-tcp") return share.realm != Realm::kSockets;
  if (word == "same-host")
    return share.realm != Realm::kSockets && share.realm != Realm::kRdma &&
           share.realm != Realm::kUnknown;
  // Only the way of data sockets tells whether they encrypt. Other networks count as protected,
  // because the user has said so.
  if (word == "encrypted")
    return !share.told.way.starts_with("socket") ||
           share.told.way.find("+encrypted") != std::string::npos;
  if (word.starts_with("backend:")) word.remove_prefix(8);
  return share.told.backend == word;
}

// True if the counters show a detour that breaks the requirement.
bool belies(Detour detour, std::string_view word) {
  const bool tcp = detour == Detour::kTcp || detour == Detour::kLoopback;
  return (word == "rdma" && (tcp || detour == Detour::kMemory)) || (word == "not-tcp" && tcp);
}

std::optional<Sentence> unprovenPath(const Case& c) {
  for (const ProvenShare& share : c.proof.path)
    if (share.proven != Proven::kYes) return Sentence{Verdict::kUnproven, c.proof.text};
  if (c.proof.path.empty()) return Sentence{Verdict::kUnproven, "no transfer reported its path"};
  return std::nullopt;
}

// Returns why the row's path does not meet the requirement `word`, or nothing if it does.
std::optional<std::string> unmet(std::string_view word, const Case& c) {
  if (word == kProvenPath) {
    const auto why = unprovenPath(c);
    return why ? std::optional(why->why) : std::nullopt;
  }
  for (const Share& share : c.account.shares())
    if (!meets(share, word))
      return fmt::format("the path was {}/{}", share.told.backend, share.told.way);
  if (belies(c.proof.detour, word)) return c.proof.where;
  return std::nullopt;
}

std::optional<Sentence> failed(const Case& c) {
  if (!c.facts.failure) return std::nullopt;
  const Error& error = *c.facts.failure;
  const bool refused = error.code == Code::kUnsupported && error.operation == "route";
  if (refused && !c.facts.require.empty())
    return Sentence{
        Verdict::kNotRequired,
        fmt::format("{} was required, but no path provides it: {}", c.facts.require, error.text())};
  return Sentence{Verdict::kFailed, error.text()};
}

std::optional<Sentence> corrupt(const Case& c) {
  if (!c.facts.mismatch) return std::nullopt;
  return Sentence{Verdict::kCorrupt, *c.facts.mismatch};
}

std::optional<Sentence> invalid(const Case& c) {
  const auto& binding = c.limits.binding;
  if (!binding || c.facts.gb_per_s <= binding->gb_per_s * (1 + toleranceOf(binding->what)))
    return std::nullopt;
  std::string cause = c.proof.where;
  if (cause.empty() && binding->what == Binding::kMemory)
    cause = "the working set fits in a cache, or not all bytes were moved";
  if (cause.empty() && binding->what == Binding::kLoopback)
    cause = "not all bytes were moved, or memory was busy when its rate was measured";
  if (cause.empty() && binding->what == Binding::kGpu)
    cause = "not all bytes were moved, or the GPU was busy when its rate was measured";
  if (cause.empty())
    cause = "the given or reported link rate is wrong, or bytes were counted twice";
  return Sentence{
      Verdict::kInvalid,
      fmt::format("{:.4g} GB/s is {:.0f} % of its ceiling ({}: {:.4g} GB/s); likely cause: {}",
                  c.facts.gb_per_s, percentOf(c), binding->name, binding->gb_per_s, cause)};
}

std::optional<Sentence> miscounted(const Case& c) {
  const Totals& t = c.facts.totals;
  const auto told = static_cast<double>(c.account.payload());
  if (t.seconds <= 0 || (!bytesDiffer(t.rated, t.timed) && !bytesDiffer(t.all, told)))
    return std::nullopt;
  return Sentence{Verdict::kInvalid,
                  fmt::format("the totals disagree: the rate counts {}, the clock timed {}, and "
                              "the paths count {} of {}",
                              amount(t.rated), amount(t.timed), amount(told), amount(t.all))};
}

std::optional<Sentence> wrongClock(const Case& c) {
  const ClockDrift& clock = c.facts.clock;
  if (clock.isImpossible())
    return Sentence{
        Verdict::kInvalid,
        fmt::format("the clock of rank {} {} {:.3f} s {} the kernel's raw clock in {:.3f} s",
                    c.facts.clock_rank, clock.jumped() ? "jumped" : "ran", std::abs(clock.ahead),
                    clock.ahead > 0 ? "ahead of" : "behind", clock.seconds)};
  if (const TickedClock& ticks = c.facts.ticks; ticks.isImpossible())
    return Sentence{Verdict::kInvalid,
                    fmt::format("the clocks of rank {} counted {:.3f} s while the kernel counted "
                                "{:.3f} s of each processor",
                                ticks.rank, ticks.seconds, ticks.ticked)};
  // Members read their clocks one after the other, which matters in a short row.
  constexpr double kTolerance = 1.25, kLongEnough = 0.1;
  if (c.facts.cores <= 0 || c.facts.totals.seconds < kLongEnough ||
      c.facts.cores_busy <= kTolerance * c.facts.cores)
    return std::nullopt;
  return Sentence{Verdict::kInvalid,
                  fmt::format("{:.1f} of {:.0f} cores busy is impossible: a clock is wrong",
                              c.facts.cores_busy, c.facts.cores)};
}

std::optional<Sentence> notRequired(const Case& c) {
  for (const std::string_view word : requirementWords(c.facts.require)) {
    if (word.empty()) continue;
    if (const auto why = unmet(word, c))
      return Sentence{Verdict::kNotRequired, fmt::format("{} was required, but {}", word, *why)};
  }
  return std::nullopt;
}

std::optional<Sentence> fallback(const Case& c) {
  if (c.proof.detour == Detour::kNone) return std::nullopt;
  return Sentence{Verdict::kFallback, c.proof.where};
}

std::optional<Sentence> silentRail(const Case& c) {
  if (c.proof.silent.empty()) return std::nullopt;
  std::string names;
  for (const SilentRail& rail : c.proof.silent)
    names += fmt::format("{}{} of {}", names.empty() ? "" : ", ", rail.device, rail.host);
  return Sentence{
      Verdict::kSilentRail,
      fmt::format("{} carried nothing, although transfers of {} are large enough for all rails",
                  names, amount(static_cast<double>(c.facts.transfer_bytes)))};
}

Sentence verdictOf(const Case& c) {
  // The order matters: reasons that make a figure worthless come before reasons that change its
  // meaning.
  for (const auto rule : {failed, corrupt, wrongClock, miscounted, invalid, notRequired, fallback,
                          silentRail, unprovenPath})
    if (auto found = rule(c)) return *std::move(found);
  return {Verdict::kOk, ""};
}

// A row that reached this part of the requested rate has kept the rate, because Poisson arrivals of
// a short row vary.
constexpr double kRateKept = 0.9;
// A row that reached this part of its ceiling is at the ceiling.
constexpr double kAtCeiling = 0.9;

// True if the row could be faster. False if it failed, is at its ceiling, or has the requested
// rate.
bool isSlow(const RowFacts& facts, const Limits& limits) {
  if (facts.failure || facts.gb_per_s <= 0 || facts.rate_kept >= kRateKept) return false;
  return !limits.binding || facts.gb_per_s < kAtCeiling * limits.binding->gb_per_s ||
         (isMeasured(limits.binding->what) && facts.gb_per_s > limits.binding->gb_per_s);
}

std::string lookAt(const Case& c) {
  const bool outran = outranMeasured(c);
  const auto& streams = c.account.streams();
  if (c.limits.binding && c.limits.binding->what == Binding::kMemory &&
      std::any_of(streams.begin(), streams.end(), [](const auto& s) { return s.stored; }))
    return "the page cache carried the bytes: to measure the device, use " +
           joined(
               {{"--storage-enable-direct on a file system with O_DIRECT", "storage_enable_direct"},
                {"more bytes than the memory of the host"}},
               c.facts.flags);
  if (!outran && percentOf(c) >= kAtCeiling * 100) return "at the ceiling: nothing left to gain";
  if (c.facts.rate_kept >= kRateKept) return "the requested rate was kept: look at the latencies";
  if (!c.causes.empty()) return causes::textOf(c.causes);
  if (outran) return "measure again on an idle host to find the ceiling";
  const bool small = c.facts.transfer_bytes != 0 && c.facts.transfer_bytes < (1U << 20U);
  if (small) return "limited by per-transfer overhead: try larger batches or blocks";
  if (c.limits.binding && c.limits.binding->what == Binding::kLoopback)
    return "limited by the CPU cost of the kernel's TCP: try the local backend";
  if (c.limits.binding && c.limits.binding->what == Binding::kMemory)
    return "below the memory ceiling: try " + joined({{"more --num-threads", "num_threads"},
                                                      {"--use-hugepages", "use_hugepages"},
                                                      {"pinning to one NUMA node"}},
                                                     c.facts.flags);
  const Hint deeper{"a larger --pipeline-depth", "pipeline_depth"};
  if (c.limits.binding && c.limits.binding->what == Binding::kGpu)
    return "below the GPU's ceiling: try " +
           joined({{"larger blocks or batches"}, deeper}, c.facts.flags);
  return "below the link ceiling: try " +
         joined({deeper, {"more VIADUCT_SOCKETS or rails"}, {"an idle CPU"}}, c.facts.flags);
}

// Reports the mean rate if it differs from the row's rate. One stream's rate is a median of parts,
// which hides pauses and bursts.
std::string remarkOf(const RowFacts& facts) {
  constexpr double kDiffer = 0.05;
  const Totals& t = facts.totals;
  if (t.seconds <= 0 || t.rated <= 0) return {};
  const double mean = t.rated / t.seconds * 1e-9, median = facts.gb_per_s;
  if (std::abs(median - mean) <= kDiffer * mean) return {};
  std::string out = fmt::format("uneven: mean {:.3g} GB/s, median {:.3g} GB/s", mean, median);
  if (!facts.parts.empty()) {
    const auto [least, most] = std::ranges::minmax(facts.parts);
    out += fmt::format(" of {} parts ({:.3g} to {:.3g})", facts.parts.size(), least, most);
  }
  if (median > mean)
    out += fmt::format(", as if idle for {:.0f} % of the time", (1 - mean / median) * 100);
  return out;
}

std::string conclusionOf(const Case& c, const Sentence& sentence) {
  if (sentence.verdict == Verdict::kFailed || c.facts.gb_per_s <= 0) return {};
  std::string out = fmt::format("{:.4g} GB/s", c.facts.gb_per_s);
  if (!c.limits.binding) {
    out += fmt::format(", with no known ceiling{}{}", c.limits.unknown.empty() ? "" : ": ",
                       c.limits.unknown);
    return c.causes.empty() ? out : out + "; " + causes::textOf(c.causes);
  }
  const Limit& binding = *c.limits.binding;
  const std::string ceiling = fmt::format("{}: {:.4g} GB/s", binding.name, binding.gb_per_s);
  if (outranMeasured(c))
    out += fmt::format(", above the {} rate measured at the start ({})",
                       binding.what == Binding::kGpu ? "copy" : "memory", ceiling);
  else
    out += fmt::format(", {:.0f} % of its ceiling ({})", percentOf(c), ceiling);
  if (!c.limits.unknown.empty()) out += fmt::format(", although {}", c.limits.unknown);
  if (c.facts.cores_busy > 0) out += fmt::format(", {:.1f} cores busy", c.facts.cores_busy);
  if (!isGood(sentence.verdict)) return out + fmt::format("; {}", verdictName(sentence.verdict));
  return out + "; " + lookAt(c);
}

}  // namespace

// Tolerates that the kernel counts in steps of 10 ms, and that clock and ticks are not read at the
// same moment.
bool TickedClock::isImpossible() const {
  constexpr double kTolerance = 1.5, kLeast = 0.05;
  return ticked > kTolerance * seconds + kLeast;
}

Judgement judge(std::span<const Observation> seen, const RowFacts& facts,
                std::span<const LinkRate> link_rates) {
  const Account account(seen);
  Proof proof = prove(account, facts.transfer_bytes);
  const std::uint64_t set = facts.working_set != 0 ? facts.working_set : facts.transfer_bytes;
  const Limits limits = limitsOf(account, set, link_rates);
  const std::vector<causes::Cause> found = isSlow(facts, limits)
                                               ? causes::causesOf(sceneOf(account, facts, limits))
                                               : std::vector<causes::Cause>{};
  const Case all{facts, account, proof, limits, found};
  Sentence sentence = verdictOf(all);
  Judgement out{.verdict = sentence.verdict, .conclusion = conclusionOf(all, sentence)};
  if (limits.binding && (sentence.verdict == Verdict::kInvalid || !outranMeasured(all)))
    out.ceiling = Ceiling{limits.binding->name, limits.binding->gb_per_s, percentOf(all)};
  out.ceiling_unknown = limits.unknown;
  out.why = std::move(sentence.why);
  out.remark = remarkOf(facts);
  out.causes = found;
  out.path = std::move(proof.path);
  out.devices = account.devices();
  out.counted = std::move(proof.counted);
  out.proof = std::move(proof.text);
  return out;
}

}  // namespace viaduct::measure::proof
