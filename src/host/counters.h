// How many bytes each device has carried so far. Threads: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::host {

// As the device counts: in `unit` bytes, and with 32 bits where it is old.
struct Counter {
  std::string device = {};
  std::uint64_t sent = 0, received = 0;
  std::uint32_t unit = 1;
  friend bool operator==(const Counter&, const Counter&) = default;
};

// Of interfaces and RDMA devices, named as in devices(). A device that does not tell is left out.
std::vector<Counter> readCounters(const std::string& root = "/");

// Bytes between two readings of one counter.
struct Delta {
  std::uint64_t bytes = 0;
  bool wrapped = false;  // went through 2^32: the true figure may be larger by multiples of that
};
// Nothing when they do not belong together: the device was reset, or its counter stands at its end.
std::optional<Delta> deltaOf(std::uint64_t before, std::uint64_t after, std::uint32_t unit);

}  // namespace viaduct::host
