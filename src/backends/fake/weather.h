// The faults that the fake backend injects into each op, with random numbers from a seed. Threads:
// plain values.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace viaduct::fake {

struct Weather {
  std::uint64_t seed = 1;
  std::chrono::microseconds delay{0};  // the longest random delay of an op
  double reorder = 0;                  // chance, per op, that it overtakes the op before it
  double lose_rail = 0;                // chance, per op, that the rail breaks for some ms
  double kill_peer = 0;                // chance, per op, that the link to the peer fails
  std::uint32_t exhaust = 0;           // number of first links that fail for lack of descriptors
  double hang = 0;  // chance, per op, that it stays in flight until its rail breaks or link ends
  // Chances, per op, of wrong copies that are reported as moved, for tests that have to detect
  // them.
  double corrupt = 0;  // some bytes in the middle are wrong
  double swap = 0;     // the two halves are exchanged
  double shift = 0;    // all bytes are 8 too low
  double stale = 0;    // nothing is copied
  bool far = false;    // also reaches other processes of this host
  bool pose = false;   // claims to be RDMA
  std::uint32_t rails = 2;
  // The number of pretended NUMA nodes. Rail i is on node i mod `nodes`, and a pin on node slot mod
  // `nodes`.
  std::uint32_t nodes = 1;
};

// Reads "seed=7,delay_us=50,reorder=0.1,lose_rail=0.01,kill_peer=0.001,stale=0.5,far=1". An empty
// text injects no faults.
Result<Weather> parseWeather(std::string_view text);

}  // namespace viaduct::fake
