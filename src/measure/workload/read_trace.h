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
  std::uint64_t requests = 0;   // how many requests to read; 0: all
  std::uint32_t id_tokens = 0;  // tokens of a hash id; 0: as the format has it
  // Called repeatedly while a file is read, with the number of requests so far.
  std::function<void(std::uint64_t requests)> progress = {};
};

struct ReadTrace {
  Trace trace = {};
  std::vector<std::string> remarks = {};  // how the trace differs from the file, for the user
};

// Parses a trace. An error names the first wrong line. Empty lines are skipped. Requests without
// tokens, and failed requests, are left out. Requests are sorted by time.
Result<ReadTrace> parseTrace(std::string_view text, const std::string& name,
                             const TraceReading& how = {});
// Like parseTrace(), for a file. Memory holds only the requests and a few lines of the file.
Result<ReadTrace> readTrace(const std::string& file, const TraceReading& how = {});

}  // namespace viaduct::measure
