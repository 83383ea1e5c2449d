// The device addresses of this process. The CPU cannot touch them. The fake GPU reaches the same
// memory under other addresses, its aliases, at a constant distance. Threads: one at a time.
#pragma once

#include <cstddef>
#include <map>

#include "device/fake/driver_types.h"

namespace viaduct::fakegpu {

// The driver maps memory in pages of this size.
inline constexpr std::size_t kDevicePage = std::size_t{2} << 20;

inline std::size_t roundUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

class AddressSpace {
 public:
  // Reserves the addresses. Ends the process if that fails.
  void open();

  // Takes the lowest free range, or the one at `wish` if it is free. 0: there is none. The lowest
  // is often one that was freed just before, as with the real driver.
  CUdeviceptr take(std::size_t bytes, std::size_t alignment, CUdeviceptr wish = 0);
  void give(CUdeviceptr start) { taken_.erase(start); }

  bool contains(CUdeviceptr address) const {
    return address >= start_ && address < start_ + kBytes;
  }
  std::byte* alias(CUdeviceptr address) const;

  // Maps the file's first bytes to the alias, and to the address itself if the CPU may touch it.
  bool map(CUdeviceptr at, std::size_t bytes, int file, bool cpu) const;
  void unmap(CUdeviceptr at, std::size_t bytes) const;

 private:
  bool isFree(CUdeviceptr at, std::size_t bytes) const;

  static constexpr std::size_t kBytes = std::size_t{64} << 30;

  CUdeviceptr start_ = 0;
  CUdeviceptr alias_ = 0;
  std::map<CUdeviceptr, std::size_t> taken_;
};

}  // namespace viaduct::fakegpu
