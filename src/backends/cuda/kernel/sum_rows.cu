// The sum kernel, for digests of blocks in memory of a GPU. make_ptx.sh makes sum_rows_ptx.h from
// this file, and the product contains that text. Tests compile this file for the host, over
// tests/device/kernel_on_host.h.
#include "backends/cuda/sum_row.h"
#include "backends/cuda/warp.h"
#include "base/stripe.h"

// NOLINTBEGIN(performance-no-int-to-ptr,readability-identifier-naming)

#ifdef __CUDACC__
// Stores the sum of the values that the lanes of a warp have. `lane` is the number of this lane.
__device__ void storeSumOfWarp(ulonglong2* to, std::uint32_t lane, ulonglong2 value) {
  for (unsigned int step = viaduct::cuda::kLanes / 2; step != 0; step /= 2) {
    value.x += __shfl_xor_sync(0xffffffffU, value.x, static_cast<int>(step));
    value.y += __shfl_xor_sync(0xffffffffU, value.y, static_cast<int>(step));
  }
  if (lane == 0) __stcg(to, value);
}
#endif

namespace viaduct::cuda {
namespace {

using base::kStripeBytes;
using base::kStripeWords;
using base::stripeKey;

// The sums of words, as base::BlockSums has them.
struct Sums {
  std::uint64_t plain = 0, product = 0;
  __device__ void add(std::uint64_t x) {
    plain += x;
    product += std::uint64_t{static_cast<std::uint32_t>(x)} * static_cast<std::uint32_t>(x >> 32U);
  }
  __device__ void add(const Sums& other, std::uint64_t weight) {
    plain += weight * other.plain;
    product += weight * other.product;
  }
};

// The two words of each stripe that a lane reads. If the stripes are aligned to 16 bytes, the words
// are neighbours, and one access reads both. Otherwise each half of the stripe has one of them.
struct Words {
  bool wide;
  std::uint32_t first, second;
  __device__ Words(std::uint64_t stripes, std::uint32_t lane)
      : wide(stripes % 16 == 0),
        first(wide ? 2 * lane : lane),
        second(wide ? 2 * lane + 1 : lane + kLanes) {}
};

// The L1 cache is not used: nothing is read twice, and that cache would not see what other GPUs and
// the host write.
template <bool kWide>
__device__ ulonglong2 loadWords(std::uint64_t at) {
  if constexpr (kWide) return __ldcg(reinterpret_cast<const ulonglong2*>(at));
  const auto* const first = reinterpret_cast<const unsigned long long*>(at);
  return {__ldcg(first), __ldcg(first + kLanes)};
}

// Adds a row of whole stripes. `first` is the number of its first stripe. Stripe s of the block has
// the weight 2s + 1. `falling` counts a stripe once for itself and once for each later stripe of
// the row. Each lane starts kStripesInFlight loads before it adds the first.
template <bool kWide>
__device__ Sums sumOfStripes(std::uint64_t from, std::uint64_t first, std::uint32_t stripes,
                             const Words& words) {
  const std::uint64_t first_key = stripeKey(words.first), second_key = stripeKey(words.second);
  Sums even, falling;
  std::uint64_t at = from + 8 * words.first;
  for (std::uint32_t done = 0; done < stripes; done += kStripesInFlight) {
    ulonglong2 held[kStripesInFlight];
    for (std::uint32_t i = 0; i < kStripesInFlight; ++i)
      if (done + i < stripes) held[i] = loadWords<kWide>(at + i * kStripeBytes);
    for (std::uint32_t i = 0; i < kStripesInFlight; ++i) {
      if (done + i >= stripes) break;
      even.add(held[i].x ^ first_key);
      even.add(held[i].y ^ second_key);
      falling.add(even, 1);
    }
    at += kStripesInFlight * kStripeBytes;
  }
  Sums sums;
  sums.add(even, 2 * (first + stripes) + 1);
  sums.add(falling, ~std::uint64_t{1});  // -2
  return sums;
}

// Loads a word, or those of its bytes that the row has.
__device__ std::uint64_t loadWord(std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 8 && address % 8 == 0)
    return __ldcg(reinterpret_cast<const unsigned long long*>(address));
  std::uint64_t word = 0;
  for (std::uint32_t i = 0; i < 8; ++i)
    if (i < bytes)
      word |= std::uint64_t{__ldcg(reinterpret_cast<const unsigned char*>(address + i))} << (8 * i);
  return word;
}

// Adds any row, also one with a partial stripe. Neighbouring lanes read neighbouring words.
__device__ Sums sumOfWords(const SumRow& row, std::uint32_t lane) {
  Sums sums;
  for (std::uint32_t at = 8 * lane; at < row.bytes; at += 8 * kLanes) {
    const std::uint64_t word = (row.offset + at) / 8;
    Sums one;
    one.add(loadWord(row.address + at, row.bytes - at < 8 ? row.bytes - at : 8) ^
            stripeKey(word % kStripeWords));
    sums.add(one, 2 * (word / kStripeWords) + 1);
  }
  return sums;
}

__device__ Sums sumOf(const SumRow& row, std::uint32_t lane) {
  if ((row.offset | row.bytes) % kStripeBytes != 0 || row.address % 8 != 0)
    return sumOfWords(row, lane);
  const Words words(row.address, lane);
  const std::uint64_t first = row.offset / kStripeBytes;
  const auto stripes = static_cast<std::uint32_t>(row.bytes / kStripeBytes);
  return words.wide ? sumOfStripes<true>(row.address, first, stripes, words)
                    : sumOfStripes<false>(row.address, first, stripes, words);
}

}  // namespace
}  // namespace viaduct::cuda

// If a launch has W warps, warp i takes the rows i, i + W, i + 2W and so on. It stores the sums of
// a row at the row's index in `sums`. Groups have whole warps. Two groups fit the registers of a
// multiprocessor.
extern "C" __global__ void __launch_bounds__(viaduct::cuda::kMostThreadsOfGroup, 2)
    viaduct_sum_rows(const viaduct::cuda::SumRow* rows, ulonglong2* sums, std::uint32_t count) {
  using namespace viaduct::cuda;
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  const std::uint32_t warps = gridDim.x * blockDim.x / kLanes;
  for (std::uint32_t at = thread / kLanes; at < count; at += warps) {
    const SumRow row = rows[at];
    const Sums all = sumOf(row, thread % kLanes);
    storeSumOfWarp(sums + at, thread % kLanes, {all.plain, all.product});
  }
}
// NOLINTEND(performance-no-int-to-ptr,readability-identifier-naming)
