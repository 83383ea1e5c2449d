// One member's observation of one row: its devices' counters before and after, and the claims of
// its transfers. Threads: plain values.
#pragma once

#include <viaduct/path.h>
#include <viaduct/statistics.h>
#include <viaduct/transfer.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/fields.h"
#include "base/process_id.h"
#include "host/counters.h"
#include "host/devices.h"
#include "host/facts.h"
#include "host/link_facts.h"
#include "host/process_limits.h"
#include "host/storage.h"

namespace viaduct::measure::proof {

// The bytes that one initiator's transfers to one peer moved between Observer::before() and the end
// of the row.
struct Claim {
  std::uint32_t peer = 0;  // the peer's rank
  OpKind op = OpKind::kWrite;
  Path path = {};       // bytes and ops of all these transfers together
  bool stored = false;  // the other end is storage of the member itself, not a member
  std::uint32_t device = 0, far_device = 0;  // the number of the device at each end
  friend bool operator==(const Claim&, const Claim&) = default;
};

// The rate of copies of one size. In MemoryRates, `bytes` and the rate are sums over all threads,
// which copy at once. In GpuRate, the driver makes each copy of `bytes` bytes.
struct CopyRate {
  std::uint64_t bytes = 0;
  double gb_per_s = 0;
  friend bool operator==(const CopyRate&, const CopyRate&) = default;
};

struct MemoryRates {
  std::uint32_t threads = 0;               // 0: not measured
  double one_thread_gb_per_s = 0;          // with large buffers
  std::vector<CopyRate> all_threads = {};  // by size, ascending
  friend bool operator==(const MemoryRates&, const MemoryRates&) = default;
};

// The GPU of one of a member's devices.
struct GpuPlace {
  std::uint32_t device = 0;  // the device's number
  std::string id = {};       // the same in all processes, which may number the GPU differently
  std::string name = {};     // "GPU 0 (NVIDIA H100)"
  std::string doubt = {};    // why the kernel does not confirm the GPU; empty: confirmed
  friend bool operator==(const GpuPlace&, const GpuPlace&) = default;
};
auto fields(base::Is<GpuPlace> auto& g) { return std::tie(g.device, g.id, g.name, g.doubt); }

// The rate at which the driver copies between memory of GPUs, or between a GPU and pinned host
// memory.
struct GpuRate {
  std::string from = {}, to = {};    // ids of GPUs; empty: host memory
  std::vector<CopyRate> rates = {};  // by size, ascending
  std::string why_not = {};          // the reason if nothing was measured
  friend bool operator==(const GpuRate&, const GpuRate&) = default;
};

// The place of a member: the owner of its counters, and the devices that it may use.
struct HostPlace {
  std::string hostname = {};
  std::string boot_id = {};
  host::KernelStart kernel = {};  // when the kernel started, as read before the row
  std::string network = {};       // the network namespace
  base::ProcessId process = {};
  std::vector<host::Device> devices = {};
  std::vector<std::string> rails = {};  // the requested rails; empty: any
  MemoryRates memory = {};
  std::vector<GpuPlace> gpus = {};               // the GPUs of the member's devices
  std::vector<GpuRate> gpu_rates = {};           // rates that this member has measured
  std::vector<host::StorageStack> storage = {};  // under the files that the member moves
  friend bool operator==(const HostPlace&, const HostPlace&) = default;
};

// The figures of the sockets of one rail of the member's agent.
struct RailSockets {
  std::string rail = {};
  SocketStatistics figures = {};
  friend bool operator==(const RailSockets&, const RailSockets&) = default;
};

struct Reading {
  std::uint64_t at_ns = 0;
  std::vector<host::Counter> counters = {};
  std::optional<host::DiskBytes> disk = {};   // of the member's process
  std::vector<host::DiskCount> devices = {};  // of the lowest devices of its storage
  // The figures below explain a slow row and prove nothing. Observation::quiet does not have them.
  std::uint64_t causes_at_ns = 0;  // when they were read
  std::vector<host::LinkFacts> links = {};
  std::vector<RailSockets> rails = {};
  host::ProcessTimes times = {};
  friend bool operator==(const Reading&, const Reading&) = default;
};

struct Observation {
  HostPlace place = {};
  // From `quiet` to `before` the benchmark moves nothing, so all counted bytes are other programs'.
  Reading quiet = {}, before = {}, after = {};
  host::ProcessLimits limits = {};  // before the row
  std::vector<Claim> claims = {};
  friend bool operator==(const Observation&, const Observation&) = default;
};

// The processor time in which the member's agent sealed and opened data during the row.
std::chrono::nanoseconds sealingOf(const Observation& observation);

std::string encode(const Observation& observation);
Result<Observation> decodeObservation(std::string_view text);

}  // namespace viaduct::measure::proof
