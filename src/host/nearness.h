// How near devices and memory are to each other, by PCIe and NUMA, and what follows from it.
// Threads: pure functions and values.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace viaduct::host {

// Files are read below `root` everywhere, which a test replaces by a folder.

// Where a device or a piece of memory is.
struct Place {
  // The PCI functions that lead to it, itself last: "0000:15:01.0", ..., "0000:18:00.0". None:
  // memory of the host, or a device that is virtual.
  std::vector<std::string> pci = {};
  int node = -1;  // of NUMA; -1: unknown
  friend bool operator==(const Place&, const Place&) = default;
};
// Of an RDMA device ("mlx5_0", "mlx5_1:2") or an interface.
Place placeOfNic(const std::string& name, const std::string& root = "/");

struct PciGpu {
  std::string address = {};  // "0000:17:00.0"
  Place place = {};
};
std::vector<PciGpu> gpusOnPci(const std::string& root = "/");

// The NUMA nodes of this machine.
struct Nodes {
  std::vector<int> numbers = {};
  std::vector<std::vector<int>> distances = {};  // in that order; 10 is a node's to itself
  // Where there is one alone, what is unknown is there as well.
  bool several() const { return numbers.size() > 1; }
};
Nodes numaNodes(const std::string& root = "/");
// Those with CPUs that this process may run on.
std::vector<int> nodesOfOwnCpus(const Nodes& nodes, const std::string& root = "/");
// Where three quarters of these pages are, as the kernel tells; -1: it does not, nobody has touched
// them yet, or they are spread over several.
int nodeOfMemory(const void* start, std::uint64_t bytes);
int nodeOfPages(std::span<const int> nodes);  // each page's; negative: unknown

struct Distance {
  enum class Kind : std::uint8_t { kBridge, kNode, kOtherNode, kUnknown } kind = Kind::kUnknown;
  int steps = 0;  // kBridge: PCI bridges that lie between; kOtherNode: as the firmware has it
  friend auto operator<=>(const Distance&, const Distance&) = default;  // the nearer is less
};
Distance distance(const Place& one, const Place& other, const Nodes& nodes);
std::string textOf(const Distance& distance);  // "one PCIe switch", "node distance 21"

struct Nic {
  std::string name = {};
  Place place = {};
  std::uint64_t bytes_per_s = 0;  // of the fastest port of an RDMA device; 0: unknown
  std::string physical = {};      // the PCI function that it is a virtual function of
};
std::vector<Nic> nicsNamed(std::span<const std::string> names, const std::string& root = "/");

// Which NICs serve memory that is there: the nearest first; those of one group equally well.
struct NearGroup {
  Distance distance = {};
  std::vector<std::string> names = {};
};
std::vector<NearGroup> byNearness(const Place& memory, std::span<const Nic> nics,
                                  const Nodes& nodes);

// Of several NICs those worth using where nobody has said which: as near as any to a CPU that this
// process may run on and, of those, the fastest. A virtual one only where there is no other, and no
// virtual function beside its physical one.
struct NearChoice {
  std::vector<std::string> near = {}, rest = {};
};
NearChoice nearOwnCpus(std::span<const std::string> names, const std::string& root = "/");

}  // namespace viaduct::host
