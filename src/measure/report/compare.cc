#include "measure/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// Names the rows of one run. The trials of a KV row have one key.
class Keys {
 public:
  explicit Keys(Belong how) : how_(how) {}

  // The next row's key.
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
  std::size_t rows_ = 0;                       // so far
  std::map<std::string, std::size_t> places_;  // of first trials
};

// The comparable rows of one side, by run.
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

// Refuses equal reports, because the same file under two names is only one run.
Status noRunTwice(const std::vector<Report>& side, const char* name) {
  for (auto at = side.begin(); at != side.end(); ++at)
    if (!at->rows.empty() && std::find(at + 1, side.end(), *at) != side.end())
      return Error{.code = Code::kInvalid,
                   .operation = "compare",
                   .detail = fmt::format("{} contains the same run twice (started {})", name,
                                         at->started.empty() ? "unknown" : at->started),
                   .remedy = "name each result file once"};
  return Ok{};
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

bool Comparison::isWorse() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const RowComparison& row) { return row.too_slow || isBroken(row); });
}

Result<Comparison> compare(const std::vector<Report>& a, const std::vector<Report>& b,
                           const CompareOptions& options) {
  Comparison out{.runs_a = a.size(), .runs_b = b.size()};
  // Reports of one command are no files, and its runs may have failed in the same way.
  if (!options.by_place) {
    VIADUCT_CHECK(noRunTwice(a, "A"));
    VIADUCT_CHECK(noRunTwice(b, "B"));
  }
  VIADUCT_TRY(out.differing, differencesOf(a, b, options));
  Belong how = options.by_place ? Belong::kByPlace : Belong::kSame;
  MatchedRows of_a = matchedRows(a, how), of_b = matchedRows(b, how);
  if (how == Belong::kSame && options.across_settings && !haveCommonRow(of_a, of_b)) {
    how = Belong::kAnyBackend;  // another backend is a setting as well
    of_a = matchedRows(a, how), of_b = matchedRows(b, how);
  }
  if (!haveCommonRow(of_a, of_b)) return noCommonRow(how);
  // With fewer runs there is no answer anyway.
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

}  // namespace viaduct::measure
