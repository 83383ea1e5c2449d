#include "diag/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "diag/allocation.h"

namespace viaduct::diag {
namespace {

constexpr auto kPciDevices = "/sys/bus/pci/devices";

// The devices that a plugin or the container names. If they would be a guess, all devices.
std::vector<RdmaDevice> devicesToLookAt(const Node& node) {
  Allocation given = allocationOf(node.tree, node.variables);
  const bool named = given.known_by <= KnownBy::kAddresses ||
                     (given.certain() && inPod(node.tree, node.variables));
  return named && !given.devices.empty() ? std::move(given.devices) : rdmaDevices(node.tree);
}

constexpr std::string_view kDisplay = "0x03", kOtherBridge = "0x0680";

// Reads only two files, because a node has hundreds of PCI functions.
bool isNvidia(const Tree& tree, const std::string& folder, std::string_view kind) {
  return tree.line(folder + "/class").starts_with(kind) &&
         tree.number(folder + "/vendor") == 0x10deU;
}

std::size_t countNvidia(const Tree& tree, std::string_view kind) {
  const auto functions = tree.list(kPciDevices);
  return static_cast<std::size_t>(
      std::count_if(functions.begin(), functions.end(), [&](const std::string& address) {
        return isNvidia(tree, fmt::format("{}/{}", kPciDevices, address), kind);
      }));
}

bool handedToVirtualMachine(const Tree& tree, const std::string& folder) {
  return tree.resolve(folder + "/driver").ends_with("/vfio-pci");
}

}  // namespace

double RdmaNic::gigabits() const {
  double sum = 0;
  for (const RdmaPortState& port : device.ports)
    if (port.active()) sum += port.gigabits;
  return sum;
}

std::vector<RdmaNic> rdmaNics(const Node& node) {
  std::vector<RdmaNic> out;
  for (RdmaDevice& device : devicesToLookAt(node))
    if (auto function = pciFunction(node.tree, device.pci))
      out.push_back({std::move(device), *std::move(function)});
  return out;
}

std::vector<PciFunction> nvidiaGpus(const Tree& tree) {
  std::vector<PciFunction> out;
  for (const std::string& address : tree.list(kPciDevices)) {
    const std::string folder = fmt::format("{}/{}", kPciDevices, address);
    if (!isNvidia(tree, folder, kDisplay) || handedToVirtualMachine(tree, folder)) continue;
    if (auto function = pciFunction(tree, address)) out.push_back(*std::move(function));
  }
  return out;
}

std::size_t countNvidiaGpus(const Tree& tree) {
  const std::size_t driven = tree.list("/proc/driver/nvidia/gpus").size();
  return driven != 0 ? driven : countNvidia(tree, kDisplay);
}

std::string driverInformation(const Tree& tree, const PciFunction& gpu) {
  return tree.read(fmt::format("/proc/driver/nvidia/gpus/{}/information", gpu.address)).text;
}

std::size_t countNvSwitches(const Tree& tree) { return countNvidia(tree, kOtherBridge); }

bool hasRdma(const Tree& tree) { return !tree.list("/sys/class/infiniband").empty(); }

bool hasNvidiaDriver(const Tree& tree) { return tree.has(kDriverVersion); }

std::string listed(std::span<const std::string> names, std::size_t most) {
  const std::size_t shown = std::min(names.size(), most);
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += i + 1 == shown && shown == names.size() ? " and " : ", ";
    out += names[i];
  }
  if (shown < names.size()) out += fmt::format(" and {} more", names.size() - shown);
  return out;
}

}  // namespace viaduct::diag
