// What a measurement found: rows, and the report they make. Threads: plain values.
#pragma once

#include <viaduct/path.h>
#include <viaduct/settings.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/facts.h"
#include "measure/load/workload.h"

namespace viaduct::measure {

struct Latency {  // of one transfer, from post to its end, in microseconds
  double p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, max = 0;
  friend bool operator==(const Latency&, const Latency&) = default;
};

enum class Verdict : std::uint8_t {
  kOk,
  kCorrupt,  // moved, but what arrived is not what was sent
  kFailed,   // could not be measured
};
const char* verdictName(Verdict verdict);

struct Row {
  Workload workload = {};  // iterations: as many as were timed
  double gb_per_s = 0;     // 10^9 bytes a second; the median of several parts of the row
  double gb_spread = 0;    // median distance of those parts from it, as a part of it
  Latency latency_us = {};
  double cpu_s_per_gb = 0;  // user and system time of both processes
  double completions_per_s = 0;
  Path path = {};  // of one transfer
  bool verified = false;
  Verdict verdict = Verdict::kOk;
  std::string why = {};  // when not ok
  friend bool operator==(const Row&, const Row&) = default;
};

struct Report {
  std::string version = {};
  std::string started = {};  // UTC, ISO 8601
  host::Facts host = {};
  Settings settings = {};
  std::vector<Row> rows = {};
  std::string end = "complete";  // or how it ended early
};

// A report without rows yet, of this machine and moment.
Report startReport(std::string version, const Settings& settings);

std::string toJson(const Row& row);
// Nothing when the text is no row.
Result<Row> rowFromJson(std::string_view text);
std::string toJson(const Report& report);

}  // namespace viaduct::measure
