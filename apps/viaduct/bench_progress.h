// How far a run is, on stderr: a line that the next one overwrites on a terminal; in a log file a
// plain line now and then. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>

#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include "measure/load/workload.h"
#include "measure/result/row.h"

namespace viaduct::app {

class BenchProgress {
 public:
  // `quiet`: says nothing. `rows`: how many there will be.
  BenchProgress(std::size_t rows, bool quiet);

  // What the rows from here on are part of.
  void part(std::string name) { part_ = std::move(name); }
  void started(std::size_t number, const measure::Workload& row);
  // `gb_per_s`: of the row so far; 0: nothing has been timed yet.
  void tick(double gb_per_s);
  // A line about the row that runs.
  void interval(const measure::RateInterval& interval, std::FILE* to);
  void finished(const measure::Row& row);
  // A line about a long wait. While a row runs that is progress: members wait for each other.
  void waiting(const std::string& line);
  void clear();

 private:
  void draw();
  void show() const;
  void erase() const;
  // `rate`: what it says of rates.
  std::string text(const std::string& rate) const;

  const std::size_t rows_;
  const bool terminal_, quiet_;
  Clock::time_point start_;
  Clock::time_point said_;
  std::size_t number_ = 0;
  bool measuring_ = false;
  std::string part_, what_;
  std::string last_;  // the rate of the row before
  std::string now_;   // the rate of this row, once it has one
};

}  // namespace viaduct::app
