// What a run measures, and how: all members of it have the same. Threads: plain values and pure
// functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/load/layout.h"
#include "measure/load/link_rate.h"
#include "measure/load/workload.h"
#include "measure/result/report.h"

namespace viaduct::measure {

struct Spec {
  Layout layout = {};
  std::vector<Workload> rows = {};
  std::uint32_t threads = 1, depth = 1;  // of each pair
  bool bidirectional = false;
  bool ping_pong = false;
  bool recreate = false, reregister = false;  // for every transfer

  MemoryChoice memory = MemoryChoice::kAllocate;
  bool huge_pages = false;
  std::uint64_t buffer_bytes = 0;  // of each process; 0: what the rows need
  std::uint64_t working_set = 0;   // that each stream walks through; 0: one transfer's blocks

  std::chrono::nanoseconds warmup = std::chrono::milliseconds(50);
  std::chrono::nanoseconds duration = std::chrono::milliseconds(400);
  std::uint32_t repeat = 1;
  double rate = 0;  // transfers a second that each thread starts; 0: one after another
  bool poisson = false;

  Verified verify = Verified::kSampled;
  std::string require = {};
  std::vector<LinkRate> link_rates = {};
  std::chrono::nanoseconds interval{0};  // whose rates are reported while a row runs; 0: none
  std::uint64_t seed = 1;
  friend bool operator==(const Spec&, const Spec&) = default;
};

// Everything above by name, as a result file carries it; members compare it.
std::vector<Option> optionsOf(const Spec& spec);

// Memory of one device on each side.
struct DeviceBytes {
  std::uint64_t initiator = 0, target = 0;
  friend bool operator==(const DeviceBytes&, const DeviceBytes&) = default;
};
// An error when a transfer does not fit its stream's part of what was asked for.
Result<DeviceBytes> deviceBytes(const Spec& spec);
// Of all devices that a process owns.
std::uint64_t processBytes(const Spec& spec, const DeviceBytes& bytes, std::uint32_t rank);

// Where the transfers of a stream lie: `count` sets of blocks, `stride` apart, from these offsets
// in the two devices' memory. Transfer k uses set k % count.
struct Sets {
  std::uint64_t initiator_at = 0, target_at = 0, count = 1, stride = 0;
  friend bool operator==(const Sets&, const Sets&) = default;
};
Sets setsOf(const Spec& spec, const Workload& row, const Stream& stream, const DeviceBytes& bytes);

}  // namespace viaduct::measure
