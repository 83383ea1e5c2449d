#include "diag/gpu_distances.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/lists.h"
#include "host/nearness.h"

namespace viaduct::diag {
namespace {

using host::DistanceKind;

// The NUMA nodes that the kernel lists, and others that PCI functions name.
host::Nodes nodesOf(const Tree& tree, const std::vector<PciFunction>& gpus,
                    const std::vector<RdmaDevice>& nics) {
  std::set<int> named;
  for (const PciFunction& gpu : gpus) named.insert(gpu.place.node);
  for (const RdmaDevice& nic : nics)
    if (nic.function) named.insert(nic.function->place.node);
  return host::numaNodes(tree, std::move(named));
}

struct GpuNearest {
  std::string gpu;
  int numa = -1;
  host::NearGroup nearest;
};

std::string nearestText(const GpuNearest& one) {
  return fmt::format("{} ({})", listed(one.nearest.names, 4), host::textOf(one.nearest.distance));
}

std::vector<Evidence> distanceEvidence(const std::vector<GpuNearest>& gpus) {
  return base::mapped(gpus, [](const GpuNearest& one) {
    return Evidence{fmt::format("/sys/bus/pci/devices/{} (NUMA node {})", one.gpu, one.numa),
                    "nearest: " + nearestText(one)};
  });
}

std::string gpuNames(const std::vector<GpuNearest>& gpus) {
  return listed(base::mapped(gpus, &GpuNearest::gpu));
}

void addFar(const std::vector<GpuNearest>& far, Findings& findings) {
  findings.add(
      {.severity = Severity::kWarning,
       .code = "gpu.far-nic",
       .what = fmt::format("GPUs have their nearest NIC on another NUMA node: {}.", gpuNames(far)),
       .evidence = distanceEvidence(far),
       .cause = "The pod got a NIC of the other socket, or the card sits in the wrong slot.",
       .fix = "Let the kubelet align NICs and GPUs, in its configuration:\n"
              "  topologyManagerPolicy: single-numa-node\n"
              "On your own machine: move the NIC to a slot of the GPU's socket.",
       .gain = "Transfers stay off the link between the sockets."});
}

// Reports GPUs without a NIC under their switch. On a platform without such switches this is
// normal, and there is nothing to repair.
void addNoNear(const std::vector<GpuNearest>& alone, bool others_have, Findings& findings) {
  findings.add({.severity = others_have ? Severity::kWarning : Severity::kInfo,
                .code = "gpu.no-near-nic",
                .what = fmt::format("No NIC is under the PCIe switch of GPU {}.", gpuNames(alone)),
                .evidence = distanceEvidence(alone),
                .cause = others_have ? "Other GPUs here have one: a NIC is missing or not given."
                                     : "No GPU here has one: the traffic passes the CPU.",
                .fix = others_have ? "Compare: ls /sys/class/infiniband; lspci -tv" : "",
                .gain = "GPU and NIC exchange data inside the PCIe switch."});
}

// Two GPUs at some distance, and the number of pairs of GPUs at this distance.
struct PairsAtDistance {
  std::string one, other;
  std::size_t count = 0;
};

std::map<DistanceKind, PairsAtDistance> pairsByDistance(const Tree& tree,
                                                        const std::vector<PciFunction>& gpus) {
  const host::Nodes nodes = nodesOf(tree, gpus, {});
  std::map<DistanceKind, PairsAtDistance> out;
  for (auto one = gpus.begin(); one != gpus.end(); ++one)
    for (auto other = one + 1; other != gpus.end(); ++other) {
      PairsAtDistance& pairs = out[host::distance(one->place, other->place, nodes).kind];
      if (pairs.count++ == 0) {
        pairs.one = one->address;
        pairs.other = other->address;
      }
    }
  return out;
}

const char* wayOf(DistanceKind kind) {
  switch (kind) {
    case DistanceKind::kBridge:
      return "below one PCIe bridge";
    case DistanceKind::kNode:
      return "on one NUMA node, through the CPU";
    case DistanceKind::kOtherNode:
      return "on two NUMA nodes, through the link between the sockets";
    default:
      return "at an unknown distance";
  }
}

}  // namespace

bool sharesNvlink(const Tree& tree, const PciFunction& gpu) {
  return driverInformation(tree, gpu).find("NVIDIA GB") != std::string::npos;
}

bool meetOnPcie(const Tree& tree, const std::vector<PciFunction>& gpus) {
  return gpus.size() > 1 && countNvSwitches(tree) == 0 &&
         std::ranges::none_of(gpus,
                              [&](const PciFunction& gpu) { return sharesNvlink(tree, gpu); });
}

void checkGpuPairs(const Tree& tree, const std::vector<PciFunction>& gpus, Findings& findings) {
  if (gpus.size() < 2) return;
  if (!meetOnPcie(tree, gpus)) {
    const std::size_t switches = countNvSwitches(tree);
    return findings.fine(switches != 0
                             ? fmt::format("{} NVSwitches join {} GPUs.", switches, gpus.size())
                             : fmt::format("NVLink joins {} GPUs.", gpus.size()));
  }
  std::vector<Evidence> evidence;
  for (const auto& [kind, pairs] : pairsByDistance(tree, gpus))
    evidence.push_back({fmt::format("{} and {}", pairs.one, pairs.other),
                        fmt::format("{}: {} pairs", wayOf(kind), pairs.count)});
  findings.add(
      {.code = "gpu.pairs-over-pcie",
       .what =
           fmt::format("No NVLink between the {} GPUs is visible here, only PCIe.", gpus.size()),
       .evidence = std::move(evidence),
       .cause = "They have none, or only the driver knows it: the kernel shows NVSwitches and "
                "nothing else of NVLink.",
       .fix = "nvidia-smi topo -m; nvidia-smi topo -p2p r"});
}

void checkNicDistances(const Tree& tree, const std::vector<PciFunction>& gpus,
                       const std::vector<RdmaDevice>& nics, Findings& findings) {
  const host::Nodes nodes = nodesOf(tree, gpus, nics);
  // Includes NICs that are down, because the topic `rdma` reports those.
  const auto placed = base::mapped(nics, [](const RdmaDevice& nic) {
    return host::Nic{.name = nic.name, .place = nic.function->place};
  });
  std::map<DistanceKind, std::vector<GpuNearest>> by;
  for (const PciFunction& gpu : gpus) {
    const host::NearGroup nearest = host::byNearness(gpu.place, placed, nodes).front();
    by[nearest.distance.kind].push_back({gpu.address, gpu.place.node, nearest});
  }
  const std::size_t near = by[DistanceKind::kBridge].size();
  if (near > 0) findings.fine(fmt::format("{} GPUs have a NIC under their PCIe switch.", near));
  if (by.contains(DistanceKind::kOtherNode)) addFar(by[DistanceKind::kOtherNode], findings);
  if (by.contains(DistanceKind::kNode)) addNoNear(by[DistanceKind::kNode], near > 0, findings);
  if (by.contains(DistanceKind::kUnknown))
    findings.add(
        {.code = "gpu.distance-unknown",
         .what = fmt::format("The distance between GPU {} and the NICs is unknown.",
                             gpuNames(by[DistanceKind::kUnknown])),
         .evidence = distanceEvidence(by[DistanceKind::kUnknown]),
         .cause = "The kernel does not know their NUMA nodes, as in many virtual machines."});
}

}  // namespace viaduct::diag
