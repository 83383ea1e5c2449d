#include "measure/suite/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/sizes.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure {
namespace {

// Up to here a transfer on today's networks costs the same whatever it carries.
constexpr std::uint64_t kLatencyBound = 4096;

// Latencies are counted in buckets: what is closer together is the same.
constexpr double kLatencyResolution = 0.004;

using Rows = std::vector<const Row*>;

// The rows of one test and size, a round each.
Rows rowsOf(const Suite& suite, std::size_t test, std::uint64_t size) {
  Rows out;
  for (const SuiteRun& run : suite.runs) {
    if (run.test != test) continue;
    const auto at = std::find_if(run.rows.begin(), run.rows.end(),
                                 [&](const Row& row) { return sizeOf(row) == size; });
    if (at != run.rows.end()) out.push_back(&*at);
  }
  return out;
}

template <class Figure>
std::vector<double> valuesOf(const Rows& rows, Figure figure) {
  std::vector<double> out;
  for (const Row* row : rows)
    if (const std::optional<double> value = figure(*row)) out.push_back(*value);
  return out;
}

std::optional<double> rateOf(const Row& row) { return row.gb_per_s; }
std::optional<double> p50Of(const Row& row) {
  return row.latency_us ? std::optional(row.latency_us->p50) : std::nullopt;
}
std::optional<double> p95Of(const Row& row) {
  return row.latency_us ? row.latency_us->p95 : std::nullopt;
}
std::optional<double> p99Of(const Row& row) {
  return row.latency_us ? std::optional(row.latency_us->p99) : std::nullopt;
}
std::optional<double> coresOf(const Row& row) { return row.cores_busy; }
std::optional<double> completionsOf(const Row& row) { return row.completions_per_s; }

// A share is a rail's. Its device is what was seen to carry it: two rails may have the same.
std::size_t railsOf(const Row& row) {
  return static_cast<std::size_t>(std::count_if(
      row.path.begin(), row.path.end(), [](const ProvenShare& share) { return share.bytes != 0; }));
}

std::string railsOf(const Rows& rows) {
  if (rows.empty()) return {};
  std::size_t least = railsOf(*rows.front()), most = least;
  for (const Row* row : rows) {
    least = std::min(least, railsOf(*row));
    most = std::max(most, railsOf(*row));
  }
  return least == most ? fmt::format("{}", least) : fmt::format("{}-{}", least, most);
}

SuiteFigures figuresOf(const Rows& rows) {
  const auto middle = [&](auto figure) {
    const std::vector<double> values = valuesOf(rows, figure);
    return values.empty() ? std::nullopt : std::optional(median(values));
  };
  return {.gb_per_s = middle(rateOf),
          .p50_us = middle(p50Of),
          .p95_us = middle(p95Of),
          .p99_us = middle(p99Of),
          .cores_busy = middle(coresOf),
          .completions_per_s = middle(completionsOf),
          .rails = railsOf(rows)};
}

std::optional<Improvement> rateImprovement(const Rows& base, const Rows& own) {
  const auto ratio = ratioOf(valuesOf(base, rateOf), valuesOf(own, rateOf));
  if (!ratio) return std::nullopt;
  Improvement out{.value = ratio->ratio - 1};
  if (ratio->interval) out.interval = Interval{ratio->interval->low - 1, ratio->interval->high - 1};
  return out;
}

// The lower, the better.
std::optional<Improvement> latencyImprovement(const Rows& base, const Rows& own) {
  const auto ratio = ratioOf(valuesOf(base, p50Of), valuesOf(own, p50Of));
  if (!ratio) return std::nullopt;
  Improvement out{.value = 1 - ratio->ratio};
  if (ratio->interval) out.interval = Interval{1 - ratio->interval->high, 1 - ratio->interval->low};
  return out;
}

std::string complaintAbout(const Rows& rows, const std::string& test) {
  for (const Row* row : rows)
    if (!isGood(row->verdict))
      return fmt::format("a row of {} is {}: {}", test, verdictName(row->verdict), row->why);
  return {};
}

Answer answerOf(const SuiteCell& cell, double least_effect) {
  const std::optional<Improvement>& judged = cell.judged();
  if (!judged || !judged->interval) return Answer::kTooFew;
  const bool by_latency = judgedBy(cell.size) == JudgedBy::kLatency;
  const double least = std::max(least_effect, by_latency ? kLatencyResolution : 0);
  if (judged->interval->low > least) return Answer::kHelps;
  return judged->interval->high < -least ? Answer::kHurts : Answer::kNoneSeen;
}

// Why nothing can have come of the test; empty: something can.
std::string idleness(const SuiteTest& test, const Rows& base, const Rows& own) {
  if (test.shows != "rails" || base.empty() || own.empty()) return {};
  const std::string rails = railsOf(own);
  return rails == railsOf(base) ? fmt::format("rails: {}, as in the baseline", rails) : "";
}

SuiteCell cellOf(const Suite& suite, std::size_t test, std::uint64_t size) {
  const Rows own = rowsOf(suite, test, size);
  SuiteCell out{.size = size, .figures = figuresOf(own)};
  out.note = complaintAbout(own, suite.tests[test].name);
  if (test != 0) {
    const Rows base = rowsOf(suite, 0, size);
    if (out.note.empty()) out.note = complaintAbout(base, suite.tests[0].name);
    if (out.note.empty()) {
      out.rate = rateImprovement(base, own);
      out.latency = latencyImprovement(base, own);
      out.note = idleness(suite.tests[test], base, own);
      out.answer = out.note.empty() ? answerOf(out, suite.least_effect) : Answer::kIdle;
      return out;
    }
  }
  out.answer = out.note.empty() ? Answer::kNoneSeen : Answer::kUnusable;
  return out;
}

// "helps at 3 of 5 sizes (64 B, 128 B, 256 B)"
std::string countText(const std::vector<SuiteCell>& cells, Answer answer) {
  std::string sizes;
  std::size_t count = 0;
  for (const SuiteCell& cell : cells)
    if (cell.answer == answer) {
      sizes += (count++ == 0 ? "" : ", ") + base::formatSize(cell.size);
    }
  if (count == 0) return {};
  return fmt::format("{} at {} of {} size{} ({})", answerName(answer), count, cells.size(),
                     cells.size() == 1 ? "" : "s", sizes);
}

std::string textOf(const std::vector<SuiteCell>& cells) {
  std::string out;
  for (const Answer answer : {Answer::kHelps, Answer::kHurts, Answer::kNoneSeen, Answer::kTooFew,
                              Answer::kIdle, Answer::kUnusable})
    if (const std::string part = countText(cells, answer); !part.empty())
      out += (out.empty() ? "" : "; ") + part;
  return out;
}

}  // namespace

