// Rows that belong on one line of a chart: all the same but for the block size. Threads: pure; a
// series points into the sources that it was made from.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "measure/result/report.h"

namespace viaduct::measure {

// A report and what it is called on the page: the name of its file.
struct Source {
  std::string name = {};
  Report report = {};
};

// Reports by the names of their files: without folders where that is enough to tell them apart, and
// numbered when a file has several.
std::vector<std::string> namesOf(const std::vector<std::string>& files);
std::vector<Source> sourcesOf(const std::vector<std::string>& files,
                              std::vector<std::vector<Report>> reports);

struct Series {
  std::string label = {};  // as much as it takes to tell it from the others
  std::size_t source = 0;
  std::vector<const Row*> rows = {};  // by block size; of repeats of a row the middle one
};
std::vector<Series> seriesOf(const std::vector<Source>& sources);

// Every block size of any series, once, in order.
std::vector<std::uint64_t> blockSizesOf(const std::vector<Series>& series);
// The row of that block size, or nullptr.
const Row* rowAt(const Series& series, std::uint64_t block_size);

}  // namespace viaduct::measure
