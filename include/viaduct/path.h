// The backends, rails and bytes that carried a transfer. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

// The suffix of PathShare::way if VIADUCT_FAULTS may have hit the share: "mapped+faults".
inline constexpr std::string_view kFaultsMark = "+faults";

// One rail's share.
struct PathShare {
  std::string backend = {};  // "local", "tcp", ...
  std::string way = {};      // the mechanism: "mapped", "cma", "direct", "socket"; see kFaultsMark
  std::string rail = {};     // the NIC, queue or socket group
  std::uint64_t bytes = 0;
  std::uint64_t ops = 0;
  std::uint64_t injected = 0;  // requests that carried their bytes inline
  std::uint64_t batches = 0;   // doorbells, or flushes of queued requests; 0: not counted
  // 0: the share went directly from memory to memory. Otherwise the transfer was staged through
  // host memory, or gpu_ring, and all of its bytes passed the stages in the order of these numbers.
  std::uint32_t stage = 0;
  // How long the stage had work. One share of each stage has the time of the whole stage.
  std::uint64_t busy_ns = 0;
  // Ops that a kernel of a GPU copied. The GPU's copy engines copied the others.
  std::uint64_t by_kernel = 0;
  bool gpu_ring = false;  // the ring between this stage and the next or previous one is on a GPU
  friend bool operator==(const PathShare&, const PathShare&) = default;
};

struct Path {
  std::vector<PathShare> shares = {};
  std::string text() const;  // "local/mapped 1.0 MiB in 16 ops", "file/uring -> host -> tcp/socket"
  void add(PathShare share);             // to the share of the same rail, if there is one
  Path since(const Path& before) const;  // the shares added after the state `before`
  friend bool operator==(const Path&, const Path&) = default;
};

}  // namespace viaduct
