#include "device/fake/address_space.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace viaduct::fakegpu {
namespace {

// With this fixed start, two processes often have the same device addresses. Users must not mix
// them.
constexpr std::uint64_t kWish = 0x300000000000;

CUdeviceptr reserve(std::uint64_t wish, std::size_t bytes) {
  void* got = ::mmap(reinterpret_cast<void*>(wish), bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED) {
    std::perror("fake libcuda.so.1: mmap");
    std::abort();
  }
  return reinterpret_cast<CUdeviceptr>(got);
}

bool replace(CUdeviceptr at, std::size_t bytes, int protection, int flags, int file) {
  return ::mmap(reinterpret_cast<void*>(at), bytes, protection, flags | MAP_FIXED, file, 0) !=
         MAP_FAILED;
}

}  // namespace

void AddressSpace::open() {
  const CUdeviceptr got = reserve(kWish, kBytes + kDevicePage);
  start_ = roundUp(got, kDevicePage);
  alias_ = roundUp(reserve(0, kBytes + kDevicePage), kDevicePage);
}

bool AddressSpace::isFree(CUdeviceptr at, std::size_t bytes) const {
  const auto next = taken_.lower_bound(at);
  if (at < start_ || at + bytes > start_ + kBytes) return false;
  if (next != taken_.end() && at + bytes > next->first) return false;
  return next == taken_.begin() || std::prev(next)->first + std::prev(next)->second <= at;
}

CUdeviceptr AddressSpace::take(std::size_t bytes, std::size_t alignment, CUdeviceptr wish) {
  const std::size_t length = roundUp(bytes, kDevicePage);
  CUdeviceptr at = start_;
  if (wish != 0 && wish % alignment == 0 && isFree(wish, length)) at = wish;
  for (auto next = taken_.begin(); !isFree(at, length); ++next) {
    if (next == taken_.end()) return 0;
    at = roundUp(next->first + next->second, alignment);
  }
  taken_[at] = length;
  return at;
}

std::byte* AddressSpace::alias(CUdeviceptr address) const {
  return reinterpret_cast<std::byte*>(address - start_ + alias_);
}

bool AddressSpace::map(CUdeviceptr at, std::size_t bytes, int file, bool cpu) const {
  constexpr int kBoth = PROT_READ | PROT_WRITE;
  const auto alias_at = reinterpret_cast<CUdeviceptr>(alias(at));
  return replace(alias_at, bytes, kBoth, MAP_SHARED, file) &&
         (!cpu || replace(at, bytes, kBoth, MAP_SHARED, file));
}

void AddressSpace::unmap(CUdeviceptr at, std::size_t bytes) const {
  constexpr int kEmpty = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const auto alias_at = reinterpret_cast<CUdeviceptr>(alias(at));
  if (!replace(alias_at, bytes, PROT_NONE, kEmpty, -1) ||
      !replace(at, bytes, PROT_NONE, kEmpty, -1))
    std::abort();
}

}  // namespace viaduct::fakegpu
