// A machine's PCI functions, their links, and the path from each to its host bridge. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/tree.h"

namespace viaduct::host {

// The place of a device or a piece of memory.
struct Place {
  // The PCI functions on the path from the host bridge to the device, its own function last:
  // "0000:15:01.0", ..., "0000:18:00.0". Empty for host memory and virtual devices.
  std::vector<std::string> pci = {};
  int node = -1;  // NUMA node; -1: unknown
  friend bool operator==(const Place&, const Place&) = default;
};
// The PCI functions in the path of a folder. The path must have no symbolic links.
std::vector<std::string> pciPathIn(std::string_view folder);
// The place of a device. `folder` is its folder, or a link to it.
Place placeAt(const Tree& tree, const std::string& folder);

// The link of a function to the bridge above it. 0: unknown, as for virtual functions and idle
// slots.
struct PciLink {
  double gigatransfers = 0, most_gigatransfers = 0;  // per lane and second: 32.0 is PCIe 5
  unsigned width = 0, most_width = 0;
  // After line coding. 0: unknown.
  double bytesPerSecond() const;
  double mostBytesPerSecond() const;
};
// The link of the function whose folder this is.
PciLink pciLink(const Tree& tree, const std::string& folder);

struct PciFunction {
  std::string address = {};  // "0000:18:00.0"
  std::string folder = {};   // "/sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0"
  Place place = {};
  std::uint32_t vendor = 0, device = 0, kind = 0;  // kind: the class, 0x020700
  PciLink link = {};
  std::string physical = {};    // of a virtual function: its physical function's address
  std::string group = {};       // the number of its IOMMU group; empty: none
  std::string group_type = {};  // "identity", "DMA-FQ"; empty: the kernel does not say
  bool isEfa() const { return vendor == 0x1d0f && (device & 0xfff0U) == 0xefa0; }
};

inline constexpr auto kPciFunctions = "/sys/bus/pci/devices/";
inline constexpr std::uint32_t kNvidia = 0x10de, kAmd = 0x1002, kMellanox = 0x15b3;  // vendors

// Whether the text is a PCI address: "0000:18:00.0".
bool isPciAddress(std::string_view text);
std::optional<PciFunction> pciFunction(const Tree& tree, const std::string& address);
// All functions, bridges included, sorted by address.
std::vector<PciFunction> pciFunctions(const Tree& tree);
// The address of the physical function of a virtual one. Empty: the function is not virtual.
std::string physicalOf(const Tree& tree, const std::string& folder);

// The addresses of the functions of a class ("0x03": displays) by one of these vendors; empty: by
// any. Reads at most two files of each, because a machine has hundreds of functions.
std::vector<std::string> functionsOfClass(const Tree& tree, std::string_view kind,
                                          std::initializer_list<std::uint64_t> vendors = {});
// The addresses of GPUs. A server's display adapter is not a GPU in this sense.
std::vector<std::string> gpuAddresses(const Tree& tree = {});

// The reason, for people, why this kernel contradicts that an NVIDIA GPU of that name has that PCI
// address. Empty: the kernel does not contradict. `name` may contain more than the model.
std::string doubtOfNvidiaGpu(const Tree& tree, const std::string& address, std::string_view name);

}  // namespace viaduct::host
