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

#include "backends/cuda/gpu_kernel.h"
#include "backends/cuda/mapped_memory.h"
#include "backends/cuda/pinned_memory.h"
#include "backends/cuda/rows.h"
#include "base/sizes.h"
#include "cuda/context.h"
#include "cuda/end_bell.h"
#include "move/job.h"

namespace viaduct::cuda {

enum class Direction : std::uint8_t { kIn, kOut, kWithin };  // to the GPU, to host memory, neither
inline constexpr std::size_t kDirections = 3;
using Sizes = std::array<std::uint64_t, kDirections>;

inline constexpr std::size_t kMostCopies = 4096;  // of a batch
inline constexpr std::size_t kMostPins = 64;      // that a batch touches
// The most bytes of a batch. A cancel waits for all launched batches: about 5 ms over a bus of 50
// GB/s. Drivers report an end up to 0.3 ms late, so several batches are in flight over a bus.
// Within a GPU a batch of this size takes 0.1 ms or less.
inline constexpr std::uint64_t kMostBytesOverBus = 32 * base::kMiB,
                               kMostBytesWithin = 128 * base::kMiB;
constexpr std::uint64_t mostBytesOfBatch(Direction direction) {
  return direction == Direction::kWithin ? kMostBytesWithin : kMostBytesOverBus;
}

// Copies that are launched together, and end together.
struct CopyBatch {
  struct SureRange {
    std::uint64_t address = 0, bytes = 0;
    bool covers(std::uint64_t at, std::uint64_t length) const {
      return length <= bytes && at - address <= bytes - length;
    }
  };
  // A pin that the batch has entered.
  struct Use {
    std::shared_ptr<PinnedMemory> pin;
    SureRange sure = {};  // known to be the memory that was pinned
  };
  move::Job* job = nullptr;
  std::size_t most_copies = kMostCopies, most_rows = 0;
  std::uint64_t bytes = 0, most_bytes = 0;
  std::vector<Use> uses = {};
  std::vector<Copy> engine = {};  // for the copy engines
  // The copies for the kernel: their rows and their number.
  RowWriter rows = {};
  std::size_t kernel_copies = 0;

  // True: there is no room for one more op with two more pins.
  bool full() const {
    return engine.size() + kernel_copies >= most_copies || bytes >= most_bytes ||
           (kernel_copies != 0 && rows.written() + RowWriter::kMostOfCopy > most_rows) ||
           uses.size() + 2 > kMostPins;
  }
  // The number of further copies that the batch can have, if they are for the kernel.
  std::size_t kernelRoom() const { return most_copies - engine.size() - kernel_copies; }
  bool empty() const { return engine.empty() && kernel_copies == 0; }
  // Empties the batch, and leaves the pins that it has entered.
  void clear();
};

class CopyStream {
 public:
  // The most batches in flight. Within a GPU batches are short, and the tables of rows of only a
  // few batches stay in the caches.
  static constexpr std::size_t kBatches = 8, kBatchesWithin = 3;

  // `kernel` may be null. It outlives the stream. A launch has at most `groups` groups of threads.
  static Result<std::unique_ptr<CopyStream>> open(std::shared_ptr<const Context> context,
                                                  Direction direction, const GpuKernel* kernel,
                                                  std::uint32_t groups,
                                                  std::shared_ptr<EndBell> bell);
  ~CopyStream();
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;

  // The batch to fill and launch next; null: all are in flight. It will have at most `copies`
  // copies, of about `bytes` bytes each.
  CopyBatch* next(std::size_t copies, std::uint64_t bytes);
  // Launches next(), with the context current. Even after an error the batch comes back from
  // finished(), because a part of it may have begun.
  Status launch(Clock::time_point now);
  // The oldest batch if the GPU has ended it, with its error if it failed. release() it next.
  struct FinishedBatch {
    CopyBatch* batch = nullptr;
    std::optional<Error> why = {};
  };
  FinishedBatch finished();
  void release(Clock::time_point now);
  bool idle() const { return in_flight_ == 0; }
  // Lets the batches ring the bell at their end, if none was launched or has ended since `before`.
  void ringFor(Clock::time_point before);
  // Whether a batch is in flight that will not ring.
  bool silent() const { return rings_ < in_flight_; }
  // Waits for all batches. Calibration uses this.
  Status synchronize();

 private:
  struct CopySlot {
    CopyBatch batch = {};
    CUevent ended = nullptr;
    bool recorded = false;
    std::optional<Error> why = {};
    Row* rows = nullptr;
    CUdeviceptr kernel_rows = 0;  // the address of `rows` for kernels
  };
  CopyStream(std::shared_ptr<const Context> context, const GpuKernel* kernel, std::uint32_t groups,
             std::shared_ptr<EndBell> bell)
      : context_(std::move(context)), kernel_(kernel), groups_(groups), bell_(std::move(bell)) {}
  CopySlot& slot(std::size_t from_oldest) {
    return slots_[(oldest_ + from_oldest) % most_in_flight_];
  }
  Status open(Direction direction);
  Status copyByEngine(std::span<const Copy> copies);
  Status copyByKernel(CopySlot& slot);
  Status record(CopySlot& slot);

  const std::shared_ptr<const Context> context_;
  const GpuKernel* const kernel_;
  const std::uint32_t groups_;
  const std::shared_ptr<EndBell> bell_;
  CUstream stream_ = nullptr;
  CUstream ringing_ = nullptr;  // for callbacks, because these delay their stream
  MappedMemory rows_;           // of all batches
  std::array<CopySlot, kBatches> slots_;
  std::size_t most_in_flight_ = kBatches;
  std::size_t oldest_ = 0, in_flight_ = 0;
  std::size_t rings_ = 0;         // the number of oldest batches that will ring
  Clock::time_point moved_ = {};  // when a batch was launched, or seen to have ended
};

}  // namespace viaduct::cuda
