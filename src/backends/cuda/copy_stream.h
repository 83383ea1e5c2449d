// A stream of a GPU, for copies in one direction. Copies are launched in batches, which end in
// order. Threads: one at a time.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backends/cuda/end_bell.h"
#include "backends/cuda/pinned_memory.h"
#include "backends/cuda/rows.h"
#include "cuda/context.h"

namespace viaduct::cuda {

enum class Direction : std::uint8_t { kIn, kOut, kWithin };  // to the GPU, to host memory, neither
inline constexpr std::size_t kDirections = 3;
using Sizes = std::array<std::uint64_t, kDirections>;

inline constexpr std::size_t kMostCopies = 2048;  // of a batch
inline constexpr std::size_t kMostPins = 64;      // that a batch touches
// A batch is launched as a whole, and cancelling waits for it: 3 ms at 40 GB/s.
inline constexpr std::uint64_t kMostBatchBytes = std::uint64_t{128} << 20U;

// Copies that the GPU does at once.
struct Batch {
  // A pin that the batch has entered, and the part of it whose number was compared last.
  struct Use {
    std::shared_ptr<PinnedMemory> pin;
    const MemoryRange* checked = nullptr;
  };
  std::uint32_t job = 0;
  std::uint64_t bytes = 0;
  std::uint64_t by_kernel = 0;  // of the bytes, once launched
  std::vector<Use> uses = {};
  std::vector<Copy> engine = {};  // for the copy engines
  // For the kernel, by the addresses that kernels use, and the same by the usual addresses.
  std::vector<Copy> kernel = {}, plain = {};

  // Room for one more op, with two pins more.
  bool full() const {
    return engine.size() + kernel.size() >= kMostCopies || bytes >= kMostBatchBytes ||
           uses.size() + 2 > kMostPins;
  }
  bool empty() const { return engine.empty() && kernel.empty(); }
  // Leaves the pins.
  void clear();
};

class CopyStream {
 public:
  static constexpr std::size_t kBatches = 3;

  // `kernel` may be null. A kernel has `groups` groups of threads.
  static Result<std::unique_ptr<CopyStream>> open(std::shared_ptr<const Context> context,
                                                  CUfunction kernel, std::uint32_t groups,
                                                  std::shared_ptr<EndBell> bell);
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // The batch to fill and launch next; null: all are in flight.
  Batch* next() { return in_flight_ == kBatches ? nullptr : &slot(in_flight_).batch; }
  // Launches next(), with the context current. Also after an error, the batch comes back from
  // finish(), because a part of it may have begun.
  Status launch(Clock::time_point now);
  // The oldest batch if the GPU has ended it, with its error if it failed. release() it next.
  struct Finished {
    Batch* batch = nullptr;
    std::optional<Error> why = {};
  };
  Finished finished();
  void release();
  bool idle() const { return in_flight_ == 0; }
  // Lets batches that were launched before `before` ring the bell at their end.
  void ringFor(Clock::time_point before);
  // Whether a batch is in flight that will not ring.
  bool silent() const { return rings_ < in_flight_; }
  // Waits for all batches. For calibration.
  Status synchronize();

 private:
  struct Slot {
    Batch batch = {};
    CUevent ended = nullptr;
    bool recorded = false;
    std::optional<Error> why = {};
    Clock::time_point launched = {};
    Row* host_rows = nullptr;
    CUdeviceptr device_rows = 0;
  };
  CopyStream(std::shared_ptr<const Context> context, CUfunction kernel, std::uint32_t groups,
             std::shared_ptr<EndBell> bell)
      : context_(std::move(context)), kernel_(kernel), groups_(groups), bell_(std::move(bell)) {}
  Slot& slot(std::size_t from_oldest) { return slots_[(oldest_ + from_oldest) % kBatches]; }
  Status open();
  Status copyByEngine(std::span<const Copy> copies);
  Status copyByKernel(Slot& slot);
  Status record(Slot& slot);

  const std::shared_ptr<const Context> context_;
  CUfunction kernel_;
  const std::uint32_t groups_;
  const std::shared_ptr<EndBell> bell_;
  CUstream stream_ = nullptr;
  CUstream ringing_ = nullptr;  // waits for batches, and rings: a callback delays its stream
  void* host_rows_ = nullptr;
  CUdeviceptr device_rows_ = 0;
  std::array<Slot, kBatches> slots_;
  std::size_t most_rows_ = 0;  // of a batch
  std::vector<Row> rows_;
  std::size_t oldest_ = 0, in_flight_ = 0;
  std::size_t rings_ = 0;  // the oldest ones ring
};

}  // namespace viaduct::cuda
