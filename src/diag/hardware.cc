#include "diag/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/lists.h"
#include "diag/allocation.h"

namespace viaduct::diag {
namespace {

constexpr std::string_view kDisplay = "0x03", kOtherBridge = "0x0680";

bool handedToVirtualMachine(const Tree& tree, const PciFunction& function) {
  return tree.resolve(function.folder + "/driver").ends_with("/vfio-pci");
}

}  // namespace

std::vector<RdmaDevice> rdmaNics(const Node& node) {
  return base::only(devicesToLookAt(node, allocationOf(node)),
                    [](const RdmaDevice& one) { return one.function.has_value(); });
}

std::vector<PciFunction> nvidiaGpus(const Tree& tree) {
  std::vector<PciFunction> out;
  for (const std::string& address : functionsOfClass(tree, kDisplay, {host::kNvidia}))
    if (auto function = pciFunction(tree, address);
        function && !handedToVirtualMachine(tree, *function))
      out.push_back(*std::move(function));
  return out;
}

std::size_t countNvidiaGpus(const Tree& tree) {
  const std::size_t driven = tree.list("/proc/driver/nvidia/gpus").size();
  return driven != 0 ? driven : functionsOfClass(tree, kDisplay, {host::kNvidia}).size();
}

std::string driverInformation(const Tree& tree, const PciFunction& gpu) {
  return tree.read(fmt::format("/proc/driver/nvidia/gpus/{}/information", gpu.address)).text;
}

std::size_t countNvSwitches(const Tree& tree) {
  return functionsOfClass(tree, kOtherBridge, {host::kNvidia}).size();
}

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
