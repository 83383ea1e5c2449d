// The formats of traces, in one table: their names, how a file is recognised, and how its lines are
// read and written. Threads: constants and pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "measure/workload/trace.h"
#include "measure/workload/trace_fields.h"

namespace viaduct::measure {

// One line of a trace. A line with a delay has no time: its time is the delay after the previous
// request of its session.
struct TraceLine {
  TraceRequest request = {};
  std::optional<std::uint64_t> delay_us = {};
  std::uint64_t session = 0;  // equal numbers: the same session; 0: the line names none
  bool failed = false;        // the service gave no answer
};

struct TraceFormatFacts {
  TraceFormat format;
  const char* owner;        // who publishes traces in this format, for people
  bool csv;                 // a header and rows; otherwise an object in JSON on each line
  std::uint32_t id_tokens;  // 0: requests have no hash ids
  std::span<const char* const> telling;  // the names that a line of this format has
  Result<TraceLine> (*read)(const TraceFields& fields);
  std::string (*head)();  // the first line of the file
  std::string (*write)(const TraceRequest& request, std::size_t number);
};

// Returns all formats. A file has the first format whose `telling` names are all in its first line.
std::span<const TraceFormatFacts> traceFormats();
const TraceFormatFacts& factsOf(TraceFormat format);

// Writes a trace in its format.
std::string textOf(const Trace& trace);
// Returns the same requests in another format. They lose their hash ids if the format has none.
Trace inFormat(Trace trace, TraceFormat format);

}  // namespace viaduct::measure
