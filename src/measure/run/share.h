// What one member has to say of a row, as it goes to the others. Threads: plain values.
#pragma once

#include <viaduct/path.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/result/row.h"
#include "measure/run/lane.h"
#include "measure/run/spec.h"
#include "measure/stats/histogram.h"

namespace viaduct::measure {

// What went wrong at a member, if anything.
using Failure = std::optional<Error>;

// One stream in one repeat. Times are of its host's steady clock.
struct Stretch {
  std::uint64_t start_ns = 0;
  std::vector<LaneTimes::Part> parts = {};  // one behind another from there
};

struct StreamShare {
  std::uint32_t stream = 0;
  std::uint64_t iterations = 0;  // of all repeats; to those who verify: of the longest
  Latency latency_us = {};
  std::vector<Stretch> stretches = {};  // by repeat
};

// What a member's process took of the processors, and what everything on its machine did meanwhile.
struct CpuUse {
  double used = 0, over = 0;     // seconds of CPU, and of the time over which they were used
  double machine = 0;            // seconds of CPU
  std::uint32_t processors = 0;  // of the machine; 0: neither is known
};

struct RowShare {
  Failure failure = {};
  std::vector<StreamShare> streams = {};
  std::vector<std::uint64_t> left_ns = {};  // when each repeat's barrier let this member go
  Histogram latency = {}, prep = {}, post = {}, tx = {};  // nanoseconds, of all its streams
  CpuUse cpu = {};
  std::string mismatch = {};     // empty: none
  std::string observation = {};  // of the devices
};

Latency latencyOf(const Histogram& nanoseconds);

std::string encode(const Failure& failure);
Result<Failure> decodeFailure(std::string_view text);
std::string encode(const RowShare& share);
Result<RowShare> decodeShare(std::string_view text);

// The row that all members' shares make, by rank. A conclusion for people goes with it.
struct Composed {
  Row row = {};
  std::string conclusion = {};
};
Result<Composed> compose(const Spec& spec, const Workload& workload,
                         std::span<const RowShare> shares);

}  // namespace viaduct::measure
