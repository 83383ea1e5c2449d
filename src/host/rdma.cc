#include "host/rdma.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "base/lists.h"

namespace viaduct::host {
namespace {

constexpr auto kDevices = "/sys/class/infiniband";
constexpr unsigned kMostGids = 4096;

bool empty(const std::string& gid) { return gid.find_first_not_of("0:") == std::string::npos; }

// Skips empty entries, because the kernel refuses to show their type and interface.
std::vector<Gid> gidsOf(const Tree& tree, const std::string& port) {
  std::vector<std::pair<unsigned, std::string>> indices;
  for (const std::string& name : tree.list(port + "/gids"))
    indices.emplace_back(std::strtoul(name.c_str(), nullptr, 10), name);
  std::ranges::sort(indices);
  if (indices.size() > kMostGids) indices.resize(kMostGids);
  std::vector<Gid> out;
  for (const auto& [index, name] : indices) {
    Gid gid{.index = index, .gid = tree.line(fmt::format("{}/gids/{}", port, name))};
    if (empty(gid.gid)) continue;
    gid.type = tree.tryRead(fmt::format("{}/gid_attrs/types/{}", port, name)).text;
    gid.interface = tree.tryRead(fmt::format("{}/gid_attrs/ndevs/{}", port, name)).text;
    out.push_back(std::move(gid));
  }
  return out;
}

// Maps each device to the name of its uverbs file.
std::map<std::string, std::string> uverbsByDevice(const Tree& tree) {
  std::map<std::string, std::string> out;
  for (const std::string& name : tree.list("/sys/class/infiniband_verbs"))
    if (name.starts_with("uverbs"))
      out.emplace(tree.line("/sys/class/infiniband_verbs/" + name + "/ibdev"), name);
  return out;
}

// Compares numbers in names as numbers: rdmap79s0 comes before rdmap113s0.
bool isNameBefore(const RdmaDevice& a, const RdmaDevice& b) {
  return ::strverscmp(a.name.c_str(), b.name.c_str()) < 0;
}

}  // namespace

std::string Gid::ipv4Address() const {
  if (!ipv4() || gid.size() < 39) return {};
  const auto byte = [&](std::size_t at) {
    return std::strtoul(gid.substr(at, 2).c_str(), nullptr, 16);
  };
  return fmt::format("{}.{}.{}.{}", byte(30), byte(32), byte(35), byte(37));
}

std::vector<RdmaPort> rdmaPorts(const Tree& tree, const std::string& device) {
  const std::string ports = fmt::format("{}/{}/ports", kDevices, device);
  return base::mapped(tree.list(ports), [&](const std::string& port) {
    return RdmaPort{.device = device,
                    .name = port == "1" ? device : fmt::format("{}:{}", device, port),
                    .number = static_cast<unsigned>(std::strtoul(port.c_str(), nullptr, 10)),
                    .folder = fmt::format("{}/{}", ports, port)};
  });
}

std::vector<RdmaPort> rdmaPorts(const Tree& tree) {
  std::vector<RdmaPort> out;
  for (const std::string& device : tree.list(kDevices))
    for (RdmaPort& port : rdmaPorts(tree, device)) out.push_back(std::move(port));
  return out;
}

void readState(const Tree& tree, RdmaPort& port) {
  port.state = tree.line(port.folder + "/state");
  port.phys_state = tree.line(port.folder + "/phys_state");
  port.link_layer = tree.line(port.folder + "/link_layer");
  readRate(tree, port);
}

// Parses "400 Gb/sec (4X NDR)" and "2.5 Gb/sec (1X)".
void readRate(const Tree& tree, RdmaPort& port) {
  constexpr double kMost = 100'000;  // a higher figure is damaged
  port.rate = tree.line(port.folder + "/rate");
  const double gigabits = std::strtod(port.rate.c_str(), nullptr);
  port.gigabits = gigabits >= 0 && gigabits <= kMost ? gigabits : 0;
  const auto open = port.rate.find('('), close = port.rate.find(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return;
  const std::string inside = port.rate.substr(open + 1, close - open - 1);
  port.lanes = static_cast<unsigned>(std::strtoul(inside.c_str(), nullptr, 10));
  const auto blank = inside.find(' ');
  if (blank != std::string::npos) port.speed = inside.substr(blank + 1);
}

double RdmaDevice::gigabits() const {
  double sum = 0;
  for (const RdmaPort& port : ports)
    if (port.active()) sum += port.gigabits;
  return sum;
}

void readGids(const Tree& tree, RdmaDevice& device) {
  for (RdmaPort& port : device.ports) port.gids = gidsOf(tree, port.folder);
}

std::vector<RdmaDevice> rdmaDevices(const Tree& tree) {
  const auto uverbs = uverbsByDevice(tree);
  std::vector<RdmaDevice> out;
  for (const std::string& name : tree.list(kDevices)) {
    RdmaDevice device{.name = name, .folder = fmt::format("{}/{}", kDevices, name)};
    if (const auto path = pciPathIn(tree.resolve(device.folder + "/device")); !path.empty())
      device.pci = path.back();
    device.function = pciFunction(tree, device.pci);
    if (device.function) device.physical = device.function->physical;
    device.firmware = tree.line(device.folder + "/fw_ver");
    device.type = tree.line(device.folder + "/hca_type");
    device.board = tree.line(device.folder + "/board_id");
    device.interfaces = tree.list(device.folder + "/device/net");
    if (const std::string* const file = base::valueAt(uverbs, name)) device.uverbs = *file;
    device.ports = rdmaPorts(tree, name);
    for (RdmaPort& port : device.ports) readState(tree, port);
    out.push_back(std::move(device));
  }
  std::ranges::sort(out, isNameBefore);
  return out;
}

std::vector<std::string> cxiNics(const Tree& tree) { return tree.list("/sys/class/cxi"); }

bool isDeviceName(std::string_view name) {
  return !name.empty() && name.size() <= 63 && std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '-';
  });
}

}  // namespace viaduct::host
