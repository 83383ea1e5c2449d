// The bytes that each device has carried so far. Threads: pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

struct LinkBytes {
  std::uint64_t sent = 0, received = 0;
  friend bool operator==(const LinkBytes&, const LinkBytes&) = default;
};

// The device's own count, in units of `unit` bytes. Old devices count with 32 bits.
struct Counter {
  std::string device = {};
  std::uint64_t sent = 0, received = 0;
  std::uint32_t unit = 1;
  // The same figures from netlink, if this is an interface. Nothing: netlink does not know it.
  std::optional<LinkBytes> netlink = {};
  friend bool operator==(const Counter&, const Counter&) = default;
};

// Interfaces of this process's network namespace, from /proc/net/dev. /sys is no substitute: it
// shows the namespace in which it was mounted.
std::vector<Counter> interfaceCounters(const Tree& tree);
// Adds netlink's figures to the last of two readings of /proc/net/dev. Netlink was read between
// them, so a figure that lies between both readings agrees with the last one.
std::vector<Counter> confirmed(std::vector<Counter> last, const std::vector<Counter>& first,
                               const std::vector<Counter>& netlink);
// Counters of interfaces and RDMA devices, named as in devices(). Devices without counters are left
// out. Only counters of this machine have figures from netlink.
std::vector<Counter> readCounters(const Tree& tree = {});

// The bytes that block devices have read and written for this process, not those that the page
// cache had. Nothing if the kernel does not count them.
struct DiskBytes {
  std::uint64_t read = 0, written = 0;
  friend bool operator==(const DiskBytes&, const DiskBytes&) = default;
};
std::optional<DiskBytes> ownDiskBytes(const Tree& tree = {});

// Bytes between two readings of one counter.
struct Delta {
  std::uint64_t bytes = 0;
  bool wrapped = false;  // passed 2^32 once or more: the figure is a lower bound
};
// Nothing if the readings do not belong together: the device was reset, or its counter has stopped
// at its maximum.
std::optional<Delta> deltaOf(std::uint64_t before, std::uint64_t after, std::uint32_t unit);

}  // namespace viaduct::host
