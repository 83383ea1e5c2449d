// The flows of a pipeline, which move bytes again and again: a stage alone, or a part of the whole
// pipeline. Threads: see the functions.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/run/ring_gate.h"
#include "measure/workload/chunks.h"

namespace viaduct::measure::pipeline {

// One side of a flow.
struct FlowSide {
  PinInfo pin = {};
  bool ring = false;  // the memory is a ring of chunks; false: it has room for all bytes
};

struct FlowOptions {
  std::uint64_t bytes = 0;
  Chunking chunks = {};
  std::string require = {};  // as TransferOptions::require
};

// The gates of the rings between a flow and its neighbours in a chain. Null: no neighbour there.
struct Neighbours {
  RingGate* before = nullptr;  // of the ring that the flow empties
  RingGate* after = nullptr;   // of the ring that the flow fills

  // Returns whether chunks with numbers below `end` may be moved. Waits up to `patience` for each
  // ring.
  RingGate::Turn turn(std::uint64_t end, std::chrono::nanoseconds patience) const;
  void moved(std::uint64_t end) const;
  void leave(bool complete) const;
};

// A copy that moves its bytes again and again. Threads: one at a time.
class Flow {
 public:
  // Plans the copy from memory or storage of this agent into memory or storage of `peer`. The copy
  // is one transfer. If a side is a ring, each chunk is a transfer, and as many are in flight as
  // the ring has room for.
  static Result<Flow> plan(Agent& agent, const Peer& peer, const FlowOptions& options,
                           const FlowSide& from, const FlowSide& into);

  // Moves the bytes until `enough` is set, at least once. Calls `moved` after the first time.
  // Returns early with an error, or once `cancel` is set. A flow with a neighbour before it
  // continues until it has moved all bytes of that neighbour, or until a neighbour has failed.
  Status run(const std::atomic<bool>& enough, const std::atomic<bool>& cancel,
             const std::function<void()>& moved, const Neighbours& neighbours = {});

  // Returns how often all bytes have moved, in all runs. Any thread.
  std::uint64_t allTimes() const { return all_times_->load(std::memory_order_relaxed); }
  // The next six functions describe the last run().
  std::uint64_t times() const { return times_; }
  std::chrono::nanoseconds busy() const { return busy_; }  // time with a chunk in flight
  std::chrono::nanoseconds took() const { return took_; }  // time until the last transfer ended
  Clock::time_point began() const { return began_; }
  std::uint64_t bytes() const { return bytes_; }  // bytes of one pass
  Path path() const;                              // of all passes together

 private:
  Flow(std::uint64_t bytes, std::uint64_t at_once, std::uint64_t chunks)
      : bytes_(bytes), at_once_(at_once), chunks_(chunks) {}
  class Pass;
  std::uint64_t chunksUpTo(std::size_t transfer) const;

  std::uint64_t bytes_;
  std::uint64_t at_once_;  // transfers in flight
  std::uint64_t chunks_;   // of all transfers
  std::vector<Transfer> transfers_ = {};
  Path before_ = {};  // the path of all bytes before the last run()
  std::unique_ptr<std::atomic<std::uint64_t>> all_times_ =
      std::make_unique<std::atomic<std::uint64_t>>(0);
  std::uint64_t times_ = 0;
  Clock::time_point began_ = {};
  std::chrono::nanoseconds took_{0}, busy_{0};
};

// Returns the busy nanoseconds of each stage of a staged path, in the order of the stages. Empty:
// the path is direct.
std::vector<std::uint64_t> busyTimes(const Path& path);

// Returns the mechanisms of a path, without amounts: "file/uring", "tcp/socket".
std::string wayOf(const Path& path);

// Reads the first bytes of an object in its present version.
Result<std::vector<std::byte>> readObject(Agent& agent, const std::string& url,
                                          std::uint64_t bytes);

}  // namespace viaduct::measure::pipeline
