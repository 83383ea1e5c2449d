#include "backends/cuda/calibrate.h"

#include <algorithm>
#include <chrono>

#include "backends/cuda/mapped_memory.h"
#include "base/sizes.h"

namespace viaduct::cuda {
namespace {

constexpr std::chrono::milliseconds kMostTime{50};
// The buffers of a GPU are larger than its caches, so that copies within it use its memory. Over
// the bus smaller buffers are enough, and registering a large host buffer takes time.
constexpr std::uint64_t kBytesWithin = 64 * base::kMiB, kBytesOverBus = 8 * base::kMiB;
constexpr std::uint64_t kLeast = 4 * base::kKiB, kBlocks = 64;
constexpr int kRounds = 3;

// Two buffers on the GPU and one in registered host memory.
struct TrialBuffers {
  explicit TrialBuffers(std::shared_ptr<const Context> on)
      : owner(std::move(on)), context(*owner) {}
  ~TrialBuffers() {
    context.api().memFree(first);
    context.api().memFree(second);
  }
  TrialBuffers(const TrialBuffers&) = delete;
  TrialBuffers& operator=(const TrialBuffers&) = delete;
  Status allocate() {
    VIADUCT_CUDA_CALL(context, memAlloc, &first, kBytesWithin);
    VIADUCT_CUDA_CALL(context, memAlloc, &second, kBytesWithin);
    VIADUCT_TRY(host, MappedMemory::allocate(owner, kBytesOverBus));
    return Ok{};
  }

  const std::shared_ptr<const Context> owner;
  const Context& context;
  CUdeviceptr first = 0, second = 0;
  MappedMemory host = {};
};

class Calibration {
 public:
  explicit Calibration(const TrialBuffers& buffers) : buffers_(buffers) {}

  // Returns the smallest block size at which the copy engine is as fast as the kernel, or 0 if that
  // is kLeast. If no measured size is like that, returns a larger one.
  Result<std::uint64_t> measure(CopyStream& stream, Direction direction) {
    const std::uint64_t most = bytesOf(direction) / 4;
    for (std::uint64_t block = kLeast; block <= most; block *= 4) {
      if (Clock::now() > until_) return block;
      VIADUCT_TRY(const Duration kernel, shortest(stream, direction, block, true));
      VIADUCT_TRY(const Duration engine, shortest(stream, direction, block, false));
      if (engine <= kernel) return block == kLeast ? 0 : block;
    }
    return most * 4;
  }

 private:
  static std::uint64_t bytesOf(Direction direction) {
    return direction == Direction::kWithin ? kBytesWithin : kBytesOverBus;
  }
  Result<Duration> shortest(CopyStream& stream, Direction direction, std::uint64_t block,
                            bool by_kernel) {
    Duration best = Duration::max();
    for (int round = 0; round < kRounds; ++round) {
      fill(*stream.next(kBlocks, block), direction, block, by_kernel);
      const auto begun = Clock::now();
      const Status launched = stream.launch(begun);
      const Status ended = stream.synchronize();
      best = std::min<Duration>(best, Clock::now() - begun);
      stream.release(begun);
      VIADUCT_CHECK(launched);
      VIADUCT_CHECK(ended);
    }
    return best;
  }

  // Adds blocks from the last to the first, with gaps of a block between them if there is room.
  void fill(CopyBatch& batch, Direction direction, std::uint64_t block, bool by_kernel) const {
    const std::uint64_t room = bytesOf(direction) / block;
    const std::uint64_t step = room >= 2 * kBlocks ? 2 * block : block;
    const std::uint64_t count = std::min(kBlocks, room);
    CUdeviceptr from = buffers_.first, to = buffers_.second;
    if (direction == Direction::kIn) from = buffers_.host.device();
    if (direction == Direction::kOut) to = buffers_.host.device();
    batch.kernel_copies = by_kernel ? count : 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = (count - 1 - i) * step;
      const Copy copy{from + at, to + at, block};
      if (by_kernel)
        batch.rows.add(copy);
      else
        batch.engine.push_back(copy);
    }
  }

  const TrialBuffers& buffers_;
  const Clock::time_point until_ = Clock::now() + kMostTime;
};

}  // namespace

Result<Sizes> calibrate(const std::shared_ptr<const Context>& context,
                        const std::array<std::unique_ptr<CopyStream>, kDirections>& streams) {
  VIADUCT_TRY(const auto current, Current::of(*context));
  TrialBuffers buffers(context);
  VIADUCT_CHECK(buffers.allocate());
  Calibration calibration(buffers);
  Sizes out{};
  for (std::size_t i = 0; i < kDirections; ++i) {
    VIADUCT_TRY(out[i], calibration.measure(*streams[i], static_cast<Direction>(i)));
  }
  return out;
}

}  // namespace viaduct::cuda
