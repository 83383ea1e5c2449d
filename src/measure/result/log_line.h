// Reads tables from a pod's log: removes colours from its lines, and finds their parts. Threads:
// one at a time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "measure/result/report.h"
#include "measure/result/text.h"

namespace viaduct::measure {

// Limits for one file. No real log has as many rows or runs.
inline constexpr std::size_t kMostRows = 100'000, kMostRuns = 1'000;

// Parses a number. Returns nothing if it is negative or not finite.
std::optional<double> figureIn(std::string_view word);
// Returns a whole number from 1 to `most`.
std::optional<std::uint64_t> wholeOf(std::optional<double> value, double most);

// A column's title. Versions of a tool have different columns, so the titles identify the columns.
template <class Column>
struct ColumnTitle {
  std::string_view text;
  Column column;
};
// Returns the columns up to the first unknown title.
template <class Column>
std::vector<Column> columnsIn(std::string_view head, std::span<const ColumnTitle<Column>> titles) {
  std::vector<Column> out;
  for (;;) {
    head = base::trimmed(head);
    const auto known = std::find_if(titles.begin(), titles.end(),
                                    [&](const auto& t) { return head.starts_with(t.text); });
    if (known == titles.end()) return out;
    out.push_back(known->column);
    head.remove_prefix(known->text.size());
  }
}

// The figures of one line. A missing figure was not measured.
template <class Column>
using FigureMap = std::map<Column, double>;
template <class Column>
std::optional<double> figure(const FigureMap<Column>& figures, Column one) {
  const auto at = figures.find(one);
  return at == figures.end() ? std::nullopt : std::optional(at->second);
}
// Parses the last words of a line, one for each column. Returns nothing if a word is no figure.
// Ignored columns may hold texts, and other columns "N/A" or "nan".
template <class Column, class Parse>
std::optional<FigureMap<Column>> figuresIn(std::string_view line,
                                           const std::vector<Column>& columns, Parse parse) {
  const std::vector<std::string_view> words = base::wordsOf(line);
  if (words.size() < columns.size()) return std::nullopt;
  FigureMap<Column> out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string_view word = words[words.size() - columns.size() + i];
    if (const auto value = parse(word, columns[i]))
      out.emplace(columns[i], *value);
    else if (columns[i] != Column::kIgnored && word != "N/A" && word != "nan")
      return std::nullopt;
  }
  return out;
}

// Returns the line without escape sequences and carriage returns. Empty if the line is longer than
// any line of a table.
std::string plainLine(std::string_view line);

// Reads a log line by line. A Run has the state of one source, such as a pod, and the `rows` read
// so far.
template <class Run>
class TableReader {
 public:
  // `operation` and `file` are for errors.
  TableReader(const char* operation, const std::string& file)
      : operation_(operation), file_(file) {}
  virtual ~TableReader() = default;
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;

  Result<std::vector<Report>> read(std::string_view text) {
    for (const std::string_view one : linesOf(text)) {
      line(plainLine(one));
      if (rows_ > kMostRows || done_.size() > kMostRuns)
        return error(fmt::format("more than {} rows or {} runs", kMostRows, kMostRuns));
    }
    for (auto& [source, run] : open_) finish(run);
    if (done_.empty()) return error("the table has no rows");
    return std::move(done_);
  }
  Error error(std::string detail, std::string remedy = {}) const {
    return {.code = Code::kProtocol,
            .operation = operation_,
            .detail = std::move(detail),
            .file = file_,
            .remedy = std::move(remedy)};
  }

 protected:
  virtual void line(const std::string& text) = 0;
  virtual Report reportOf(Run& run) const = 0;

  void add(Run& run, Row row) {
    run.rows.push_back(std::move(row));
    ++rows_;
  }
  // Makes a report of the run's table, and empties the run's rows for its next table.
  void finish(Run& run) {
    if (run.rows.empty()) return;
    Report report = reportOf(run);
    report.rows = std::exchange(run.rows, {});
    done_.push_back(std::move(report));
  }

  std::map<std::string, Run> open_;  // by source

 private:
  const char* const operation_;
  const std::string& file_;
  std::vector<Report> done_;
  std::size_t rows_ = 0;
};

// Returns a line's prefix without times. By the prefix, such as "[pod/a/bench] " or "a | ", a log
// collector names the writer of the line.
std::string sourceOf(std::string_view line);
// Returns a time such as "2026-07-28T10:17:33Z" if one stands before `end`, or an empty text.
std::string timeIn(std::string_view line, std::size_t end);

// A line of nixlbench's banner: "Label (--flag=[...])   : value".
struct LogSetting {
  std::string name = {};  // the flag's name
  std::string value = {};
};
std::optional<LogSetting> settingIn(std::string_view line);
// True for flags of keys, tokens and passwords. nixlbench prints their values, but reports must not
// contain them.
bool isSecret(std::string_view flag);

}  // namespace viaduct::measure
