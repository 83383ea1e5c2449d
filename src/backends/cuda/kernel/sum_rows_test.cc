// The sum kernel's source, run on the host over random pieces.
#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/cuda/kernel/sum_rows_ptx.h"
#include "backends/cuda/sum_table.h"
#include "base/block_sums.h"
#include "base/random.h"
#include "device/kernel_on_host.h"
#include "support/bytes.h"
// This include has to follow kernel_on_host.h, which compiles the kernel for the host.
#include "backends/cuda/kernel/sum_rows.cu"

namespace viaduct::cuda {
namespace {

using base::BlockSums;
using core::BlockPiece;
using testing::KernelAccess;

constexpr std::uint64_t kRoom = 60'000, kPlace = 0x7200'0000'0000;

// The memory of a GPU that exists during one test, and the sums that a kernel stores.
struct SumMemory {
  std::vector<std::byte> bytes;
  std::vector<BlockSums> sums;
  explicit SumMemory(std::uint64_t seed) : bytes(kRoom) {
    testing::fillRandom(bytes, seed);
    now = this;
    testing::find_kernel_bytes = &SumMemory::find;
  }
  ~SumMemory() {
    testing::find_kernel_bytes = nullptr;
    now = nullptr;
  }
  SumMemory(const SumMemory&) = delete;
  SumMemory& operator=(const SumMemory&) = delete;

  static void* find(std::uint64_t address, std::size_t size, KernelAccess access) {
    if (access == KernelAccess::kStore) {
      const std::uint64_t at = address - reinterpret_cast<std::uintptr_t>(now->sums.data());
      if (at % sizeof(BlockSums) != 0 || at / sizeof(BlockSums) >= now->sums.size())
        throw std::runtime_error("a store beside the sums");
      return reinterpret_cast<void*>(address);
    }
    if (address % size != 0) throw std::runtime_error("a misaligned access");
    if (address - kPlace > kRoom - size) throw std::runtime_error("an access outside the memory");
    return &now->bytes[address - kPlace];
  }
  static inline SumMemory* now = nullptr;

  // The sums of the pieces, whose addresses count from the start of this memory.
  std::vector<BlockSums> byKernel(std::vector<BlockPiece> pieces, std::uint64_t most,
                                  std::uint32_t groups, std::uint32_t threads) {
    for (BlockPiece& piece : pieces) piece.address += kPlace;
    std::vector<SumRow> rows(roomForSums(pieces.size(), bytesOf(pieces), most));
    rows.resize(cutSums(pieces, most, rows.data()));
    sums.assign(rows.size(), {1, 2});  // values that an earlier launch left
    testing::runKernel(groups, threads, viaduct_sum_rows, rows.data(),
                       reinterpret_cast<ulonglong2*>(sums.data()),
                       static_cast<std::uint32_t>(rows.size()));
    std::vector<BlockSums> out(pieces.size());
    for (std::size_t i = 0; i < rows.size(); ++i) out[rows[i].piece] += sums[i];
    return out;
  }
  void expectRight(const std::vector<BlockPiece>& pieces, std::uint64_t most,
                   std::uint32_t groups = 2, std::uint32_t threads = 64) {
    const auto by_kernel = byKernel(pieces, most, groups, threads);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const auto& [address, size, offset] = pieces[i];
      EXPECT_EQ(by_kernel[i], base::blockSums(offset, std::span(bytes).subspan(address, size)))
          << size << " bytes at " << address << ", from " << offset << " on, rows of " << most;
    }
  }
};

TEST(SumRowsKernel, SumsEachLengthAtEachAlignment) {
  SumMemory memory(31);
  for (const std::uint64_t shift : {0, 1, 2, 4, 7, 8, 12, 16, 24, 504, 512}) {
    std::vector<BlockPiece> pieces;
    for (std::uint64_t bytes = 0; bytes <= 3000; bytes += bytes < 600 ? 1 : 13)
      for (const std::uint64_t offset : {0, 8, 504, 512})
        pieces.push_back({.address = shift, .bytes = bytes, .offset = offset});
    memory.expectRight(pieces, 16 * base::kStripeBytes);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SumRowsKernel, SumsRandomPieces) {
  base::Random random(32);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    SumMemory memory(random.next());
    const std::uint64_t unit = std::uint64_t{1} << random.below(10);
    std::vector<BlockPiece> pieces(1 + random.below(40));
    for (BlockPiece& piece : pieces) {
      piece.bytes = random.below(kRoom / 2 / unit) * unit;
      piece.address = random.below((kRoom - piece.bytes) / unit + 1) * unit;
      piece.offset = random.chance(0.5) ? 0 : random.next() >> 24U << 3U;
    }
    memory.expectRight(pieces, (1 + random.below(50)) * base::kStripeBytes,
                       static_cast<std::uint32_t>(1 + random.below(3)),
                       kLanes * static_cast<std::uint32_t>(1 + random.below(3)));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(SumRowsKernel, RowsAreWholeStripesButForTheEndsOfPieces) {
  const std::vector<BlockPiece> pieces{{.address = 4096, .bytes = 5000, .offset = 1000}};
  std::vector<SumRow> rows(roomForSums(1, 5000, 2048));
  rows.resize(cutSums(pieces, 2048, rows.data()));
  std::vector<std::uint32_t> sizes;
  std::uint64_t at = 0;
  for (const SumRow& row : rows) {
    EXPECT_EQ(row.address, 4096 + at);
    EXPECT_EQ(row.offset, 1000 + at);
    sizes.push_back(row.bytes);
    at += row.bytes;
  }
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{24, 2048, 2048, 512, 368}));
}

TEST(SumRowsKernel, TheShippedTextHasItsEntry) {
  EXPECT_NE(std::string(kSumRowsPtx).find(".entry viaduct_sum_rows("), std::string::npos);
}

}  // namespace
}  // namespace viaduct::cuda
