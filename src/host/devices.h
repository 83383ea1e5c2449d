// The network devices of this host, and how many bytes they can carry. Threads: pure functions and
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::host {

enum class DeviceKind : std::uint8_t { kLoopback, kEthernet, kVirtual, kRdma };

// A network device. Unknown fields are empty or 0.
struct Device {
  std::string name = {};  // "eth0", "mlx5_0"; a second port of an RDMA device is "mlx5_1:2"
  DeviceKind kind = DeviceKind::kVirtual;
  std::vector<std::string> addresses = {};
  std::uint64_t link_bytes_per_s = 0;  // 0 for virtual devices, except above hardware: bond, VLAN
  std::uint64_t pcie_bytes_per_s = 0;  // of its slot, after line coding
  std::string pcie = {};               // "16.0 GT/s x8"
  int numa = -1;
  std::vector<std::string> lower = {};  // the devices below it: of a bond, of a VLAN
  friend bool operator==(const Device&, const Device&) = default;
};

// Interfaces of this process's network namespace and RDMA devices of this host, by name. Files are
// read below `root`, which a test replaces by a folder.
std::vector<Device> devices(const std::string& root = "/");
// The device that has that name or that address.
std::optional<Device> findDevice(std::string_view name_or_address, const std::string& root = "/");

// Why a device, given by name or address, cannot be used yet: it is absent, down, or without a
// carrier or an address. Empty: it is ready, or no device is known to have the address. All of
// 127.0.0.0/8 is usable, for example, and little of it is listed.
std::string notReady(const std::string& name_or_address, const std::string& root = "/");

// Parsers, for tests too: "12.5 Gb/sec (4X SDR)" and "16.0 GT/s PCIe" in bytes a second; 0: not
// understood.
std::uint64_t rdmaRate(const std::string& text);
std::uint64_t pcieRate(const std::string& speed, const std::string& width);

}  // namespace viaduct::host
