// The kernel's source, run on the host over random rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cuda/copies_testing.h"
#include "backends/cuda/kernel/copy_rows_ptx.h"
#include "backends/cuda/rows.h"
#include "base/random.h"
#include "device/kernel_on_host.h"
#include "support/bytes.h"
// This include has to follow kernel_on_host.h, which compiles the kernel for the host.
#include "backends/cuda/kernel/copy_rows.cu"

namespace viaduct::cuda {
namespace {

using testing::KernelAccess;

constexpr std::uint64_t kMemory = 60'000;
constexpr std::uint64_t kFrom = 0x7000'0000'0000, kTo = 0x7100'0000'0000;

// The memory of a GPU that exists during one test: one allocation to read and one to write.
struct KernelMemory {
  std::vector<std::byte> from, to;
  std::vector<std::uint8_t> stores;  // number of stores to each byte of `to`
  explicit KernelMemory(std::uint64_t seed) : from(kMemory), to(kMemory), stores(kMemory) {
    testing::fillRandom(from, seed);
    now = this;
    testing::find_kernel_bytes = &KernelMemory::find;
  }
  ~KernelMemory() {
    testing::find_kernel_bytes = nullptr;
    now = nullptr;
  }
  KernelMemory(const KernelMemory&) = delete;
  KernelMemory& operator=(const KernelMemory&) = delete;

  static void* find(std::uint64_t address, std::size_t bytes, KernelAccess access) {
    if (address % bytes != 0) throw std::runtime_error("a misaligned access");
    const bool load = access == KernelAccess::kLoad;
    const std::uint64_t at = address - (load ? kFrom : kTo);
    if (at > kMemory - bytes) throw std::runtime_error("an access outside the memory");
    if (load) return &now->from[at];
    for (std::size_t i = 0; i < bytes; ++i) ++now->stores[at + i];
    return &now->to[at];
  }
  static inline KernelMemory* now = nullptr;
};

void copyOnHost(const std::vector<Copy>& copies, std::uint32_t groups, std::uint32_t threads) {
  std::vector<Copy> placed = copies;
  for (Copy& copy : placed) {
    copy.from += kFrom;
    copy.to += kTo;
  }
  const std::vector<Row> rows = cut(placed, groups * threads / kLanes);
  testing::runKernel(groups, threads, viaduct_copy_rows, rows.data(),
                     static_cast<std::uint32_t>(rows.size()));
}

void expectCopied(const std::vector<Copy>& copies, const KernelMemory& memory) {
  std::vector<std::byte> to(kMemory);
  std::vector<std::uint8_t> stores(kMemory);
  for (const Copy& copy : copies) {
    std::copy_n(memory.from.begin() + static_cast<std::ptrdiff_t>(copy.from), copy.bytes,
                to.begin() + static_cast<std::ptrdiff_t>(copy.to));
    std::fill_n(stores.begin() + static_cast<std::ptrdiff_t>(copy.to), copy.bytes, std::uint8_t{1});
  }
  EXPECT_TRUE(testing::same(memory.to, to));
  EXPECT_EQ(memory.stores, stores);
}

TEST(CopyRowsKernel, StoresEachByteOfRandomCopiesOnce) {
  base::Random random(21);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    KernelMemory memory(random.next());
    const std::vector<Copy> copies = randomCopies(random, kMemory);
    const auto groups = static_cast<std::uint32_t>(1 + random.below(3));
    copyOnHost(copies, groups, kLanes * static_cast<std::uint32_t>(1 + random.below(3)));
    expectCopied(copies, memory);
    if (::testing::Test::HasFailure()) return;
  }
}

// Blocks of fewer, as many and more units than a warp has lanes.
TEST(CopyRowsKernel, CopiesBlocksOfAnySizeForEachWidth) {
  for (const std::uint64_t width : {1U, 4U, 8U, 16U})
    for (const std::uint64_t units : {1U, 3U, 31U, 32U, 33U, 63U, 127U, 128U, 129U}) {
      SCOPED_TRACE(std::to_string(units) + " units of " + std::to_string(width));
      KernelMemory memory(units);
      const std::vector<Copy> copies =
          strided(7, {width, width * 2, width * units}, width * (units + 1), width * units);
      copyOnHost(copies, 1, kLanes);
      expectCopied(copies, memory);
    }
}

TEST(CopyRowsKernel, TheShippedTextHasItsEntry) {
  EXPECT_NE(std::string(kCopyRowsPtx).find(".entry viaduct_copy_rows("), std::string::npos);
}

}  // namespace
}  // namespace viaduct::cuda
