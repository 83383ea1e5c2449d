// Prints a comparison as text for a terminal, and as JSON. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/report/compare.h"

namespace viaduct::measure {

struct ComparedFiles {  // the names of the compared files
  std::string a = {}, b = {};
};

// "tcp write 64 x 64 KiB"
std::string nameOf(const RowComparison& row);

// The table has at most `width` columns, if the figures allow.
std::string compareText(const Comparison& comparison, const ComparedFiles& files,
                        const CompareOptions& options, std::size_t width);
std::string compareJson(const Comparison& comparison, const ComparedFiles& files);

}  // namespace viaduct::measure
