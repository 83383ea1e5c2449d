#include "host/nearness.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/lists.h"
#include "base/text.h"
#include "host/rdma.h"

namespace viaduct::host {
namespace {

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

constexpr auto kNodes = "/sys/devices/system/node";

// The number of bridges above both places, counted from the CPU.
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

Place placeOfNic(const std::string& name, const Tree& tree) {
  const std::string rdma = name.substr(0, name.find(':'));  // a port is at the place of its device
  for (const std::string& at : {"infiniband/" + rdma, "cxi/" + name, "net/" + name})
    if (Place out = placeAt(tree, fmt::format("/sys/class/{}/device", at)); !out.pci.empty())
      return out;
  return {};
}

Nodes numaNodes(const Tree& tree, std::set<int> others) {
  constexpr std::string_view kNode = "node";
  for (const std::string& name : tree.list(kNodes))
    if (name.starts_with(kNode))
      if (const auto number = base::numberIn<int>(name.substr(kNode.size())))
        others.insert(*number);
  others.erase(others.begin(), others.lower_bound(0));  // -1: unknown
  // The kernel's list of distances has the same order.
  Nodes out{.numbers = {others.begin(), others.end()}};
  for (const int number : out.numbers) {
    auto& distances = out.distances.emplace_back();
    const std::string row = tree.line(fmt::format("{}/node{}/distance", kNodes, number));
    for (const std::string_view word : base::wordsOf(row))
      if (const auto one = base::numberIn<int>(word)) distances.push_back(*one);
  }
  return out;
}

std::vector<int> nodesOfOwnCpus(const Nodes& nodes, const Tree& tree) {
  const auto allowed = rangesIn(valueIn(tree.read("/proc/self/status").text, "Cpus_allowed_list"));
  return base::only(nodes.numbers, [&](int node) {
    const auto theirs = rangesIn(tree.line(fmt::format("{}/node{}/cpulist", kNodes, node)));
    return std::ranges::any_of(theirs, [&](const auto& range) {
      return std::ranges::any_of(allowed, [&](const auto& own) {
        return own.first <= range.second && range.first <= own.second;
      });
    });
  });
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
  using enum DistanceKind;
  if (!one.pci.empty() && !other.pci.empty()) {
    const std::size_t shared = sharedBridges(one, other);
    const auto between = static_cast<int>(one.pci.size() + other.pci.size() - 2 - 2 * shared);
    if (shared > 0) return {kBridge, between};
  }
  if (!nodes.several()) return {kNode};
  if (one.node < 0 || other.node < 0) return {kUnknown};
  if (one.node == other.node) return {kNode};
  const auto at = [&](int node) {
    return std::find(nodes.numbers.begin(), nodes.numbers.end(), node) - nodes.numbers.begin();
  };
  const auto from = static_cast<std::size_t>(at(one.node)),
             to = static_cast<std::size_t>(at(other.node));
  const bool told = from < nodes.distances.size() && to < nodes.distances[from].size();
  return {kOtherNode, told ? nodes.distances[from][to] : 0};
}

std::string textOf(const Distance& distance) {
  switch (distance.kind) {
    case DistanceKind::kBridge:
      return distance.steps == 0
                 ? "same PCIe bridge"
                 : fmt::format("same PCIe switch, {} bridges between", distance.steps);
    case DistanceKind::kNode:
      return "same node";
    case DistanceKind::kOtherNode:
      return fmt::format("another node, distance {}", distance.steps);
    case DistanceKind::kUnknown:
      break;
  }
  return "unknown distance";
}

std::vector<Nic> nicsNamed(std::span<const std::string> names, const Tree& tree) {
  return base::mapped(names, [&](const std::string& name) {
    Nic nic{.name = name, .place = placeOfNic(name, tree)};
    if (!nic.place.pci.empty())
      nic.physical = physicalOf(tree, kPciFunctions + nic.place.pci.back());
    for (RdmaPort& port : rdmaPorts(tree, name.substr(0, name.find(':')))) {
      readRate(tree, port);
      nic.bytes_per_s = std::max(nic.bytes_per_s, port.bytesPerSecond());
    }
    return nic;
  });
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

NearChoice nearOwnCpus(std::span<const std::string> names, const Tree& tree) {
  const Nodes nodes = numaNodes(tree);
  const std::vector<int> own = nodesOfOwnCpus(nodes, tree);
  // The least rank is the best: hardware before virtual, then the nearest, then the fastest.
  using Rank = std::tuple<bool, Distance, std::uint64_t>;
  std::vector<std::pair<Rank, std::string>> ranked;
  const std::vector<Nic> nics = nicsNamed(names, tree);
  ranked.reserve(nics.size());
  const auto spare = [&](const Nic& nic) {
    return nic.place.pci.empty() || std::ranges::any_of(nics, [&](const Nic& other) {
             return !other.place.pci.empty() && other.place.pci.back() == nic.physical;
           });
  };
  for (const Nic& nic : nics)
    ranked.emplace_back(Rank(spare(nic), nearestOf(own, nic.place, nodes), ~nic.bytes_per_s),
                        nic.name);
  NearChoice out;
  if (ranked.empty()) return out;
  const Rank best = std::ranges::min_element(ranked, [](const auto& a, const auto& b) {
                      return a.first < b.first;
                    })->first;
  for (auto& [rank, name] : ranked) (rank == best ? out.near : out.rest).push_back(std::move(name));
  return out;
}

}  // namespace viaduct::host
