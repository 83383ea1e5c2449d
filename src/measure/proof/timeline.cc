#include "measure/proof/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace viaduct::measure {
namespace {

// Returns a stream's bytes between two moments. Within a part, bytes are spread evenly over time.
double bytesBetween(const Placed& stream, double from, double to) {
  double bytes = 0, begin = stream.start;
  for (const LaneTimes::Part& part : stream.parts) {
    const double end = begin + part.seconds;
    const double common = std::min(end, to) - std::max(begin, from);
    if (common > 0 && part.seconds > 0)
      bytes += static_cast<double>(part.bytes) * common / part.seconds;
    begin = end;
  }
  return bytes;
}

double firstStart(const std::vector<Placed>& streams) {
  double first = std::numeric_limits<double>::max();
  for (const Placed& stream : streams) first = std::min(first, stream.start);
  return first;
}

// True if both members may read the same clock. A barrier opens while all members are in it, so by
// one clock their stays overlap. They need not overlap in two time namespaces of one host.
bool mayShareAClock(const RoundShare& a, const RoundShare& b) {
  return a.entered_ns <= b.left_ns && b.entered_ns <= a.left_ns;
}

// Returns for each member when the barrier opened, by the member's own clock. At that time the
// first member with the same clock left the barrier.
std::vector<std::uint64_t> openings(std::span<const RoundShare> shares,
                                    std::span<const std::string> hosts) {
  std::vector<std::size_t> first(shares.size());  // the lowest rank with the same clock
  std::vector<std::uint64_t> opened(shares.size());
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    first[rank] = rank;
    for (std::size_t other = 0; other < rank && first[rank] == rank; ++other)
      if (hosts[other] == hosts[rank] && mayShareAClock(shares[other], shares[rank]))
        first[rank] = first[other];
    std::uint64_t& known = opened[first[rank]];
    known = first[rank] == rank ? shares[rank].left_ns : std::min(known, shares[rank].left_ns);
  }
  for (std::size_t rank = 0; rank < shares.size(); ++rank) opened[rank] = opened[first[rank]];
  return opened;
}

}  // namespace

std::vector<Placed> placed(std::span<const RoundShare> shares, std::span<const std::string> hosts) {
  const std::vector<std::uint64_t> opened = openings(shares, hosts);
  std::vector<Placed> out;
  for (std::size_t rank = 0; rank < shares.size(); ++rank)
    for (const TimeStretch& stretch : shares[rank].streams) {
      Placed& one = out.emplace_back(Placed{.stream = stretch.stream, .parts = stretch.parts});
      one.start = static_cast<double>(stretch.start_ns - opened[rank]) * 1e-9;
      one.end = one.start;
      for (const LaneTimes::Part& part : stretch.parts) {
        one.end += part.seconds;
        one.bytes += part.bytes;
      }
    }
  return out;
}

TimedBytes wallOf(const std::vector<Placed>& streams) {
  TimedBytes wall;
  if (streams.empty()) return wall;
  double last = 0;
  for (const Placed& stream : streams) {
    last = std::max(last, stream.end);
    wall.bytes += stream.bytes;
  }
  wall.seconds = last - firstStart(streams);
  return wall;
}

std::vector<LaneTimes::Part> partsOf(const std::vector<Placed>& streams, std::size_t windows) {
  if (streams.size() == 1) return streams[0].parts;
  const TimedBytes wall = wallOf(streams);
  if (wall.seconds <= 0) return {};
  const double width = wall.seconds / static_cast<double>(windows);
  std::vector<LaneTimes::Part> parts;
  double from = firstStart(streams);
  for (std::size_t i = 0; i < windows; ++i, from += width) {
    double bytes = 0;
    for (const Placed& stream : streams) bytes += bytesBetween(stream, from, from + width);
    parts.push_back({static_cast<std::uint64_t>(std::llround(bytes)), width});
  }
  return parts;
}

std::vector<LaneTimes::Part> merged(const std::vector<LaneTimes::Part>& parts, std::size_t most) {
  if (parts.size() <= most) return parts;
  std::vector<LaneTimes::Part> out(most);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    LaneTimes::Part& into = out[i * most / parts.size()];
    into.bytes += parts[i].bytes;
    into.seconds += parts[i].seconds;
  }
  return out;
}

}  // namespace viaduct::measure
