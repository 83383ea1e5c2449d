// Random copies for tests, as transfers of blocks have them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backends/cuda/rows.h"
#include "base/random.h"

namespace viaduct::cuda {

// `count` copies of one size at equal distances.
inline std::vector<Copy> strided(std::uint64_t count, Copy first, std::uint64_t from_step,
                                 std::uint64_t to_step) {
  std::vector<Copy> copies(count, first);
  for (std::uint64_t i = 0; i < count; ++i) {
    copies[i].from += i * from_step;
    copies[i].to += i * to_step;
  }
  return copies;
}

// Returns a run of copies, or one copy, that writes to addresses from `to` on. Most of the
// addresses and lengths are multiples of `unit`.
inline std::vector<Copy> randomRun(base::Random& random, std::uint64_t space, std::uint64_t unit,
                                   std::uint64_t to) {
  const auto some = [&](std::uint64_t most) { return random.below(most / unit + 1) * unit; };
  const std::uint64_t bytes = random.chance(0.3) ? random.below(5000) : unit + some(5000);
  const std::uint64_t count = random.chance(0.5) ? 1 : 1 + random.below(40);
  const std::uint64_t gap = random.chance(0.5) ? 0 : some(200);
  return strided(count, {some(space / 2), to + some(100), bytes}, some(300), bytes + gap);
}

inline std::uint64_t bytesOf(const std::vector<Copy>& copies) {
  std::uint64_t all = 0;
  for (const Copy& copy : copies) all += copy.bytes;
  return all;
}

// The rows of the copies, for a launch of `warps` warps.
inline std::vector<Row> cut(const std::vector<Copy>& copies, std::uint32_t warps) {
  std::vector<Row> rows(RowWriter::roomFor(copies.size(), warps));
  RowWriter writer;
  writer.begin(rows.data(), bytesOf(copies), warps);
  for (const Copy& copy : copies) writer.add(copy);
  rows.resize(writer.end());
  return rows;
}

// Copies from addresses below `space` to addresses below `space`. No byte is written twice.
inline std::vector<Copy> randomCopies(base::Random& random, std::uint64_t space) {
  const std::uint64_t unit = 1U << random.below(6);
  const bool down = random.chance(0.5);
  std::vector<Copy> copies;
  std::uint64_t to = 0;
  while (true) {
    for (const Copy& copy : randomRun(random, space, unit, to)) {
      to = copy.to + copy.bytes;
      if (std::max(to, copy.from + copy.bytes) > space) {
        if (down) std::reverse(copies.begin(), copies.end());
        return copies;
      }
      copies.push_back(copy);
    }
  }
}

}  // namespace viaduct::cuda
