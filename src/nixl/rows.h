// The numbers of a list of descriptors. Threads: plain values.
#pragma once

#include <viaduct/blocks.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace viaduct::nixl {

// The rows (address, bytes, device) or (address, bytes, device, stride, count) of a list. They may
// be empty, and overlap.
struct Rows {
  std::vector<Extent> extents = {};         // from rows of three numbers
  std::vector<Run> runs = {};               // from rows of five numbers
  std::uint64_t device = 0;                 // the device of every row if `devices` is empty
  std::vector<std::uint64_t> devices = {};  // otherwise the device of each row

  std::size_t count() const { return extents.size() + runs.size(); }
  std::uint64_t deviceOf(std::size_t row) const { return devices.empty() ? device : devices[row]; }
  void setDevice(std::size_t row, std::uint64_t to);
  // Records the device of the row that the caller adds next.
  void addDevice(std::uint64_t of_next);
  void remove(std::size_t row);
};

}  // namespace viaduct::nixl
