#include "measure/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "base/sizes.h"
#include "measure/report/compare_differences.h"
#include "measure/report/compare_sample.h"
#include "measure/result/best_rate.h"
#include "measure/run/turns.h"

namespace viaduct::measure {
namespace {

enum class Belong : std::uint8_t { kSame, kAnyBackend, kByPlace };

// Gives each row of one run a key, by which rows of two runs are matched. All trials of a KV row
// have the same key.
class Keys {
 public:
  explicit Keys(Belong how) : how_(how) {}

  // Returns the key of the run's next row.
  std::string of(const Row& row) {
    std::string identity = identityOf(row, how_ != Belong::kAnyBackend);
    if (how_ != Belong::kByPlace) return identity;
    std::size_t place = ++rows_;
    if (row.as<KvWorkload>() != nullptr)
      place = places_.try_emplace(std::move(identity), place).first->second;
    return fmt::format("row {}, blocks of {}", place, base::showSize(row.block_size));
  }

 private:
  const Belong how_;
  std::size_t rows_ = 0;                       // rows named so far
  std::map<std::string, std::size_t> places_;  // number of the first trial, by identity
};

// The rows of one side that have the same key, by run.
struct Matched {
  Sample sample;
  std::size_t order = 0;
};
using MatchedRows = std::map<std::string, Matched>;

MatchedRows matchedRows(const std::vector<Report>& side, Belong how) {
  MatchedRows out;
  for (const Report& report : side) {
    std::map<std::string, std::vector<const Row*>> of_run;
    Keys keys(how);
    for (const Row& row : report.rows) {
      const std::string key = keys.of(row);
      out.try_emplace(key, Matched{{}, out.size()});
      of_run[key].push_back(&row);
    }
    for (auto& [key, rows] : of_run) out.at(key).sample.add(std::move(rows));
  }
  return out;
}

template <class Quantile>
std::optional<double> latencyRatio(const Sample& a, const Sample& b, Quantile which) {
  const auto of_a = a.middle(latency(which)), of_b = b.middle(latency(which));
  if (!of_a || !of_b || *of_a <= 0) return std::nullopt;
  return *of_b / *of_a;
}

Difference differenceOf(const RatioEstimate& rate, double least) {
  if (!rate.interval) return Difference::kTooFewRuns;
  if (rate.interval->low > 1 + least) return Difference::kFaster;
  return rate.interval->high < 1 - least ? Difference::kSlower : Difference::kNoneSeen;
}

void judgeSlowness(RowComparison& row, double allowed) {
  if (!row.rate || !row.rate->interval) return;
  const double limit = 1 - allowed;
  row.too_slow = row.rate->interval->high < limit;
  row.perhaps_slow = !row.too_slow && row.rate->interval->low < limit;
}

// Returns the ratio, with its interval if the runs give one.
std::optional<RatioEstimate> rateRatio(const std::vector<double>& a, const std::vector<double>& b,
                                       bool in_turns) {
  auto out = ratioOf(a, b);
  if (out && (!in_turns || std::min(a.size(), b.size()) < kFewestRuns)) out->interval.reset();
  return out;
}

std::size_t runsNeeded(const std::vector<double>& a, const std::vector<double>& b,
                       const CompareOptions& options) {
  constexpr double kMost = 10'000;
  const double distance = options.seenEffect() - options.least_effect;
  if (distance <= 0) return kFewestRuns;
  const double runs = std::ceil(figuresNeeded(a, b, distance));
  return std::max(kFewestRuns, static_cast<std::size_t>(std::min(runs, kMost)));
}

RowComparison compareRow(const Sample& a, const Sample& b, bool in_turns,
                         const CompareOptions& options) {
  RowComparison out{.a = *a.runs().front().front(), .b = *b.runs().front().front()};
  const std::vector<double> rates_a = a.each(&Row::gb_per_s), rates_b = b.each(&Row::gb_per_s);
  out.a_gb_per_s = median(rates_a);
  out.b_gb_per_s = median(rates_b);
  out.note = a.complaint("A");
  if (out.note.empty()) out.note = b.complaint("B");
  if (!out.note.empty()) {
    out.difference = Difference::kUnusable;
    return out;
  }
  out.rate = rateRatio(rates_a, rates_b, in_turns);
  out.p50 = latencyRatio(a, b, &Latency::p50);
  out.p99 = latencyRatio(a, b, &Latency::p99);
  if (!out.rate) {
    out.difference = Difference::kUnusable;
    out.note = "one side has no GB/s";
    return out;
  }
  out.difference =
      in_turns ? differenceOf(*out.rate, options.least_effect) : Difference::kNotInTurns;
  if (out.difference == Difference::kNoneSeen)
    out.runs_needed = runsNeeded(rates_a, rates_b, options);
  if (out.a.rate) out.note = "open loop: GB/s is the requested rate; compare the latency";
  if (options.slower) judgeSlowness(out, *options.slower);
  return out;
}

SampleEvidence evidenceOf(const Comparison& comparison, bool in_turns) {
  const auto has_few = [](const RowComparison& row) {
    return row.difference == Difference::kTooFewRuns;
  };
  if (std::min(comparison.runs_a, comparison.runs_b) < kFewestRuns)
    return SampleEvidence::kTooFewRuns;
  if (!in_turns) return SampleEvidence::kNotInTurns;
  return std::any_of(comparison.rows.begin(), comparison.rows.end(), has_few)
             ? SampleEvidence::kTooFewRuns
             : SampleEvidence::kEnough;
}

// Two runs never have equal counts, because counts include nanoseconds and bytes of many parts.
bool isSameRow(const Row& a, const Row& b) {
  return (!a.run.empty() && a.run == b.run) || (a.counts && a.counts == b.counts);
}

// True if the files are copies of one run, even if the start time of one was edited.
bool isSameRun(const Report& a, const Report& b) {
  if (a == b) return !a.rows.empty();
  return std::ranges::any_of(a.rows, [&](const Row& one) {
    return std::ranges::any_of(b.rows, [&](const Row& other) { return isSameRow(one, other); });
  });
}

std::vector<Report> withoutCopies(const std::vector<Report>& side, const char* name,
                                  std::vector<std::string>& copies) {
  std::vector<Report> out;
  std::vector<std::size_t> times;  // number of files of each run
  for (const Report& report : side) {
    const auto known =
        std::ranges::find_if(out, [&](const Report& one) { return isSameRun(one, report); });
    const auto number = static_cast<std::size_t>(known - out.begin());
    if (known == out.end()) {
      out.push_back(report);
      times.push_back(0);
    }
    ++times[number];
  }
  for (std::size_t i = 0; i < out.size(); ++i)
    if (times[i] > 1)
      copies.push_back(fmt::format("{}: {} files are one run (started {})", name, times[i],
                                   out[i].started.empty() ? "unknown" : out[i].started));
  return out;
}

Error noCommonRow(Belong how) {
  Error out{.code = Code::kInvalid, .operation = "compare"};
  if (how == Belong::kByPlace) {
    out.detail = "the transfers of A and B have other sizes";
    out.cause = "a source of A is larger or smaller than that of B";
    out.remedy = "give both sides sources of one size, or --total-buffer-size";
    return out;
  }
  out.detail = "A and B have no row with the same backend, op, scheme, block size and batch";
  if (how == Belong::kSame) out.remedy = "--across-settings compares rows of different backends";
  return out;
}

bool haveCommonRow(const MatchedRows& a, const MatchedRows& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one.first); });
}

}  // namespace

