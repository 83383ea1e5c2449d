// Rows that make one line of a chart: they differ only in the size. Threads: pure functions
// and plain values.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// A report and its name on the page, which is made from the name of its file.
struct Source {
  std::string name = {};
  Report report = {};
};

// Name reports by their files. Folders are left out if the file names alone differ. Several reports
// of one file are numbered.
std::vector<std::string> namesOf(const std::vector<std::string>& files);
std::vector<Source> sourcesOf(const std::vector<std::string>& files,
                              std::vector<std::vector<Report>> reports);

struct Series {
  std::string label = {};  // the shortest text that tells this series from others
  // A text that is equal for series that differ only in their file and their number of members.
  std::string work = {};
  std::size_t source = 0;
  std::vector<Row> rows = {};  // by chosenSize(), without repeats
};
std::vector<Series> seriesOf(const std::vector<Source>& sources);

// Returns the sizes of all series in order, without duplicates.
std::vector<std::uint64_t> sizesOf(const std::vector<Series>& series);
// Returns the row of that size, or null.
const Row* rowAt(const Series& series, std::uint64_t size);

}  // namespace viaduct::measure
