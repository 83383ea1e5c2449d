// The layout of a run: devices, the processes that own them, and the streams between them. Threads:
// plain values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/words.h"
#include "measure/workload/traffic_file.h"

namespace viaduct::measure {

enum class Scheme : std::uint8_t {
  kPairwise,   // device i with device i; the side with fewer devices starts again at 0
  kManyToOne,  // each target is reached by all initiators
  kOneToMany,  // each initiator reaches all targets
  kTp,  // each side holds one tensor in one shard for each device; overlapping shards make a pair
  // Patterns: all processes are members that send and receive, as in a collective.
  kSendrecv,          // each member sends to the next one, in a ring
  kAlltoall,          // each member sends to all others
  kAllgather,         // pieces of all members pass along a ring
  kBroadcast,         // the data of member 0 passes along a chain
  kAllreduceTraffic,  // pieces pass along a ring twice, without a reduction
  kMatrix,            // each member sends what the matrix of the layout says
};
inline constexpr base::Words<Scheme, 4> kSchemes{{{"pairwise", Scheme::kPairwise},
                                                  {"manytoone", Scheme::kManyToOne},
                                                  {"onetomany", Scheme::kOneToMany},
                                                  {"tp", Scheme::kTp}}};
inline constexpr base::Words<Scheme, 5> kPatterns{{{"allgather", Scheme::kAllgather},
                                                   {"alltoall", Scheme::kAlltoall},
                                                   {"allreduce-traffic", Scheme::kAllreduceTraffic},
                                                   {"broadcast", Scheme::kBroadcast},
                                                   {"sendrecv", Scheme::kSendrecv}}};
constexpr bool isPattern(Scheme scheme) { return scheme >= Scheme::kSendrecv; }
constexpr const char* schemeName(Scheme scheme) {
  if (scheme == Scheme::kMatrix) return "matrix";
  return isPattern(scheme) ? base::wordOf(kPatterns, scheme) : base::wordOf(kSchemes, scheme);
}

enum class Mode : std::uint8_t {
  kSg,  // a process for each device
  kMg,  // one process for all devices of a side
};
inline constexpr base::Words<Mode, 2> kModes{{{"SG", Mode::kSg}, {"MG", Mode::kMg}}};
constexpr const char* modeName(Mode mode) { return base::wordOf(kModes, mode); }

struct Layout {
  Scheme scheme = Scheme::kPairwise;
  Mode mode = Mode::kSg;
  // Devices of each side. No targets: the other end of each initiator is its process's storage.
  std::uint32_t initiators = 1, targets = 1;
  bool reads = false;  // the receivers of a pattern initiate
  TrafficMatrix matrix = {};

  // True for a pattern. Member i then has device i of both sides: it initiates with one device, and
  // other members reach the other device.
  bool pattern() const { return isPattern(scheme); }
  bool stored() const { return targets == 0; }
  std::uint32_t processes() const {
    if (mode == Mode::kMg) return stored() ? 1 : 2;
    return pattern() ? initiators : initiators + targets;
  }
  std::uint32_t initiatorProcesses() const { return mode == Mode::kMg ? 1 : initiators; }
  bool isInitiator(std::uint32_t rank) const { return rank < initiatorProcesses(); }
  const char* roleOf(std::uint32_t rank) const {
    if (pattern()) return "member";
    return isInitiator(rank) ? "initiator" : "target";
  }
  // Return the rank of the process that owns device i or j of a side.
  std::uint32_t initiatorRank(std::uint32_t i) const { return mode == Mode::kMg ? 0 : i; }
  std::uint32_t targetRank(std::uint32_t j) const {
    if (stored() || pattern()) return initiatorRank(j);
    return mode == Mode::kMg ? 1 : initiators + j;
  }
  friend bool operator==(const Layout&, const Layout&) = default;
};

struct Pair {
  std::uint32_t initiator = 0, target = 0;  // devices, each numbered from 0 on its side
  friend auto operator<=>(const Pair&, const Pair&) = default;
};
// Returns sorted pairs without duplicates. Every device is in at least one pair.
std::vector<Pair> pairsOf(Scheme scheme, std::uint32_t initiators, std::uint32_t targets);
// Returns the pairs of a layout. If the layout is stored(), initiator i and its storage are a pair,
// whatever the scheme. The pairs of a pattern depend on `reads`.
std::vector<Pair> pairsOf(const Layout& layout);

// The transfers of one thread from one device to another. A stream has its own part of both
// devices' memory. A stream has the same number at all members.
struct Stream {
  Pair pair = {};
  bool reverse = false;     // the target initiates, and its memory is the local side
  std::uint64_t bytes = 0;  // of a transfer, if a matrix says so; 0: as the row says
  // The stream's part of each end's memory, and the number of equal parts.
  std::uint32_t initiator_part = 0, initiator_parts = 1;
  std::uint32_t target_part = 0, target_parts = 1;
  friend bool operator==(const Stream&, const Stream&) = default;
};
std::vector<Stream> streamsOf(const Layout& layout, std::uint32_t threads, bool bidirectional);

}  // namespace viaduct::measure
