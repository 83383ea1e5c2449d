#include "measure/report/suite_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/sizes.h"
#include "measure/report/compare_sample.h"

namespace viaduct::measure {
namespace {

// Up to this size, the time of a transfer on present networks does not depend on the size.
constexpr std::uint64_t kLatencyBound = 4096;

// A quantile may be wrong by up to this part (histogram.h), so closer latencies count as equal.
constexpr double kLatencyResolution = 0.004;

// Returns the rows of one test and size, in the order of their rounds.
Sample rowsOf(const Suite& suite, std::size_t test, std::uint64_t size) {
  Sample out;
  for (const SuiteRun& run : suite.runs) {
    if (run.test != test) continue;
    const auto at = std::find_if(run.rows.begin(), run.rows.end(),
                                 [&](const Row& row) { return sizeOf(row) == size; });
    if (at != run.rows.end()) out.add({&*at});
  }
  return out;
}

// Counts shares, because each share is a rail. Two rails may have the same proven device.
std::size_t railsOf(const Row& row) {
  return static_cast<std::size_t>(std::count_if(
      row.path.begin(), row.path.end(), [](const ProvenShare& share) { return share.bytes != 0; }));
}

std::string railsOf(const Sample& sample) {
  std::set<std::size_t> counts;
  for (const Sample::Rows& rows : sample.runs())
    for (const Row* row : rows) counts.insert(railsOf(*row));
  if (counts.empty()) return {};
  const std::size_t least = *counts.begin(), most = *counts.rbegin();
  return least == most ? fmt::format("{}", least) : fmt::format("{}-{}", least, most);
}

SuiteFigures figuresOf(const Sample& rows) {
  return {.gb_per_s = rows.middle(&Row::gb_per_s),
          .p50_us = rows.middle(latency(&Latency::p50)),
          .p95_us = rows.middle(latency(&Latency::p95)),
          .p99_us = rows.middle(latency(&Latency::p99)),
          .cores_busy = rows.middle(&Row::cores_busy),
          .completions_per_s = rows.middle(&Row::completions_per_s),
          .rails = railsOf(rows)};
}

enum class Better : std::uint8_t { kHigher, kLower };
std::optional<Improvement> improvementOf(const std::optional<RatioEstimate>& ratio, Better better) {
  if (!ratio) return std::nullopt;
  const auto gain = [&](double r) { return better == Better::kHigher ? r - 1 : 1 - r; };
  Improvement out{.value = gain(ratio->ratio)};
  if (const auto& interval = ratio->interval) {
    const auto [low, high] = std::minmax({gain(interval->low), gain(interval->high)});
    out.interval = Interval{low, high};
  }
  return out;
}

Answer answerOf(const SuiteCell& cell, double least_effect) {
  const std::optional<Improvement>& judged = cell.judged();
  if (!judged || !judged->interval) return Answer::kTooFew;
  const bool by_latency = judgedBy(cell.size) == JudgedBy::kLatency;
  const double least = std::max(least_effect, by_latency ? kLatencyResolution : 0);
  if (judged->interval->low > least) return Answer::kHelps;
  return judged->interval->high < -least ? Answer::kHurts : Answer::kNoneSeen;
}

// Returns why the test cannot have an effect, or an empty text.
std::string idleness(const SuiteTest& test, const Sample& base, const Sample& own) {
  if (test.shows != "rails" || base.runs().empty() || own.runs().empty()) return {};
  const std::string rails = railsOf(own);
  return rails == railsOf(base) ? fmt::format("rails: {}, as in the baseline", rails) : "";
}

SuiteCell cellOf(const Suite& suite, std::size_t test, std::uint64_t size) {
  const Sample own = rowsOf(suite, test, size);
  SuiteCell out{.size = size, .figures = figuresOf(own)};
  out.note = own.complaint("a row of " + suite.tests[test].name);
  if (test != 0) {
    const Sample base = rowsOf(suite, 0, size);
    if (out.note.empty()) out.note = base.complaint("a row of " + suite.tests[0].name);
    if (out.note.empty()) {
      out.rate = improvementOf(base.ratioTo(own, &Row::gb_per_s), Better::kHigher);
      out.latency = improvementOf(base.ratioTo(own, latency(&Latency::p50)), Better::kLower);
      out.note = idleness(suite.tests[test], base, own);
      out.answer = out.note.empty() ? answerOf(out, suite.least_effect) : Answer::kIdle;
      return out;
    }
  }
  out.answer = out.note.empty() ? Answer::kNoneSeen : Answer::kUnusable;
  return out;
}

// Returns a text such as "helps at 3 of 5 sizes (64 B, 128 B, 256 B)".
std::string countText(const std::vector<SuiteCell>& cells, Answer answer) {
  std::string sizes;
  std::size_t count = 0;
  for (const SuiteCell& cell : cells)
    if (cell.answer == answer) {
      sizes += (count++ == 0 ? "" : ", ") + base::showSize(cell.size);
    }
  if (count == 0) return {};
  return fmt::format("{} at {} of {} size{} ({})", answerName(answer), count, cells.size(),
                     cells.size() == 1 ? "" : "s", sizes);
}

std::string textOf(const std::vector<SuiteCell>& cells) {
  std::string out;
  for (const auto& [word, answer] : kAnswers)
    if (const std::string part = countText(cells, answer); !part.empty())
      out += (out.empty() ? "" : "; ") + part;
  return out;
}

}  // namespace

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
