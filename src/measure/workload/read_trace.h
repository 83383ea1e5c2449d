// Reads traces of requests in any of the known formats. Threads: any; only readTrace() reads a
// file.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/workload/trace.h"

namespace viaduct::measure {

struct TraceReading {
  std::uint64_t requests = 0;   // the first ones of the file; 0: all
  std::uint32_t id_tokens = 0;  // that a hash id stands for; 0: those of the format
  // Called repeatedly while a file is read, with the number of requests so far.
  std::function<void(std::uint64_t requests)> progress = {};
};

struct ReadTrace {
  Trace trace = {};
  std::vector<std::string> remarks = {};  // what differs from the lines, for the user
};

// The error names the first wrong line. Empty lines are skipped. Requests without tokens, and those
// that failed, are left out. Requests are sorted by their times.
Result<ReadTrace> parseTrace(std::string_view text, const std::string& name,
                             const TraceReading& how = {});
// The same, with memory for the requests and one line.
Result<ReadTrace> readTrace(const std::string& file, const TraceReading& how = {});

}  // namespace viaduct::measure
