// The plan of a storm of parcels. The test and all its processes derive it from a seed, so they
// agree about every parcel. Threads: pure functions.
#pragma once

#include <viaduct/parcel.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace viaduct::testing {

inline constexpr std::size_t kStormParts = 8;       // the most of a parcel
inline constexpr std::uint64_t kStormBlock = 4096;  // bytes of a part

struct StormParcel {
  std::uint64_t number = 0;          // also its version
  std::string name = {};             // several parcels have the same
  std::size_t owner = 0, other = 0;  // processes with parts of it; equal: one process has all parts
  std::vector<ParcelPart> parts = {};
  std::vector<std::size_t> takers = {};  // the process of each rank of its group
  std::uint32_t at_least = 0;
  bool digests = false, withdrawn = false, cancelled = false;

  std::size_t holder(ParcelPart part) const { return part.rank == 0 ? owner : other; }
  std::byte value(ParcelPart part) const {
    return static_cast<std::byte>((number * 7 + part.rank * 5 + part.component) % 251 + 1);
  }
};

inline StormParcel stormParcel(std::uint64_t seed, std::uint64_t number, std::size_t processes) {
  constexpr std::uint64_t kNames = 400;  // few get more versions in a round than a name may have
  base::Random random(seed * 1'000'003 + number);
  StormParcel out{.number = number, .name = "p" + std::to_string(random.below(kNames))};
  out.owner = random.below(processes);
  out.other = processes > 2 && random.chance(0.3) ? random.below(processes) : out.owner;
  const std::uint64_t parts = 1 + random.below(kStormParts);
  for (std::uint32_t i = 0; i < parts; ++i)
    out.parts.push_back({.rank = out.other == out.owner ? 0 : i % 2, .component = i});
  for (std::size_t process = 0; process < processes; ++process)
    if (process != out.owner && process != out.other && random.chance(0.4))
      out.takers.push_back(process);
  for (std::size_t process = 0; out.takers.empty(); ++process)
    if (process != out.owner && process != out.other) out.takers.push_back(process);
  if (random.chance(0.2)) out.at_least = 1;
  out.digests = random.chance(0.2);
  out.withdrawn = random.chance(0.05);
  out.cancelled = random.chance(0.05);
  return out;
}

}  // namespace viaduct::testing
