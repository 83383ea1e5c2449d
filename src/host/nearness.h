// The distance of devices and memory from each other, over PCIe and NUMA, and which NICs are near.
// Threads: pure functions and values.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "host/pci.h"

namespace viaduct::host {

// The place of an RDMA device ("mlx5_0", "mlx5_1:2") or of an interface.
Place placeOfNic(const std::string& name, const Tree& tree = {});

// The NUMA nodes of this machine.
struct Nodes {
  std::vector<int> numbers = {};
  std::vector<std::vector<int>> distances = {};  // ordered as `numbers`; 10: a node to itself
  // False: there is a single node, which also has every place whose node is unknown.
  bool several() const { return numbers.size() > 1; }
};
// The nodes that the kernel lists, and `others`, which devices name.
Nodes numaNodes(const Tree& tree = {}, std::set<int> others = {});
// The nodes that have CPUs on which this process may run.
std::vector<int> nodesOfOwnCpus(const Nodes& nodes, const Tree& tree = {});
// The node with at least three quarters of the memory's pages. At most 64 pages are looked at. -1:
// the kernel does not say, the pages are untouched, or they are spread over several nodes.
int nodeOfMemory(const void* start, std::uint64_t bytes);
int nodeOfPages(std::span<const int> nodes);  // one node per page; negative: unknown

enum class DistanceKind : std::uint8_t { kBridge, kNode, kOtherNode, kUnknown };
struct Distance {
  DistanceKind kind = DistanceKind::kUnknown;
  int steps = 0;  // kBridge: PCI bridges between; kOtherNode: the firmware's figure
  friend auto operator<=>(const Distance&, const Distance&) = default;  // less is nearer
};
Distance distance(const Place& one, const Place& other, const Nodes& nodes);
std::string textOf(const Distance& distance);  // "same PCIe bridge", "another node, distance 21"

struct Nic {
  std::string name = {};
  Place place = {};
  std::uint64_t bytes_per_s = 0;  // of an RDMA device's fastest port; 0: unknown
  std::string physical = {};      // of a virtual function: its physical PCI function
};
std::vector<Nic> nicsNamed(std::span<const std::string> names, const Tree& tree = {});

// A group of NICs that are equally near to some memory. The nearest group comes first.
struct NearGroup {
  Distance distance = {};
  std::vector<std::string> names = {};
};
std::vector<NearGroup> byNearness(const Place& memory, std::span<const Nic> nics,
                                  const Nodes& nodes);

// Chooses NICs when the user has named none. `near` has the fastest NICs among the nearest to a CPU
// on which this process may run. Virtual devices are chosen only if there are no others. A virtual
// function is never chosen beside its physical function.
struct NearChoice {
  std::vector<std::string> near = {}, rest = {};
};
NearChoice nearOwnCpus(std::span<const std::string> names, const Tree& tree = {});

}  // namespace viaduct::host
