// Adds up the bytes of many streams over the time from the first start to the last end. Threads:
// pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure/proof/share.h"

namespace viaduct::measure {

// One stream in one round, in seconds after the barrier opened for its host.
struct Placed {
  std::uint32_t stream = 0;
  double start = 0, end = 0;
  std::uint64_t bytes = 0;
  std::vector<LaneTimes::Part> parts = {};
};

// Places the streams of a round on one clock. `hosts` names each rank's host. Members of one host
// share a clock, unless the barrier shows that they do not. Other clocks are aligned at the moment
// when the barrier opened.
std::vector<Placed> placed(std::span<const RoundShare> shares, std::span<const std::string> hosts);

// Returns the bytes of all streams, and the time from the first start to the last end.
TimedBytes wallOf(const std::vector<Placed>& streams);

// Returns the bytes of all streams in each of `windows` equal parts of the time from wallOf(). A
// single stream keeps its own parts.
std::vector<LaneTimes::Part> partsOf(const std::vector<Placed>& streams, std::size_t windows);
// Merges neighbouring parts until at most `most` are left.
std::vector<LaneTimes::Part> merged(const std::vector<LaneTimes::Part>& parts, std::size_t most);

}  // namespace viaduct::measure
