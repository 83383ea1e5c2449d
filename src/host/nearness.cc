#include "host/nearness.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "host/devices.h"
#include "host/sysfs.h"

namespace viaduct::host {
namespace {

namespace fs = std::filesystem;

// Whether a name is a PCI function, "0000:18:00.0".
bool isPciFunction(const std::string& name) {
  constexpr std::string_view kShape = "hhhh:hh:hh.h";
  return name.size() == kShape.size() &&
         std::equal(name.begin(), name.end(), kShape.begin(), [](char c, char shape) {
           return shape == 'h' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
         });
}

// The place of a device. `link` is a symbolic link to its folder, whose path names the bridges up
// to the CPU.
Place placeAt(const fs::path& link) {
  std::error_code none;
  const fs::path folder = fs::canonical(link, none);
  Place out;
  fs::path function;  // the last PCI function on the path; a virtio device lies below it
  fs::path at;
  for (const fs::path& part : folder) {
    at /= part;
    if (!isPciFunction(part.string())) continue;
    out.pci.push_back(part.string());
    function = at;
  }
  if (!function.empty())
    out.node = base::numberIn<int>(firstLine(function / "numa_node")).value_or(-1);
  return out;
}

// Parses "0-3,8,10-11".
std::vector<std::pair<int, int>> rangesIn(const std::string& list) {
  std::vector<std::pair<int, int>> out;
  for (const std::string& word : base::partsOf(list)) {
    const auto dash = word.find('-');
    const auto first = base::numberIn<int>(word.substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : base::numberIn<int>(word.substr(dash + 1));
    if (first && last) out.emplace_back(*first, *last);
  }
  return out;
}

std::string nodeFolder(const std::string& root, int number) {
  return fmt::format("{}/sys/devices/system/node/node{}", root, number);
}

// The number of bridges that lie above both, counted from the CPU.
std::size_t sharedBridges(const Place& one, const Place& other) {
  const std::size_t most = std::min(one.pci.size(), other.pci.size()) - 1;
  std::size_t shared = 0;
  while (shared < most && one.pci[shared] == other.pci[shared]) ++shared;
  return shared;
}

Distance nearestOf(const std::vector<int>& own, const Place& nic, const Nodes& nodes) {
  Distance best = distance({}, nic, nodes);
  for (const int node : own) best = std::min(best, distance({.node = node}, nic, nodes));
  return best;
}

}  // namespace

Place placeOfNic(const std::string& name, const std::string& root) {
  const std::string rdma = name.substr(0, name.find(':'));  // a port is at the place of its device
  for (const std::string& at : {fmt::format("{}/sys/class/infiniband/{}/device", root, rdma),
                                fmt::format("{}/sys/class/cxi/{}/device", root, name),
                                fmt::format("{}/sys/class/net/{}/device", root, name)})
    if (exists(at)) return placeAt(at);
  return {};
}

std::vector<PciGpu> gpusOnPci(const std::string& root) {
  constexpr std::string_view kDisplay = "0x03", k3d = "0x0302", kNvidia = "0x10de", kAmd = "0x1002";
  const std::string top = root + "/sys/bus/pci/devices/";
  std::vector<PciGpu> out;
  for (const std::string& address : namesIn(top)) {
    const std::string kind = firstLine(top + address + "/class");
    const std::string vendor = firstLine(top + address + "/vendor");
    // A server's display adapter is not a GPU in this sense.
    if (kind.starts_with(k3d) ||
        (kind.starts_with(kDisplay) && (vendor == kNvidia || vendor == kAmd)))
      out.push_back({address, placeAt(top + address)});
  }
  return out;
}

Nodes numaNodes(const std::string& root) {
  constexpr std::string_view kNode = "node";
  Nodes out;
  for (const std::string& name : namesIn(root + "/sys/devices/system/node"))
    if (name.starts_with(kNode))
      if (const auto number = base::numberIn<int>(name.substr(kNode.size())))
        out.numbers.push_back(*number);
  std::sort(out.numbers.begin(), out.numbers.end());  // the order of the kernel's list of distances
  for (const int number : out.numbers) {
    std::istringstream row(firstLine(nodeFolder(root, number) + "/distance"));
    auto& distances = out.distances.emplace_back();
    for (int one = 0; row >> one;) distances.push_back(one);
  }
  return out;
}

std::vector<int> nodesOfOwnCpus(const Nodes& nodes, const std::string& root) {
  const auto allowed = rangesIn(valueOf(root + "/proc/self/status", "Cpus_allowed_list"));
  std::vector<int> out;
  for (const int node : nodes.numbers) {
    const auto theirs = rangesIn(firstLine(nodeFolder(root, node) + "/cpulist"));
    const auto meets = [&](const auto& range) {
      return std::any_of(allowed.begin(), allowed.end(), [&](const auto& own) {
        return own.first <= range.second && range.first <= own.second;
      });
    };
    if (std::any_of(theirs.begin(), theirs.end(), meets)) out.push_back(node);
  }
  return out;
}

int nodeOfMemory(const void* start, std::uint64_t bytes) {
  constexpr std::uint64_t kMost = 64;  // most pages to look at, spread over the memory
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(start) / page;
  const auto count = (reinterpret_cast<std::uintptr_t>(start) + bytes + page - 1) / page - first;
  const std::uint64_t looked = std::min(count, kMost);
  std::vector<std::uintptr_t> pages;
  pages.reserve(looked);
  for (std::uint64_t i = 0; i < looked; ++i) pages.push_back((first + i * count / looked) * page);
  std::vector<int> found(looked, -1);
  // Without target nodes, move_pages moves nothing and returns each page's node.
  if (::syscall(SYS_move_pages, 0, looked, pages.data(), nullptr, found.data(), 0) != 0) return -1;
  return nodeOfPages(found);
}

int nodeOfPages(std::span<const int> nodes) {
  std::map<int, std::size_t> votes;
  for (const int node : nodes)
    if (node >= 0) ++votes[node];
  for (const auto& [node, pages] : votes)
    if (pages * 4 >= nodes.size() * 3) return node;
  return -1;
}

Distance distance(const Place& one, const Place& other, const Nodes& nodes) {
  using Kind = Distance::Kind;
  if (!one.pci.empty() && !other.pci.empty()) {
    const std::size_t shared = sharedBridges(one, other);
    const auto between = static_cast<int>(one.pci.size() + other.pci.size() - 2 - 2 * shared);
    if (shared > 0) return {Kind::kBridge, between};
  }
  if (!nodes.several()) return {Kind::kNode};
  if (one.node < 0 || other.node < 0) return {Kind::kUnknown};
  if (one.node == other.node) return {Kind::kNode};
  const auto at = [&](int node) {
    return std::find(nodes.numbers.begin(), nodes.numbers.end(), node) - nodes.numbers.begin();
  };
  const auto from = static_cast<std::size_t>(at(one.node)),
             to = static_cast<std::size_t>(at(other.node));
  const bool told = from < nodes.distances.size() && to < nodes.distances[from].size();
  return {Kind::kOtherNode, told ? nodes.distances[from][to] : 0};
}

std::string textOf(const Distance& distance) {
  switch (distance.kind) {
    case Distance::Kind::kBridge:
      return distance.steps == 0
                 ? "same PCIe bridge"
                 : fmt::format("same PCIe switch, {} bridges between", distance.steps);
    case Distance::Kind::kNode:
      return "same node";
    case Distance::Kind::kOtherNode:
      return fmt::format("another node, distance {}", distance.steps);
    case Distance::Kind::kUnknown:
      break;
  }
  return "unknown distance";
}

std::vector<Nic> nicsNamed(std::span<const std::string> names, const std::string& root) {
  const std::vector<RdmaPort> ports = rdmaPorts(root);
  std::vector<Nic> out;
  for (const std::string& name : names) {
    Nic nic{.name = name, .place = placeOfNic(name, root)};
    if (!nic.place.pci.empty()) {
      std::error_code none;
      const std::string function = root + "/sys/bus/pci/devices/" + nic.place.pci.back();
      nic.physical = fs::canonical(function + "/physfn", none).filename();
    }
    for (const RdmaPort& port : ports)
      if (port.device == name.substr(0, name.find(':')))
        nic.bytes_per_s = std::max(nic.bytes_per_s, rdmaRate(firstLine(port.folder + "/rate")));
    out.push_back(std::move(nic));
  }
  return out;
}

std::vector<NearGroup> byNearness(const Place& memory, std::span<const Nic> nics,
                                  const Nodes& nodes) {
  std::map<Distance, std::vector<std::string>> groups;
  for (const Nic& nic : nics) groups[distance(memory, nic.place, nodes)].push_back(nic.name);
  std::vector<NearGroup> out;
  out.reserve(groups.size());
  for (auto& [distance, names] : groups) out.push_back({distance, std::move(names)});
  return out;
}

NearChoice nearOwnCpus(std::span<const std::string> names, const std::string& root) {
  const Nodes nodes = numaNodes(root);
  const std::vector<int> own = nodesOfOwnCpus(nodes, root);
  // The least rank is the best: hardware before virtual, then the nearest, then the fastest.
  using Rank = std::tuple<bool, Distance, std::uint64_t>;
  std::vector<std::pair<Rank, std::string>> ranked;
  const std::vector<Nic> nics = nicsNamed(names, root);
  ranked.reserve(nics.size());
  const auto spare = [&](const Nic& nic) {
    return nic.place.pci.empty() || std::any_of(nics.begin(), nics.end(), [&](const Nic& other) {
             return !other.place.pci.empty() && other.place.pci.back() == nic.physical;
           });
  };
  for (const Nic& nic : nics)
    ranked.emplace_back(Rank(spare(nic), nearestOf(own, nic.place, nodes), ~nic.bytes_per_s),
                        nic.name);
  NearChoice out;
  if (ranked.empty()) return out;
  const Rank best =
      std::min_element(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
        return a.first < b.first;
      })->first;
  for (auto& [rank, name] : ranked) (rank == best ? out.near : out.rest).push_back(std::move(name));
  return out;
}

}  // namespace viaduct::host
