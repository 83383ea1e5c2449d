#include "diag/pcie_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace viaduct::diag {
bool isEmulatedBridge(const PciFunction& function) {
  constexpr std::uint32_t kRedHat = 0x1b36, kAmazon = 0x1d0f;
  // Bridges of Intel and Texas Instruments that QEMU emulates.
  constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 3> kImitated{
      {{0x8086, 0x3420}, {0x104c, 0x8232}, {0x104c, 0x8233}}};
  if (function.vendor == kRedHat || function.vendor == kAmazon) return true;
  return std::find(kImitated.begin(), kImitated.end(),
                   std::pair(function.vendor, function.device)) != kImitated.end();
}

std::vector<PciFunction> bridgesAbove(const Tree& tree, const PciFunction& function) {
  std::vector<PciFunction> out;
  for (const std::string& address : function.place.pci) {
    if (address == function.address) break;
    auto bridge = pciFunction(tree, address);
    if (bridge && !isEmulatedBridge(*bridge) && bridge->link.bytesPerSecond() > 0)
      out.push_back(*std::move(bridge));
  }
  return out;
}

std::string textOf(double gigatransfers, unsigned width) {
  return fmt::format("{:g} GT/s x{}", gigatransfers, width);
}

std::map<std::string, std::string> foldersOnWay(const Tree& tree,
                                                std::span<const PciFunction> functions) {
  std::map<std::string, std::string> out;
  for (const PciFunction& function : functions)
    for (const std::string& address : function.place.pci)
      if (!out.contains(address)) out[address] = tree.resolve("/sys/bus/pci/devices/" + address);
  return out;
}

std::optional<std::uint64_t> aerTotal(const Tree& tree, const std::string& path) {
  for (const std::string& line : tree.lines(path))
    if (line.starts_with("TOTAL_ERR"))
      return std::strtoull(line.substr(line.find_last_of(' ') + 1).c_str(), nullptr, 10);
  return std::nullopt;
}

}  // namespace viaduct::diag
