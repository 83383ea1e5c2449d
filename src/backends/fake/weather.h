// What the fake fabric does to each op; every roll comes from the seed. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <string_view>

namespace viaduct::fake {

struct Weather {
  std::uint64_t seed = 1;
  std::chrono::microseconds delay{0};  // each op takes up to this long
  double reorder = 0;                  // chance that an op overtakes the one before it
  double lose_rail = 0;                // chance, per op, that the rail breaks for some ms with it
  double kill_peer = 0;                // chance, per op, that the link to the peer dies with it
  std::uint32_t exhaust = 0;           // links, the first ones, that lack descriptors to open
  double hang = 0;                     // chance, per op, that only the link's end ends it
  // Chances, per op, of harm that nobody reports: for tests of who has to see it.
  double corrupt = 0;  // some of its bytes are others
  double swap = 0;     // its halves have changed places
  double shift = 0;    // all bytes lie 8 too low
  double stale = 0;    // nothing was moved
  bool far = false;    // also reaches other processes of this host
  bool pose = false;   // says to be RDMA
  std::uint32_t rails = 2;
  // Rails and memory lie on so many NUMA nodes in turn: rail i on i mod nodes, a pin on its slot's.
  std::uint32_t nodes = 1;
};

// "seed=7,delay_us=50,reorder=0.1,lose_rail=0.01,kill_peer=0.001,stale=0.5,far=1"; empty: fair
// weather.
Result<Weather> parseWeather(std::string_view text);

}  // namespace viaduct::fake
