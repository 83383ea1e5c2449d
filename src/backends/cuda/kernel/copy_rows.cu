// The copy kernel. make_ptx.sh makes copy_rows_ptx.h from this file, and the product contains that
// text. Tests compile this file for the host, over tests/device/kernel_on_host.h.
#include "backends/cuda/row.h"

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming)

namespace viaduct::cuda {
namespace {

// The source or the target of a row, as one lane of a warp goes through it. A unit is one access.
// After each unit the lane goes kLanes units further. A block may have fewer units than kLanes.
class RowSide {
 public:
  __device__ RowSide(const Row& row, std::uint64_t first, std::uint64_t step,
                     std::uint32_t block_units, std::uint32_t lane)
      : at_(first + lane / block_units * step + lane % block_units * std::uint64_t{row.width}),
        unit_(lane % block_units),
        hop_(kLanes / block_units * step + kLanes % block_units * std::uint64_t{row.width}),
        end_(step - row.bytes) {}

  // Returns the unit's address and goes on.
  __device__ std::uint64_t next(std::uint32_t block_units) {
    const std::uint64_t address = at_;
    at_ += hop_;
    unit_ += kLanes % block_units;
    if (unit_ >= block_units) {
      at_ += end_;
      unit_ -= block_units;
    }
    return address;
  }

 private:
  std::uint64_t at_;
  std::uint32_t unit_;  // index of the unit in its block
  std::uint64_t hop_;
  std::uint64_t end_;  // added to `hop_` at the end of a block
};

// One warp copies one row. Neighbouring lanes copy neighbouring units, and each lane starts
// kInFlight loads before it stores the first. No access uses the L1 cache: nothing is read twice,
// and that cache would not see what other GPUs and the host write.
template <class Unit>
__device__ void copyRow(const Row& row, std::uint32_t lane) {
  const auto block_units = static_cast<std::uint32_t>(row.bytes / sizeof(Unit));
  const std::uint32_t units = block_units * row.count;
  RowSide from(row, row.from, row.from_step, block_units, lane);
  RowSide to(row, row.to, row.to_step, block_units, lane);
  for (std::uint32_t unit = lane; unit < units; unit += kInFlight * kLanes) {
    Unit held[kInFlight];
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      const std::uint64_t address = from.next(block_units);
      if (unit + i * kLanes < units) held[i] = __ldcg(reinterpret_cast<const Unit*>(address));
    }
    for (std::uint32_t i = 0; i < kInFlight; ++i) {
      const std::uint64_t address = to.next(block_units);
      if (unit + i * kLanes < units) __stcg(reinterpret_cast<Unit*>(address), held[i]);
    }
  }
}

}  // namespace
}  // namespace viaduct::cuda

// If a launch has W warps, warp i copies the rows i, i + W, i + 2W and so on. Groups have whole
// warps. Two groups fit the registers of a multiprocessor, which then has 1,024 threads with four
// loads each in flight.
extern "C" __global__ void __launch_bounds__(viaduct::cuda::kMostThreadsOfGroup, 2)
    viaduct_copy_rows(const viaduct::cuda::Row* rows, std::uint32_t count) {
  using namespace viaduct::cuda;
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t warps = gridDim.x * blockDim.x / kLanes;
  for (std::uint32_t at = thread / kLanes; at < count; at += warps) {
    const Row row = rows[at];
    switch (row.width) {
      case 16:
        copyRow<uint4>(row, thread % kLanes);
        break;
      case 8:
        copyRow<uint2>(row, thread % kLanes);
        break;
      case 4:
        copyRow<unsigned int>(row, thread % kLanes);
        break;
      default:
        copyRow<unsigned char>(row, thread % kLanes);
    }
  }
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
