// The network devices of this host, and how many bytes they can carry. Threads: pure functions and
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

enum class DeviceKind : std::uint8_t { kLoopback, kEthernet, kVirtual, kRdma };

// A network device. Unknown fields are empty or 0.
struct Device {
  std::string name = {};  // "eth0", "mlx5_0"; a second port of an RDMA device is "mlx5_1:2"
  DeviceKind kind = DeviceKind::kVirtual;
  std::vector<std::string> addresses = {};
  // namedDevices() leaves the fields below empty, because they need many files.
  std::uint64_t link_bytes_per_s = 0;  // 0 for virtual devices, except above hardware: bond, VLAN
  std::uint64_t pcie_bytes_per_s = 0;  // of its slot, after line coding
  std::string pcie = {};               // "16.0 GT/s x8"
  int numa = -1;
  std::vector<std::string> lower = {};  // the devices below a bond or a VLAN
  friend bool operator==(const Device&, const Device&) = default;
};

// Interfaces of this process's network namespace and RDMA devices of this host, by name.
std::vector<Device> devices(const Tree& tree = {});
// The same devices with names and addresses alone. The kind of each interface but "lo" is kVirtual.
std::vector<Device> namedDevices(const Tree& tree = {});
// The device of namedDevices() that has that name or that address.
std::optional<Device> findDevice(std::string_view name_or_address, const Tree& tree = {});

// Why a device, given by name or address, cannot be used yet: it is absent, down, or without a
// carrier or an address. Empty: it is ready, or no device is known to have the address. All of
// 127.0.0.0/8 is usable, for example, and little of it is listed.
std::string notReady(const std::string& name_or_address, const Tree& tree = {});

}  // namespace viaduct::host
