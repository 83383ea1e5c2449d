// The rows of a run and how it measures them. All members have the same spec. Threads: plain values
// and pure functions.
#pragma once

#include <viaduct/memory.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/workload/hints.h"
#include "measure/workload/layout.h"
#include "measure/workload/link_rate.h"
#include "measure/workload/pipeline.h"
#include "measure/workload/workload.h"

namespace viaduct::measure {

// The storage at the other end of each device, if the layout has no targets.
struct StorageChoice {
  MemoryKind kind = MemoryKind::kFile;  // or kObject
  std::string place = {};               // the folder of the files, or the bucket of the objects
  // The files that the user named. A named file that does not exist is made without a name, and so
  // are all files if the user named none. Files without a name end with the run.
  std::vector<std::string> names = {};
  std::uint32_t files = 1;  // of each device
  bool overwrite = false;   // a write may change existing files
  bool cached = false;      // reads and writes of files go through the page cache
  friend bool operator==(const StorageChoice&, const StorageChoice&) = default;
};

struct Spec {
  Layout layout = {};
  StorageChoice storage = {};
  std::vector<Workload> rows = {};
  std::uint32_t threads = 1, depth = 1;  // threads of a pair; transfers in flight of a thread
  // If set, the rows measure this pipeline instead of streams.
  std::optional<pipeline::Pipeline> pipeline = {};
  pipeline::StorageOptions pipeline_data = {};
  std::string net_require = {};  // TransferOptions::require of transfers between processes
  bool bidirectional = false;
  bool ping_pong = false;
  bool recreate = false, reregister = false;  // before every transfer

  MemoryChoice memory = MemoryChoice::kAllocate;
  bool huge_pages = false;
  // The GPU of a side's first device, if the side's devices have GPU memory. Nothing: host memory.
  std::optional<std::uint32_t> initiator_gpu = {}, target_gpu = {};
  std::uint64_t buffer_bytes = 0;  // of each process; 0: as much as the rows need
  std::uint64_t working_set = 0;   // bytes that each stream cycles through; 0: `depth` transfers

  std::chrono::nanoseconds warmup = std::chrono::milliseconds(50);
  std::chrono::nanoseconds duration = std::chrono::milliseconds(400);
  std::uint32_t repeat = 1;
  double rate = 0;  // transfers a second that each thread starts; 0: closed loop
  bool poisson = false;
  std::uint64_t background = 0;  // bytes of each background transfer beside the streams; 0: none

  Verified verify = Verified::kSampled;
  bool fresh = false;  // every block of every transfer has new bytes
  std::string require = {};
  std::vector<LinkRate> link_rates = {};
  std::chrono::nanoseconds interval{0};  // between rates that are reported during a row; 0: none
  std::uint64_t seed = 1;
  FlagNames flags = {};  // the command's flags, for texts that advise flags
  friend bool operator==(const Spec&, const Spec&) = default;
};

// Returns the number of the device at an end of a pair.
constexpr std::uint32_t numberOf(const Pair& pair, Role role) {
  return role == Role::kInitiator ? pair.initiator : pair.target;
}

// The side whose devices a row reports one by one: the side with several GPUs. If both sides have
// several, the side with more.
struct ScaledSide {
  Role role = Role::kInitiator;
  std::uint32_t devices = 0;
};
// Returns nothing if no side has several GPUs, or if the rate does not depend on their number.
std::optional<ScaledSide> scaledSide(const Spec& spec);

// Returns the spec as options for a result file. Members compare them.
std::vector<Option> optionsOf(const Spec& spec);

// Background transfers in flight between two devices. Their memory is at the end of each device's
// memory.
constexpr std::uint64_t kBackgroundDepth = 4;

// The bytes of memory of one device on each side, without the memory for background transfers.
struct DeviceBytes {
  std::uint64_t initiator = 0, target = 0;
  friend bool operator==(const DeviceBytes&, const DeviceBytes&) = default;
};
// Computes DeviceBytes. Fails if a transfer does not fit into its stream's part of the requested
// memory.
Result<DeviceBytes> deviceBytes(const Spec& spec);
// Returns the bytes of each file of a device. The device's blocks are spread over its files in
// turns.
std::uint64_t fileBytes(const Spec& spec, const DeviceBytes& bytes);
// Returns the bytes of host memory for each device. For a GPU's memory, checks need as much host
// memory as the rows use.
DeviceBytes hostBytes(const Spec& spec, const DeviceBytes& bytes);
// Returns the bytes of all devices that a process owns. Storage has as many bytes of memory, for
// checks.
std::uint64_t processBytes(const Spec& spec, const DeviceBytes& bytes, std::uint32_t rank);

// The memory of a stream's transfers: `count` sets of blocks, `stride` bytes apart, from these
// offsets in the two devices' memory. If `count` is at least Spec::depth, transfer k uses set k %
// count.
struct Sets {
  std::uint64_t initiator_at = 0, target_at = 0, count = 1, stride = 0;
  friend bool operator==(const Sets&, const Sets&) = default;
};
Sets setsOf(const Spec& spec, const Workload& row, const Stream& stream, const DeviceBytes& bytes);
// Returns the bytes that one side of a row cycles through, in all streams together. 0: unknown.
std::uint64_t workingSet(const Spec& spec, const Workload& row);
// Returns the largest working set of all rows.
std::uint64_t largestWorkingSet(const Spec& spec);

}  // namespace viaduct::measure
