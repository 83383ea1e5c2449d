#include "host/devices.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "base/lists.h"
#include "base/text.h"
#include "host/counters.h"
#include "host/interfaces.h"
#include "host/rdma.h"

namespace viaduct::host {
namespace {

constexpr std::uint64_t kMbit = 1'000'000 / 8;

// Describes the slot of a PCI function. A virtual function has no PCIe link of its own and shares
// its parent's.
void setSlot(const Tree& tree, const std::string& folder, Device& device) {
  device.numa = base::numberIn<int>(tree.line(folder + "/numa_node")).value_or(-1);
  for (const std::string& at : {folder, folder + "/physfn"}) {
    const PciLink link = pciLink(tree, at);
    device.pcie_bytes_per_s = static_cast<std::uint64_t>(link.bytesPerSecond());
    if (device.pcie_bytes_per_s == 0) continue;
    device.pcie = fmt::format("{:.1f} GT/s x{}", link.gigatransfers, link.width);
    break;
  }
}

// A bond or a VLAN is as fast as its lower devices together. If only one lower device is active at
// a time, the whole is as fast as the fastest one. The ports of a bridge do not count as lower
// devices.
std::uint64_t rateOfParts(const Tree& tree, const Device& whole, const std::vector<Device>& all) {
  const std::string folder = "/sys/class/net/" + whole.name;
  if (whole.lower.empty() || tree.has(folder + "/bridge")) return 0;
  std::vector<std::uint64_t> rates;
  for (const std::string& part : whole.lower) {
    const Device* const found = base::firstWith(all, &Device::name, part);
    if (found == nullptr || found->link_bytes_per_s == 0) return 0;
    rates.push_back(found->link_bytes_per_s);
  }
  const bool one_at_a_time = tree.line(folder + "/bonding/mode").starts_with("active-backup");
  return one_at_a_time ? *std::ranges::max_element(rates)
                       : std::accumulate(rates.begin(), rates.end(), std::uint64_t{0});
}

// False if /sys was mounted in another network namespace. /sys then shows the interfaces of that
// one.
bool showsOurs(const Tree& tree, const std::vector<Device>& interfaces) {
  std::vector<std::string> ours = base::mapped(interfaces, &Device::name);
  std::vector<std::string> shown = tree.list("/sys/class/net");
  std::erase(shown, "bonding_masters");  // a file, if bonds can be made
  std::ranges::sort(ours);
  return ours == shown;
}

std::vector<Device> namedInterfaces(const Tree& tree) {
  auto out = base::mapped(interfaceCounters(tree), [](const Counter& one) {
    const bool loopback = one.device == "lo";
    return Device{.name = one.device,
                  .kind = loopback ? DeviceKind::kLoopback : DeviceKind::kVirtual};
  });
  for (InterfaceAddress& one : interfaceAddresses())
    if (Device* const found = base::firstWith(out, &Device::name, one.interface);
        found != nullptr && !one.address.empty())
      found->addresses.push_back(std::move(one.address));
  return out;
}

void describeInterface(const Tree& tree, Device& device) {
  const std::string folder = "/sys/class/net/" + device.name;
  if (tree.has(folder + "/device")) {
    device.kind = DeviceKind::kEthernet;
    device.link_bytes_per_s = linkRate(tree, device.name) * kMbit;
    return setSlot(tree, folder + "/device", device);
  }
  constexpr std::string_view kLower = "lower_";
  for (const std::string& entry : tree.list(folder))
    if (entry.starts_with(kLower)) device.lower.push_back(entry.substr(kLower.size()));
}

Device namedPort(const RdmaPort& port) { return {.name = port.name, .kind = DeviceKind::kRdma}; }

}  // namespace

std::vector<Device> namedDevices(const Tree& tree) {
  return base::joined(namedInterfaces(tree), base::mapped(rdmaPorts(tree), namedPort));
}

std::vector<Device> devices(const Tree& tree) {
  std::vector<Device> out = namedInterfaces(tree);
  if (showsOurs(tree, out)) {
    for (Device& device : out) describeInterface(tree, device);
    for (Device& device : out)
      if (device.kind == DeviceKind::kVirtual)
        device.link_bytes_per_s = rateOfParts(tree, device, out);
  }
  for (RdmaPort& port : rdmaPorts(tree)) {
    readRate(tree, port);
    Device& device = out.emplace_back(namedPort(port));
    device.link_bytes_per_s = port.bytesPerSecond();
    setSlot(tree, fmt::format("/sys/class/infiniband/{}/device", port.device), device);
  }
  return out;
}

std::optional<Device> findDevice(std::string_view name_or_address, const Tree& tree) {
  for (Device& one : namedDevices(tree))
    if (one.name == name_or_address || base::contains(one.addresses, name_or_address))
      return std::move(one);
  return std::nullopt;
}

namespace {

bool isAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

// Link-local addresses do not count: the kernel adds one by itself, and a route through it needs a
// device's name.
bool isRoutable(const InterfaceAddress& one) {
  return !one.address.empty() && !one.address.starts_with("fe80:");
}

}  // namespace

std::string notReady(const std::string& name_or_address, const Tree& tree) {
  // A name without a port means port 1, whose RdmaPort has no number in its name.
  const std::string_view wanted = name_or_address;
  const std::string_view rdma =
      wanted.ends_with(":1") ? wanted.substr(0, wanted.size() - 2) : wanted;
  for (RdmaPort& port : rdmaPorts(tree)) {
    if (port.name != rdma) continue;
    port.state = tree.line(port.folder + "/state");
    if (port.state.empty() || port.active()) return {};
    return fmt::format("the port of {} is in state {}", port.name, port.state);
  }
  if (base::contains(cxiNics(tree), name_or_address)) return {};
  const auto device = findDevice(name_or_address, tree);
  if (!device && isAddress(name_or_address)) return {};
  const std::string& name = device ? device->name : name_or_address;
  const auto there = base::only(interfaceAddresses(),
                                [&](const InterfaceAddress& one) { return one.interface == name; });
  if (there.empty()) return fmt::format("this host has no device {}", name);
  if (!there.front().up || !there.front().running)
    return fmt::format("{} is down, or has no carrier", name);
  return std::ranges::any_of(there, isRoutable) ? "" : fmt::format("{} has no address", name);
}

}  // namespace viaduct::host