bool isBroken(const RowComparison& row) { return isGood(row.a.verdict) && !isGood(row.b.verdict); }

std::size_t Comparison::runsNeeded() const {
  std::size_t most = kFewestRuns;
  for (const RowComparison& row : rows) most = std::max(most, row.runs_needed);
  return most;
}

bool Comparison::isWorse() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const RowComparison& row) { return row.too_slow || isBroken(row); });
}

namespace {

Result<Comparison> compareRuns(const std::vector<Report>& a, const std::vector<Report>& b,
                               const CompareOptions& options) {
  Comparison out{.runs_a = a.size(), .runs_b = b.size()};
  VIADUCT_TRY(out.differing, differencesOf(a, b, options));
  Belong how = options.by_place ? Belong::kByPlace : Belong::kSame;
  MatchedRows of_a = matchedRows(a, how), of_b = matchedRows(b, how);
  if (how == Belong::kSame && options.across_settings && !haveCommonRow(of_a, of_b)) {
    how = Belong::kAnyBackend;  // the backend counts as a setting that may differ
    of_a = matchedRows(a, how), of_b = matchedRows(b, how);
  }
  if (!haveCommonRow(of_a, of_b)) return noCommonRow(how);
  // With too few runs there is no answer anyway, so their order is not checked.
  const bool few = std::min(a.size(), b.size()) < kFewestRuns;
  const bool in_turns = few || options.across_time || tookTurns(a, b);
  std::map<std::size_t, RowComparison> ordered;
  for (const auto& [key, group] : of_a) {
    const auto partner = of_b.find(key);
    if (partner == of_b.end())
      out.only_a.push_back(key);
    else
      ordered.emplace(group.order,
                      compareRow(group.sample, partner->second.sample, in_turns, options));
  }
  for (const auto& [key, group] : of_b)
    if (!of_a.contains(key)) out.only_b.push_back(key);
  for (auto& [order, row] : ordered) out.rows.push_back(std::move(row));
  out.evidence = evidenceOf(out, in_turns);
  return out;
}

}  // namespace

Result<Comparison> compare(const std::vector<Report>& a, const std::vector<Report>& b,
                           const CompareOptions& options) {
  // by_place: the runs come from one command and not from files, so there are no copies to find.
  // Failed runs may be equal to one another.
  if (options.by_place) return compareRuns(a, b, options);
  std::vector<std::string> copies;
  const auto runs_a = withoutCopies(a, "A", copies), runs_b = withoutCopies(b, "B", copies);
  auto out = compareRuns(runs_a, runs_b, options);
  if (out) out->copies = std::move(copies);
  return out;
}

}  // namespace viaduct::measure
