#include "diag/own_devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/lists.h"
#include "diag/allocation.h"

namespace viaduct::diag {
OwnDevices ownDevices(const Node& node) {
  const Allocation given = allocationOf(node);
  OwnDevices out{.given = given.known_by <= KnownBy::kAddresses, .pod = inPod(node)};
  out.certain = out.given || (out.pod && given.certain());
  for (RdmaDevice& device : devicesToLookAt(node, given, Guesses::kCount))
    if (isDeviceName(device.name))
      out.devices.push_back(std::move(device));
    else
      out.odd_names.push_back(printable(device.name));
  for (RdmaDevice& device : out.devices) readGids(node.tree, device);
  return out;
}

bool isRoce(const Tree& tree, const RdmaDevice& device, const RdmaPort& port) {
  return port.roce() && !tree.line(device.folder + "/node_type").starts_with("4:");
}

std::string toolName(const RdmaDevice& device) {
  return device.pci.empty() ? device.name : device.pci;
}

std::string interfaceOf(const Tree& tree, const RdmaDevice& device, const RdmaPort& port) {
  std::vector<std::string> names = device.interfaces;
  for (const Gid& gid : port.gids) names.push_back(gid.interface);
  const auto here = [&](const std::string& name) {
    return isDeviceName(name) && tree.has("/sys/class/net/" + name);
  };
  const std::string* const found = base::firstOf(names, here);
  return found == nullptr ? "" : *found;
}

bool isInterfaceDown(const Tree& tree, const std::string& interface) {
  const std::string state = tree.line(interfaceFile(interface, "operstate"));
  return state == "down" || state == "lowerlayerdown";
}

std::string shortList(const std::vector<std::string>& names, std::string_view noun) {
  constexpr std::size_t kMost = 8;
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{}, {}, ... {} ({} {})", names[0], names[1], names.back(), names.size(),
                     noun);
}

std::string withVerb(const std::vector<std::string>& names, std::string_view one,
                     std::string_view many) {
  return fmt::format("{} {}", fmt::join(names, ", "), names.size() == 1 ? one : many);
}

}  // namespace viaduct::diag
