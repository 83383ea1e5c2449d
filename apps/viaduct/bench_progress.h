// How far a run is, on stderr: a line that the next one overwrites on a terminal; in a log file a
// plain line now and then. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>

#include <cstddef>
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
  void tick();
  void finished(const measure::Row& row);
  // A line about a long wait. While a row runs that is progress: members wait for each other.
  void waiting(const std::string& line);
  void clear();

 private:
  void show() const;
  std::string text() const;

  const std::size_t rows_;
  const bool terminal_, quiet_;
  Clock::time_point start_;
  Clock::time_point said_;
  std::size_t number_ = 0;
  bool measuring_ = false;
  std::string part_, what_;
  std::string last_;  // the rate of the row before
};

}  // namespace viaduct::app
