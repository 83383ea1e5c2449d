#include "measure/report/suite_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"

namespace viaduct::measure {
namespace {

using base::Narrow;
constexpr std::array kFigures{
    base::figure("size"),   base::figure("GB/s"),  base::figure("p50 us"), base::figure("p95 us"),
    base::figure("p99 us"), base::figure("cores"), base::figure("ends/s"), base::figure("rails")};
constexpr std::array kAnswer{base::figure("better by", Narrow::kBelow),
                             base::figure("95 % interval", Narrow::kBelow),
                             base::words("of", Narrow::kBelow), base::words("it", Narrow::kBelow)};
constexpr std::array kNote{base::words("", Narrow::kBelow)};
constexpr double kWrong = 0.05;  // the part of all 95 % intervals that miss the true value

std::vector<std::string> figuresOf(const SuiteCell& cell) {
  const SuiteFigures& f = cell.figures;
  return base::cells(base::showSize(cell.size), digits(f.gb_per_s), digits(f.p50_us),
                     digits(f.p95_us), digits(f.p99_us), digits(f.cores_busy),
                     digits(f.completions_per_s), f.rails);
}

std::vector<std::string> answerOf(const SuiteCell& cell) {
  const auto& judged = cell.judged();
  return base::cells(percentText(judged ? std::optional(judged->value) : std::nullopt),
                     intervalText(judged), judgedByName(judgedBy(cell.size)),
                     answerName(cell.answer) + (cell.note.empty() ? "" : ": " + cell.note));
}

std::vector<std::string> noteOf(const SuiteCell& cell) {
  return {cell.note.empty() ? "" : "cannot be used: " + cell.note};
}

std::string tableOf(const SuiteTest& test, const SuiteAnswers& answers, std::size_t width) {
  std::string out = "\n" + test.name;
  if (const std::string settings = settingsText(test); !settings.empty()) out += ": " + settings;
  if (!test.expected.empty()) out += fmt::format("\n(expected: {})", test.expected);
  if (!test.absent.empty()) return out + "\nnot measured: " + test.absent + "\n";
  const bool judged = answers.test != 0;
  std::vector<base::TextRow> rows;
  rows.reserve(answers.cells.size());
  for (const SuiteCell& cell : answers.cells)
    rows.push_back({base::joined(figuresOf(cell), judged ? answerOf(cell) : noteOf(cell))});
  const auto columns = base::joined(kFigures, judged ? base::TextColumns(kAnswer) : kNote);
  return out + "\n" + base::tableText(columns, rows, width);
}

std::string headOf(const Suite& suite) {
  std::set<std::string> hosts;
  for (const RunMember& member : suite.environment.members) hosts.insert(member.host.hostname);
  return fmt::format(
      "{} of {} rounds, {} processes on {}; medians over the rounds. Effects below {:.3g} % are "
      "not reported\n",
      suite.rounds_done, std::max(suite.rounds, suite.rounds_done),
      suite.environment.members.size(), fmt::join(hosts, ", "), suite.least_effect * 100);
}

}  // namespace

std::string percentText(const std::optional<double>& part) {
  return part ? fmt::format("{:+.1f} %", *part * 100) : "-";
}

std::string intervalText(const std::optional<Improvement>& improvement) {
  if (!improvement || !improvement->interval) return "-";
  return fmt::format("{:+.1f} to {:+.1f} %", improvement->interval->low * 100,
                     improvement->interval->high * 100);
}

std::string settingsText(const SuiteTest& test) {
  std::string out;
  for (const Option& option : test.settings)
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", option.name, option.value);
  return out;
}

std::string chanceText(const std::vector<SuiteAnswers>& answers) {
  std::size_t count = 0;
  for (const SuiteAnswers& one : answers)
    if (one.test != 0)
      count += static_cast<std::size_t>(std::count_if(
          one.cells.begin(), one.cells.end(),
          [](const SuiteCell& cell) { return cell.judged() && cell.judged()->interval; }));
  if (count == 0) return {};
  const auto wrong = std::lround(kWrong * static_cast<double>(count));
  const std::string which =
      wrong > 0 ? fmt::format("About {} of {} answers may be", wrong, count) : "An answer may be";
  return which +
         " wrong by chance: a 95 % interval misses one time in 20. Trust answers that neighbouring "
         "sizes share.";
}

std::string suiteText(const Suite& suite, std::size_t width) {
  const std::vector<SuiteAnswers> answers = answersOf(suite);
  std::string out = headOf(suite);
  for (const SuiteAnswers& one : answers) out += tableOf(suite.tests[one.test], one, width);
  out += "\n";
  for (const SuiteAnswers& one : answers)
    if (one.test != 0) out += fmt::format("{}: {}\n", suite.tests[one.test].name, one.text);
  if (const std::string chance = chanceText(answers); !chance.empty()) out += chance + "\n";
  return out;
}

}  // namespace viaduct::measure
