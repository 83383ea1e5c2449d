#include "measure/report/test_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "measure/report/compare_output.h"
#include "measure/report/html.h"
#include "measure/report/suite_answers.h"

namespace viaduct::measure {
namespace {

std::string comparedText(const RowComparison& row) {
  std::string out = differenceName(row.difference);
  if (row.rate) out += fmt::format(": B/A is {:.3f}", row.rate->ratio);
  if (row.rate && row.rate->interval)
    out += fmt::format(", {:.3f}..{:.3f} with 95 % confidence", row.rate->interval->low,
                       row.rate->interval->high);
  return row.note.empty() ? out : fmt::format("{}; {}", out, row.note);
}

bool isUnsure(const RowComparison& row) {
  return row.perhaps_slow || row.difference == Difference::kTooFewRuns ||
         row.difference == Difference::kNotInTurns || row.difference == Difference::kUnusable;
}

RowTest testOf(const RowComparison& row) {
  RowTest out{.name = nameOf(row), .text = comparedText(row)};
  if (isBroken(row)) {
    out.end = TestEnd::kFailed;
    out.text = "valid in A, but not in B: " + row.note;
  } else if (row.too_slow) {
    out.end = TestEnd::kFailed;
    out.text = "too slow: " + out.text;
  } else if (isUnsure(row)) {
    out.end = TestEnd::kUnsure;
  }
  return out;
}

std::string figuresText(const SuiteCell& cell, bool baseline) {
  std::string out = baseline ? "baseline" : answerName(cell.answer);
  if (cell.figures.gb_per_s) out += fmt::format(", {:.4g} GB/s", *cell.figures.gb_per_s);
  if (cell.figures.p50_us) out += fmt::format(", p50 {:.4g} us", *cell.figures.p50_us);
  return out;
}

// Returns why a row of this test and size is not valid, or an empty text.
std::string brokenRow(const Suite& suite, std::size_t test, std::uint64_t size) {
  for (const SuiteRun& run : suite.runs)
    for (const Row& row : run.rows)
      if (run.test == test && sizeOf(row) == size && !isGood(row.verdict))
        return fmt::format("round {}: {}: {}", run.round + 1, verdictName(row.verdict), row.why);
  return {};
}

RowTest testOf(const Suite& suite, std::size_t test, const SuiteCell& cell) {
  RowTest out{.name = fmt::format("{} {}", suite.tests[test].name, base::showSize(cell.size)),
              .text = brokenRow(suite, test, cell.size)};
  if (!out.text.empty()) {
    out.end = TestEnd::kFailed;
    return out;
  }
  out.text = figuresText(cell, test == 0);
  if (test != 0 && cell.answer == Answer::kTooFew) out.end = TestEnd::kUnsure;
  return out;
}

bool isFailed(const RowTest& test) { return test.end == TestEnd::kFailed; }
bool isSkipped(const RowTest& test) {
  return test.end == TestEnd::kUnsure || test.end == TestEnd::kSkipped;
}

// Encodes the given characters as GitHub's annotations need it. A property needs more characters
// encoded than a message.
std::string percentEncoded(std::string_view text, std::string_view characters) {
  std::string out;
  for (const char c : text)
    if (characters.find(c) == std::string_view::npos)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned>(c));
  return out;
}
std::string asMessage(std::string_view text) { return percentEncoded(text, "%\r\n"); }
std::string asProperty(std::string_view text) { return percentEncoded(text, "%\r\n:,"); }

}  // namespace

std::vector<RowTest> testsOf(const Comparison& comparison) {
  std::vector<RowTest> out;
  out.reserve(comparison.rows.size());
  for (const RowComparison& row : comparison.rows) out.push_back(testOf(row));
  return out;
}

std::vector<RowTest> testsOf(const Suite& suite) {
  std::vector<RowTest> out;
  for (const SuiteAnswers& answers : answersOf(suite)) {
    const SuiteTest& test = suite.tests[answers.test];
    if (!test.absent.empty())
      out.push_back({test.name, TestEnd::kSkipped, "not measured: " + test.absent});
    for (const SuiteCell& cell : answers.cells) out.push_back(testOf(suite, answers.test, cell));
  }
  return out;
}

std::string junitText(const std::string& suite, const std::vector<RowTest>& tests) {
  const std::string name = escaped(suite);
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", tests.size(),
                  std::ranges::count_if(tests, isFailed), std::ranges::count_if(tests, isSkipped));
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{0}\" {1}>\n"
      "  <testsuite name=\"{0}\" {1}>\n",
      name, counts);
  for (const RowTest& test : tests) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"{}\">\n", name, escaped(test.name));
    const std::string text = escaped(test.text);
    if (isFailed(test)) out += fmt::format("      <failure message=\"{}\"/>\n", text);
    if (isSkipped(test)) out += fmt::format("      <skipped message=\"{}\"/>\n", text);
    if (test.end == TestEnd::kPassed)
      out += fmt::format("      <system-out>{}</system-out>\n", text);
    out += "    </testcase>\n";
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

std::string annotationText(const std::string& suite, const std::vector<RowTest>& tests) {
  std::string out;
  for (const RowTest& test : tests)
    if (isFailed(test) || test.end == TestEnd::kUnsure)
      out += fmt::format("::{} title={}::{}\n", isFailed(test) ? "error" : "warning",
                         asProperty(fmt::format("{}: {}", suite, test.name)), asMessage(test.text));
  return out;
}

}  // namespace viaduct::measure
