// Shows the progress of a run on stderr. On a terminal each line overwrites the last one; in a log
// file plain lines appear at intervals. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "measure/result/row.h"
#include "measure/workload/workload.h"
#include "viaduct/time_left.h"

namespace viaduct::app {

// The line of a terminal with `width` columns about `done` of `rows` rows. A bar stands before the
// text if there is room. The line never reaches the last column, because a terminal cannot erase a
// wrapped line.
std::string progressLine(std::size_t done, std::size_t rows, const std::string& text,
                         std::size_t width);

// Decides when a line of progress is shown, and shows it. Threads: one at a time.
class StatusLine {
 public:
  // `quiet` suppresses all lines.
  explicit StatusLine(bool quiet);

  bool onTerminal() const { return terminal_; }
  // True if enough time has passed since the last line. The next line is then due later.
  bool due();
  // On a terminal the line overwrites the last one.
  void show(const std::string& line) const;
  void erase() const;

 private:
  const bool terminal_, quiet_;
  Clock::time_point said_;
};

// Shows the steps before a run on a terminal. A log file gets no lines.
class PreparationLine {
 public:
  PreparationLine();
  ~PreparationLine() { line_.erase(); }
  PreparationLine(const PreparationLine&) = delete;
  PreparationLine& operator=(const PreparationLine&) = delete;

  // `done`: how far the step is.
  void tick(const std::string& step, std::uint64_t done);

 private:
  StatusLine line_;
};

class BenchProgress {
 public:
  // `quiet` suppresses all lines. `rows` is the number of rows of all runs.
  BenchProgress(std::size_t rows, bool quiet);

  // Tells that no member will measure `rows` rows of the next run.
  void leaveOut(std::size_t rows) { rows_ -= rows; }
  // Names the group of rows that follows, such as a round.
  void part(std::string name) { part_ = std::move(name); }
  void started(std::size_t number, const measure::Workload& row);
  // Starts a step that is no row, such as a cell of a matrix.
  void started(std::size_t number, std::string what);
  // `gb_per_s` is the rate of the row so far, or 0 before the first timed transfer.
  void tick(double gb_per_s);
  void preparing(const char* what, std::uint64_t done, std::uint64_t of);
  // Prints a line about an interval of the running row.
  void interval(const measure::RateInterval& interval, std::FILE* to);
  void finished(const measure::Row& row);
  // Prints a line about a long wait. While a row runs, shows its progress instead, because members
  // wait for each other in every row.
  void waiting(const std::string& line);
  void clear();

 private:
  void draw(const std::string& in_log);
  void show(const std::string& in_log) const;
  // `rate` is the text that stands for the rate.
  std::string text(const std::string& rate) const;

  std::size_t rows_;
  StatusLine line_;
  TimeLeft time_left_;
  std::size_t number_ = 0;
  bool measuring_ = false;
  std::string part_, what_;
  std::string last_;  // the rate of the previous row
  std::string now_;   // the rate of this row; empty before the first timed transfer
};

}  // namespace viaduct::app
