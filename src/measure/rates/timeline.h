// What many streams moved in the time from the first one's start to the last one's end. Threads:
// pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "measure/rates/share.h"

namespace viaduct::measure {

// A stream's stretch on the common clock of a round: seconds after the barrier opened.
struct Placed {
  std::uint32_t stream = 0;
  double start = 0, end = 0;
  std::uint64_t bytes = 0;
  std::vector<LaneTimes::Part> parts = {};
};

// Members of one host (`hosts`, by rank) have one clock. Those of several hosts are let go by the
// same barrier, which is as near as their clocks can be brought.
std::vector<Placed> placed(std::span<const RoundShare> shares, std::span<const std::string> hosts);

struct Wall {
  double seconds = 0;  // from the first start to the last end
  std::uint64_t bytes = 0;
  double rate() const { return seconds > 0 ? static_cast<double>(bytes) / seconds * 1e-9 : 0; }
  void add(const Wall& next) {
    seconds += next.seconds;
    bytes += next.bytes;
  }
};
Wall wallOf(const std::vector<Placed>& streams);

// What all moved in each of so many equal parts of that time. For one stream: its own parts.
std::vector<LaneTimes::Part> partsOf(const std::vector<Placed>& streams, std::size_t windows);
// Neighbours become one until there are `most` or fewer.
std::vector<LaneTimes::Part> merged(const std::vector<LaneTimes::Part>& parts, std::size_t most);

}  // namespace viaduct::measure
