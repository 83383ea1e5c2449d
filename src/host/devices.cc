#include "host/devices.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/lists.h"
#include "base/text.h"
#include "host/facts.h"
#include "host/sysfs.h"

namespace viaduct::host {
namespace {

constexpr std::uint64_t kMbit = 1'000'000 / 8;

// Describes the slot of a PCI function. A virtual function has no PCIe link of its own and shares
// its parent's.
void setSlot(Device& device, const std::string& folder) {
  device.numa = base::numberIn<int>(firstLine(folder + "/numa_node")).value_or(-1);
  for (const std::string& at : {folder, folder + "/physfn"}) {
    const std::string speed = firstLine(at + "/current_link_speed");
    const std::string width = firstLine(at + "/current_link_width");
    device.pcie_bytes_per_s = pcieRate(speed, width);
    if (device.pcie_bytes_per_s == 0) continue;
    device.pcie = speed.substr(0, speed.find(" PCIe")) + " x" + width;
    break;
  }
}

Device interfaceFrom(const std::string& root, const std::string& name) {
  const std::string folder = root + "/sys/class/net/" + name;
  Device out{.name = name};
  if (exists(folder + "/device")) {
    out.kind = DeviceKind::kEthernet;
    out.link_bytes_per_s = numberIn(folder + "/speed").value_or(0) * kMbit;  // "-1": unknown
    setSlot(out, folder + "/device");
    return out;
  }
  constexpr std::string_view kLower = "lower_";
  for (const std::string& entry : namesIn(folder))
    if (entry.starts_with(kLower)) out.lower.push_back(entry.substr(kLower.size()));
  return out;
}

// A bond or a VLAN is as fast as its lower devices together. If only one of them is active at a
// time, it is as fast as the fastest. The ports of a bridge do not count as lower devices.
std::uint64_t rateOfParts(const std::string& root, const Device& whole,
                          const std::vector<Device>& all) {
  const std::string folder = root + "/sys/class/net/" + whole.name;
  if (whole.lower.empty() || exists(folder + "/bridge")) return 0;
  std::vector<std::uint64_t> rates;
  for (const std::string& part : whole.lower) {
    const Device* const found = base::firstWith(all, &Device::name, part);
    if (found == nullptr || found->link_bytes_per_s == 0) return 0;
    rates.push_back(found->link_bytes_per_s);
  }
  const bool one_at_a_time = firstLine(folder + "/bonding/mode").starts_with("active-backup");
  return one_at_a_time ? *std::max_element(rates.begin(), rates.end())
                       : std::accumulate(rates.begin(), rates.end(), std::uint64_t{0});
}

// False if /sys was mounted in another network namespace: it shows that namespace's interfaces.
bool showsOurs(const std::string& root, std::vector<std::string> ours) {
  std::vector<std::string> shown = namesIn(root + "/sys/class/net");
  std::erase(shown, "bonding_masters");  // a file, if bonds can be made
  std::sort(ours.begin(), ours.end());
  return ours == shown;
}

std::vector<Device> interfacesOf(const std::string& root) {
  const auto names = base::mapped(interfaceBytes(root), &InterfaceBytes::name);
  const bool ours = showsOurs(root, names);
  std::vector<Device> out = base::mapped(names, [&](const std::string& name) {
    return ours ? interfaceFrom(root, name) : Device{.name = name};
  });
  if (ours)
    for (Device& device : out)
      if (device.kind == DeviceKind::kVirtual)
        device.link_bytes_per_s = rateOfParts(root, device, out);
  const std::vector<Interface> known = facts(root).interfaces;
  for (Device& device : out) {
    if (device.name == "lo") device.kind = DeviceKind::kLoopback;
    if (const Interface* const found = base::firstWith(known, &Interface::name, device.name))
      device.addresses = found->addresses;
  }
  return out;
}

}  // namespace

std::uint64_t rdmaRate(const std::string& text) {
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || rate <= 0 || !std::string_view(end).starts_with(" Gb/sec")) return 0;
  return static_cast<std::uint64_t>(rate * 1e9 / 8);
}

std::uint64_t pcieRate(const std::string& speed, const std::string& width) {
  char* end = nullptr;
  const double transfers = std::strtod(speed.c_str(), &end);  // 10^9 a second, in each lane
  const bool right = end != speed.c_str() && std::string_view(end).starts_with(" GT/s");
  const int lanes = std::atoi(width.c_str());
  if (!right || transfers <= 0 || lanes <= 0 || lanes > 32) return 0;
  // 8b/10b coding up to generation 2, 128b/130b up to 5, frames of 256 bytes with 242 after that.
  const double coding = transfers <= 5 ? 0.8 : transfers <= 32 ? 128.0 / 130 : 242.0 / 256;
  return static_cast<std::uint64_t>(transfers * 1e9 / 8 * lanes * coding);
}

std::vector<Device> devices(const std::string& root) {
  std::vector<Device> out = interfacesOf(root);
  for (const RdmaPort& port : rdmaPorts(root)) {
    Device device{.name = port.name,
                  .kind = DeviceKind::kRdma,
                  .link_bytes_per_s = rdmaRate(firstLine(port.folder + "/rate"))};
    setSlot(device, root + "/sys/class/infiniband/" + port.device + "/device");
    out.push_back(std::move(device));
  }
  return out;
}

std::optional<Device> findDevice(std::string_view name_or_address, const std::string& root) {
  for (Device& one : devices(root))
    if (one.name == name_or_address || base::contains(one.addresses, name_or_address))
      return std::move(one);
  return std::nullopt;
}

namespace {

struct InterfaceState {
  bool there = false, running = false, addressed = false;
};

bool isAddress(const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, text.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), address.data()) == 1;
}

// Link-local addresses do not count: the kernel adds one by itself, and a route through it needs a
// device's name.
bool isRoutable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family != AF_INET6) return address->sa_family == AF_INET;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

InterfaceState stateOf(const std::string& name) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(raw, &::freeifaddrs);
  InterfaceState out;
  for (const ifaddrs* at = all.get(); at != nullptr; at = at->ifa_next) {
    if (name != at->ifa_name) continue;
    out.there = true;
    out.running = (at->ifa_flags & IFF_UP) != 0 && (at->ifa_flags & IFF_RUNNING) != 0;
    out.addressed = out.addressed || isRoutable(at->ifa_addr);
  }
  return out;
}

}  // namespace

std::string notReady(const std::string& name_or_address, const std::string& root) {
  // A name without a port means port 1, whose RdmaPort has no number in its name.
  const std::string_view wanted = name_or_address;
  const std::string_view rdma =
      wanted.ends_with(":1") ? wanted.substr(0, wanted.size() - 2) : wanted;
  for (const RdmaPort& port : rdmaPorts(root)) {
    if (port.name != rdma) continue;
    const std::string state = firstLine(port.folder + "/state");  // "4: ACTIVE"
    const bool active = state.empty() || state.find("ACTIVE") != std::string::npos;
    return active ? "" : fmt::format("the port of {} is in state {}", port.name, state);
  }
  if (base::contains(cxiNics(root), name_or_address)) return {};
  const auto device = findDevice(name_or_address, root);
  if (!device && isAddress(name_or_address)) return {};
  const std::string& name = device ? device->name : name_or_address;
  const InterfaceState state = stateOf(name);
  if (!state.there) return fmt::format("this host has no device {}", name);
  if (!state.running) return fmt::format("{} is down, or has no carrier", name);
  return state.addressed ? "" : fmt::format("{} has no address", name);
}

}  // namespace viaduct::host
