#include "diag/pod_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/text.h"
#include "diag/hardware.h"

namespace viaduct::diag {
namespace {

// The columns of the kernel's routing tables: a destination and its mask or prefix, both zero for
// the default route.
struct RoutingTable {
  const char* file;
  std::size_t columns, destination, mask, metric, interface;
  int metric_base;
};
constexpr RoutingTable kIpv4Routes{"/proc/net/route", 8, 1, 7, 6, 0, 10};
constexpr RoutingTable kIpv6Routes{"/proc/net/ipv6_route", 10, 0, 1, 5, 9, 16};

// The interface of the default route with the least metric. A default route over "lo" only rejects
// packets.
std::string defaultRoute(const Tree& tree, const RoutingTable& table) {
  const auto is_zero = [](std::string_view word) {
    return word.find_first_not_of('0') == std::string_view::npos;
  };
  std::string out;
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (const std::string& line : tree.lines(table.file)) {
    const auto words = base::wordsOf(line);
    if (words.size() < table.columns || !is_zero(words[table.destination]) ||
        !is_zero(words[table.mask]) || words[table.interface] == "lo")
      continue;
    const auto metric =
        base::numberIn<std::uint64_t>(words[table.metric], table.metric_base).value_or(least);
    if (metric >= least) continue;
    least = metric;
    out = words[table.interface];
  }
  return out;
}

std::string defaultInterface(const Tree& tree) {
  std::string out = defaultRoute(tree, kIpv4Routes);
  if (out.empty()) out = defaultRoute(tree, kIpv6Routes);
  return isDeviceName(out) ? out : std::string();
}

const RdmaPort& activePort(const RdmaDevice& device) {
  return *std::ranges::find_if(device.ports, &RdmaPort::active);
}

// Moves devices to `aside` that are in another network than the fastest one, or that would slow
// down a library that uses all devices as rails.
void setAside(PodView& pod) {
  const auto slower = [](const RdmaDevice& a, const RdmaDevice& b) {
    return activePort(a).gigabits < activePort(b).gigabits;
  };
  const auto fastest = std::ranges::max_element(pod.verbs, slower);
  if (fastest == pod.verbs.end()) return;
  const RdmaPort best = activePort(*fastest);
  const auto belongs = [&](const RdmaDevice& one) {
    const RdmaPort& port = activePort(one);
    return pod.efa.empty() && port.link_layer == best.link_layer &&
           port.gigabits * 2 >= best.gigabits;
  };
  for (const RdmaDevice& one : pod.verbs)
    if (!belongs(one)) pod.aside.push_back(one);
  std::erase_if(pod.verbs, [&](const RdmaDevice& one) { return !belongs(one); });
}

}  // namespace

PodView podView(const Node& node) {
  PodView out{.given = allocationOf(node)};
  for (RdmaDevice& one : out.given.devices) readGids(node.tree, one);
  for (const RdmaDevice& one : out.given.devices)
    if (hasActivePort(one)) (one.efa() ? out.efa : out.verbs).push_back(one);
  if (out.given.known_by > KnownBy::kAddresses) setAside(out);
  out.gpus = countNvidiaGpus(node.tree);
  out.interfaces = node.tree.list("/sys/class/net");
  out.default_interface = defaultInterface(node.tree);
  out.product = node.tree.line("/sys/devices/virtual/dmi/id/product_name");
  out.vendor = node.tree.line("/sys/devices/virtual/dmi/id/sys_vendor");
  out.pod = inPod(node);
  return out;
}

std::string activePorts(const std::vector<RdmaDevice>& devices, PortNames names) {
  std::vector<std::string> out;
  for (const RdmaDevice& one : devices)
    for (const RdmaPort& port : one.ports)
      if (port.active())
        out.push_back(names == PortNames::kAll || one.ports.size() > 1
                          ? fmt::format("{}:{}", one.name, port.number)
                          : one.name);
  return fmt::format("{}", fmt::join(out, ","));
}

const Gid* routableGid(const RdmaPort& port) {
  const Gid* out = nullptr;
  for (const Gid& one : port.gids) {
    if (one.type != "RoCE v2" || one.linkLocal()) continue;
    if (one.ipv4()) return &one;
    if (out == nullptr) out = &one;
  }
  return out;
}

}  // namespace viaduct::diag
