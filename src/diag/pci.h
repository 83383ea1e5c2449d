// A node's PCI functions, with the path from each to its host bridge. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/tree.h"

namespace viaduct::diag {

// The link of a function to the bridge above it. 0: unknown, as for virtual functions and idle
// slots.
struct PciLink {
  double gigatransfers = 0, most_gigatransfers = 0;  // per lane and second: 32.0 is PCIe 5
  unsigned width = 0, most_width = 0;
};

struct PciFunction {
  std::string address = {};           // "0000:18:00.0"
  std::string folder = {};            // "/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0"
  std::vector<std::string> way = {};  // the functions from the host bridge down, itself last
  std::uint32_t vendor = 0, device = 0, kind = 0;  // kind: the class, 0x020700
  int numa = -1;
  PciLink link = {};
  std::string physical = {};    // of a virtual function: its physical function's address
  std::string group = {};       // the number of its IOMMU group; empty: none
  std::string group_type = {};  // "identity", "DMA-FQ"; empty: the kernel does not say
  bool isEfa() const { return vendor == 0x1d0f && (device & 0xfff0U) == 0xefa0; }
};

// Whether the text is a PCI address: "0000:18:00.0".
bool isPciAddress(std::string_view text);
std::optional<PciFunction> pciFunction(const Tree& tree, const std::string& address);
// All functions by address, with bridges.
std::vector<PciFunction> pciFunctions(const Tree& tree);
// The function of a device's folder, such as /sys/class/infiniband/mlx5_0/device; empty: none.
std::string pciAddressOf(const Tree& tree, const std::string& device_folder);

// Bytes a second of a link, after line coding; 0: unknown.
double bytesPerSecond(double gigatransfers, unsigned width);

}  // namespace viaduct::diag