const char* answerName(Answer answer) {
  switch (answer) {
    case Answer::kHelps:
      return "helps";
    case Answer::kHurts:
      return "hurts";
    case Answer::kNoneSeen:
      return "no difference seen";
    case Answer::kTooFew:
      return "too few rounds to tell";
    case Answer::kIdle:
      return "does nothing here";
    case Answer::kUnusable:
      return "cannot be used";
  }
  return "?";
}

JudgedBy judgedBy(std::uint64_t size) {
  return size <= kLatencyBound ? JudgedBy::kLatency : JudgedBy::kRate;
}

const char* judgedByName(JudgedBy by) { return by == JudgedBy::kLatency ? "p50" : "GB/s"; }

std::vector<SuiteAnswers> answersOf(const Suite& suite) {
  std::vector<SuiteAnswers> out;
  for (std::size_t test = 0; test < suite.tests.size(); ++test) {
    SuiteAnswers& one = out.emplace_back();
    one.test = test;
    one.text = suite.tests[test].absent;
    if (!one.text.empty()) continue;
    for (const std::uint64_t size : suite.tests[test].sizes)
      one.cells.push_back(cellOf(suite, test, size));
    if (test != 0) one.text = textOf(one.cells);
  }
  return out;
}

bool allGood(const Suite& suite) {
  return std::all_of(suite.runs.begin(), suite.runs.end(), [](const SuiteRun& run) {
    return std::all_of(run.rows.begin(), run.rows.end(),
                       [](const Row& row) { return isGood(row.verdict); });
  });
}

}  // namespace viaduct::measure
