// The devices that bytes leave this host by, and how much they can carry. Threads: pure functions
// and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::host {

enum class DeviceKind : std::uint8_t { kLoopback, kEthernet, kVirtual, kRdma };

// What cannot be found out is empty or 0.
struct Device {
  std::string name = {};  // "eth0", "mlx5_0"; a second port of an RDMA device is "mlx5_1:2"
  DeviceKind kind = DeviceKind::kVirtual;
  std::vector<std::string> addresses = {};
  std::uint64_t link_bytes_per_s = 0;  // of hardware alone: what a virtual link says is made up
  std::uint64_t pcie_bytes_per_s = 0;  // of its slot, after line coding
  std::string pcie = {};               // "16.0 GT/s x8"
  int numa = -1;
  std::vector<std::string> lower = {};  // the devices it is made of: a bond's, a VLAN's
  friend bool operator==(const Device&, const Device&) = default;
};

// Interfaces of this process's network namespace and RDMA devices of this host, by name. Files are
// read below `root`, which a test replaces by a folder.
std::vector<Device> devices(const std::string& root = "/");
// The one of that name, or that has that address.
std::optional<Device> findDevice(std::string_view name_or_address, const std::string& root = "/");

// Why a device, by name or address, cannot be used now but may be soon: it is not there, it is
// down, or it has no carrier or no address yet. Empty: it is ready, or an address that no device is
// known to have (all of 127.0.0.0/8 is there, and little of it listed).
std::string notReady(const std::string& name_or_address, const std::string& root = "/");

// Parts of it. "12.5 Gb/sec (4X SDR)" and "16.0 GT/s PCIe" in bytes a second; 0: makes no sense.
std::uint64_t rdmaRate(const std::string& text);
std::uint64_t pcieRate(const std::string& speed, const std::string& width);

}  // namespace viaduct::host
