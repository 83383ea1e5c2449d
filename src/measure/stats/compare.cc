#include "measure/stats/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/sizes.h"
#include "measure/stats/differences.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kRunsAsFigures = 4;  // the fewest for which there is an interval

// What has to be equal for two rows to be of the same thing.
std::string keyOf(const Row& row, bool with_backend) {
  return fmt::format("{} {} {}, {} x {}, {} to {}, {} threads, depth {}{}{}{}",
                     with_backend ? row.backend : "", opKindName(row.op), row.scheme,
                     row.batch_size, base::formatSize(row.block_size), row.initiators, row.targets,
                     row.threads, row.pipeline_depth, row.bidirectional ? ", both ways" : "",
                     row.memory.empty() ? "" : ", ", row.memory) +
         (row.rate ? fmt::format(", {} a second", row.rate->asked_per_s) : "");
}

enum class Belong : std::uint8_t { kSame, kAnyBackend, kByPlace };

std::string keyOf(const Row& row, std::size_t place, Belong how) {
  if (how == Belong::kByPlace)
    return fmt::format("row {}, blocks of {}", place + 1, base::formatSize(row.block_size));
  return keyOf(row, how == Belong::kSame);
}

// The rows of one side that are of the same thing.
struct Group {
  std::vector<const Row*> rows;
  std::size_t order = 0;
};
using Groups = std::map<std::string, Group>;

Groups groupsOf(const std::vector<Report>& side, Belong how) {
  Groups out;
  for (const Report& report : side)
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
      const Row& row = report.rows[i];
      Group& group = out.try_emplace(keyOf(row, i, how), Group{{}, out.size()}).first->second;
      group.rows.push_back(&row);
    }
  return out;
}

std::vector<double> ratesOf(const Group& group, bool runs_as_figures) {
  std::vector<double> out;
  for (const Row* row : group.rows) {
    if (!runs_as_figures)
      out.insert(out.end(), row->gb_per_s_parts.begin(), row->gb_per_s_parts.end());
    if (row->gb_per_s && (runs_as_figures || row->gb_per_s_parts.empty()))
      out.push_back(*row->gb_per_s);
  }
  return out;
}

std::optional<double> middle(const Group& group, double Latency::* quantile) {
  std::vector<double> values;
  for (const Row* row : group.rows)
    if (row->latency_us) values.push_back((*row->latency_us).*quantile);
  return values.empty() ? std::nullopt : std::optional(median(values));
}

std::optional<double> latencyRatio(const Group& a, const Group& b, double Latency::* quantile) {
  const auto of_a = middle(a, quantile), of_b = middle(b, quantile);
  if (!of_a || !of_b || *of_a <= 0) return std::nullopt;
  return *of_b / *of_a;
}

std::string complaintAbout(const Group& group, const char* side) {
  for (const Row* row : group.rows)
    if (!isGood(row->verdict))
      return fmt::format("{} is {}: {}", side, verdictName(row->verdict), row->why);
  return {};
}

Difference differenceOf(const RatioEstimate& rate) {
  if (!rate.interval) return Difference::kUnknown;
  if (rate.interval->low > 1) return Difference::kFaster;
  return rate.interval->high < 1 ? Difference::kSlower : Difference::kNoneSeen;
}

void judgeSlowness(RowComparison& row, double allowed) {
  const double limit = 1 - allowed;
  if (!row.rate) return;
  const auto& interval = row.rate->interval;
  row.too_slow = interval && interval->high < limit;
  row.perhaps_slow = !row.too_slow && (interval ? interval->low : row.rate->ratio) < limit;
}

double medianRate(const Group& group) {
  std::vector<double> rates;
  for (const Row* row : group.rows)
    if (row->gb_per_s) rates.push_back(*row->gb_per_s);
  return median(std::move(rates));
}

RowComparison compareRow(const Group& a, const Group& b, bool runs_as_figures,
                         const CompareOptions& options) {
  RowComparison out{.a = *a.rows.front(), .b = *b.rows.front()};
  out.a_gb_per_s = medianRate(a);
  out.b_gb_per_s = medianRate(b);
  out.note = complaintAbout(a, "A");
  if (out.note.empty()) out.note = complaintAbout(b, "B");
  if (!out.note.empty()) {
    out.difference = Difference::kUnusable;
    return out;
  }
  out.rate = ratioOf(ratesOf(a, runs_as_figures), ratesOf(b, runs_as_figures));
  out.p50 = latencyRatio(a, b, &Latency::p50);
  out.p99 = latencyRatio(a, b, &Latency::p99);
  if (!out.rate) {
    out.difference = Difference::kUnusable;
    out.note = "no GB/s on one of the sides";
    return out;
  }
  out.difference = differenceOf(*out.rate);
  if (out.a.rate) out.note = "open loop: GB/s is what was asked for, look at the latency";
  if (options.slower) judgeSlowness(out, *options.slower);
  return out;
}

bool haveCommonRow(const Groups& a, const Groups& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one.first); });
}

}  // namespace

const char* differenceName(Difference difference) {
  switch (difference) {
    case Difference::kFaster:
      return "faster";
    case Difference::kSlower:
      return "slower";
    case Difference::kNoneSeen:
      return "no difference seen";
    case Difference::kUnknown:
      return "too few parts to tell";
    case Difference::kUnusable:
      return "not compared";
  }
  return "?";
}

bool isBroken(const RowComparison& row) { return isGood(row.a.verdict) && !isGood(row.b.verdict); }

bool Comparison::ok() const {
  return std::none_of(rows.begin(), rows.end(),
                      [](const RowComparison& row) { return row.too_slow || isBroken(row); });
}

Result<Comparison> compare(const std::vector<Report>& a, const std::vector<Report>& b,
                           const CompareOptions& options) {
  Comparison out{.runs_as_figures = std::min(a.size(), b.size()) >= kRunsAsFigures};
  VIADUCT_TRY(out.differing, differencesOf(a, b, options));
  Belong how = options.by_place ? Belong::kByPlace : Belong::kSame;
  Groups of_a = groupsOf(a, how), of_b = groupsOf(b, how);
  if (how == Belong::kSame && options.across_settings && !haveCommonRow(of_a, of_b)) {
    how = Belong::kAnyBackend;  // another backend is a setting as well
    of_a = groupsOf(a, how), of_b = groupsOf(b, how);
  }
  if (!haveCommonRow(of_a, of_b))
    return Error{
        .code = Code::kInvalid,
        .operation = "compare",
        .detail =
            "no row of A is of the same backend, op, scheme, block size and batch as one of B",
        .remedy = how == Belong::kSame
                      ? "with --across-settings rows of different backends are compared"
                      : ""};
  std::map<std::size_t, RowComparison> ordered;
  for (const auto& [key, group] : of_a) {
    const auto partner = of_b.find(key);
    if (partner == of_b.end())
      out.only_a.push_back(key);
    else
      ordered.emplace(group.order,
                      compareRow(group, partner->second, out.runs_as_figures, options));
  }
  for (const auto& [key, group] : of_b)
    if (!of_a.contains(key)) out.only_b.push_back(key);
  for (auto& [order, row] : ordered) out.rows.push_back(std::move(row));
  return out;
}

}  // namespace viaduct::measure
