#include "diag/pod_view.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace viaduct::diag {
namespace {

// Reads the driver's folder first, because a list by vendor would read a file of each function.
std::size_t countNvidiaGpus(const Tree& tree) {
  const std::size_t known = tree.list("/proc/driver/nvidia/gpus").size();
  if (known != 0) return known;
  const auto functions = tree.list("/sys/bus/pci/devices");
  return static_cast<std::size_t>(
      std::count_if(functions.begin(), functions.end(), [&](const std::string& address) {
        const std::string folder = "/sys/bus/pci/devices/" + address;
        return tree.line(folder + "/vendor") == "0x10de" &&
               tree.line(folder + "/class").starts_with("0x03");
      }));
}

// Reads "eth0 00000000 0101A8C0 0003 0 0 100 00000000": destination 0, mask 0, the least metric.
std::string routeOfIpv4(const std::string& table) {
  std::istringstream lines(table);
  std::string out;
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string interface, to, gateway, flags, refs, use, mask;
    std::uint64_t metric = 0;
    if (!(words >> interface >> to >> gateway >> flags >> refs >> use >> metric >> mask)) continue;
    if (to != "00000000" || mask != "00000000" || metric >= least) continue;
    least = metric;
    out = interface;
  }
  return out;
}

// Columns: destination and its prefix, source and its prefix, next hop, metric, references, use,
// flags, interface. A default route over "lo" only rejects packets.
std::string routeOfIpv6(const std::string& table) {
  std::istringstream lines(table);
  std::string out;
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string to, prefix, from, from_prefix, next, metric, refs, use, flags, interface;
    if (!(words >> to >> prefix >> from >> from_prefix >> next >> metric >> refs >> use >> flags >>
          interface))
      continue;
    const std::uint64_t cost = std::strtoull(metric.c_str(), nullptr, 16);
    if (to.find_first_not_of('0') != std::string::npos || prefix != "00" || interface == "lo" ||
        cost >= least)
      continue;
    least = cost;
    out = interface;
  }
  return out;
}

std::string defaultInterface(const Tree& tree) {
  std::string out = routeOfIpv4(tree.read("/proc/net/route").text);
  if (out.empty()) out = routeOfIpv6(tree.read("/proc/net/ipv6_route").text);
  return isDeviceName(out) ? out : std::string();
}

const RdmaPortState& activePort(const RdmaDevice& device) {
  return *std::find_if(device.ports.begin(), device.ports.end(),
                       [](const RdmaPortState& port) { return port.active(); });
}

// Separates devices that would slow down a library that uses them as rails, or cannot connect.
void setAside(PodView& pod) {
  const auto slower = [](const RdmaDevice& a, const RdmaDevice& b) {
    return activePort(a).gigabits < activePort(b).gigabits;
  };
  const auto fastest = std::max_element(pod.verbs.begin(), pod.verbs.end(), slower);
  if (fastest == pod.verbs.end()) return;
  const RdmaPortState best = activePort(*fastest);
  const auto belongs = [&](const RdmaDevice& one) {
    const RdmaPortState& port = activePort(one);
    return pod.efa.empty() && port.link_layer == best.link_layer &&
           port.gigabits * 2 >= best.gigabits;
  };
  for (const RdmaDevice& one : pod.verbs)
    if (!belongs(one)) pod.aside.push_back(one);
  std::erase_if(pod.verbs, [&](const RdmaDevice& one) { return !belongs(one); });
}

}  // namespace

PodView podView(const Node& node) {
  PodView out{.given = allocationOf(node.tree, node.variables)};
  for (RdmaDevice& one : out.given.devices) readGids(node.tree, one);
  for (const RdmaDevice& one : out.given.devices)
    if (hasActivePort(one))
      (one.kind == RdmaDevice::Kind::kEfa ? out.efa : out.verbs).push_back(one);
  if (out.given.known_by > KnownBy::kAddresses) setAside(out);
  out.gpus = countNvidiaGpus(node.tree);
  out.interfaces = node.tree.list("/sys/class/net");
  out.default_interface = defaultInterface(node.tree);
  out.product = node.tree.line("/sys/devices/virtual/dmi/id/product_name");
  out.vendor = node.tree.line("/sys/devices/virtual/dmi/id/sys_vendor");
  out.pod = inPod(node.tree, node.variables);
  return out;
}

const Gid* routableGid(const RdmaPortState& port) {
  const Gid* out = nullptr;
  for (const Gid& one : port.gids) {
    if (one.type != "RoCE v2" || one.linkLocal()) continue;
    if (one.ipv4()) return &one;
    if (out == nullptr) out = &one;
  }
  return out;
}

}  // namespace viaduct::diag
