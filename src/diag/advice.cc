#include "diag/advice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/lists.h"
#include "diag/libraries.h"

namespace viaduct::diag {
namespace {

std::string howKnown(const Allocation& given) {
  switch (given.known_by) {
    case KnownBy::kInfo:
    case KnownBy::kAddresses:
      return given.variables.size() == 1
                 ? "named by " + given.variables[0]
                 : fmt::format("named by {} and {} more", given.variables[0],
                               given.variables.size() - 1);
    case KnownBy::kDeviceFiles:
      return "the devices that /dev/infiniband holds";
    case KnownBy::kFunctions:
      return "a guess: all active virtual functions";
    case KnownBy::kPorts:
      return "all with an active port";
    case KnownBy::kNone:
      break;
  }
  return {};
}

std::string devicesLine(const PodView& pod) {
  const auto& used = pod.efa.empty() ? pod.verbs : pod.efa;
  if (!used.empty())
    return fmt::format("RDMA devices: {} ({})", namesOf(used), howKnown(pod.given));
  if (!pod.given.devices.empty())
    return fmt::format("RDMA devices: {}, none with an active port", namesOf(pod.given.devices));
  return pod.given.others.empty() ? "This node has no RDMA device."
                                  : "No RDMA device has an active port.";
}

std::string absentDevices(const Allocation& given) {
  std::vector<std::string> variables, subjects;
  for (const AllocationFault& one : given.faults) {
    if (one.kind != AllocationFaultKind::kNoDevice) continue;
    if (!base::contains(variables, one.variable)) variables.push_back(one.variable);
    subjects.push_back(fmt::format("{} {}", one.subject, one.detail));
  }
  if (subjects.empty()) return {};
  return fmt::format("{} {} absent devices: {}", fmt::join(variables, " and "),
                     variables.size() == 1 ? "names" : "name", fmt::join(subjects, ", "));
}

void addRemarks(const PodView& pod, Advice& into) {
  for (const AllocationFault& one : pod.given.faults)
    if (one.kind != AllocationFaultKind::kNotRdma && one.kind != AllocationFaultKind::kNoDevice)
      into.remarks.push_back(fmt::format("{}: {} {}.", one.variable, one.subject, one.detail));
  if (pod.given.known_by == KnownBy::kFunctions)
    into.remarks.emplace_back(
        "Nothing says which functions this pod was given: request them from the device plugin.");
  if (const auto down = base::only(pod.given.devices, std::not_fn(hasActivePort)); !down.empty())
    into.remarks.push_back(fmt::format("Left out, because no port is active: {}.", namesOf(down)));
  if (!pod.aside.empty())
    into.remarks.push_back(fmt::format(
        "Left out, because of another network or less than half as fast: {}.", namesOf(pod.aside)));
}

// The index of a port's GID that other hosts can reach.
struct DeviceGid {
  std::string device;
  unsigned index = 0;
};

std::vector<DeviceGid> deviceGids(const std::vector<RdmaDevice>& devices) {
  std::vector<DeviceGid> out;
  for (const RdmaDevice& one : devices)
    for (const RdmaPort& port : one.ports) {
      const Gid* const gid = port.active() && port.roce() ? routableGid(port) : nullptr;
      if (gid != nullptr) out.push_back({one.name, gid->index});
    }
  return out;
}

void adviseGid(const Node& node, Advice& into) {
  const std::vector<DeviceGid> gids = deviceGids(into.pod.verbs);
  if (gids.empty()) return;
  const unsigned index = gids.back().index;
  const bool differs =
      std::ranges::any_of(gids, [&](const DeviceGid& one) { return one.index != index; });
  const std::vector<std::string> each = base::mapped(
      gids, [](const DeviceGid& one) { return fmt::format("{} {}", one.device, one.index); });
  if (const auto version = ncclVersion(node.live);
      version && *version < kNcclChoosesGid && !differs)
    into.set.push_back({"NCCL_IB_GID_INDEX", fmt::to_string(index),
                        "NCCL before 2.21 takes index 0, which is not a RoCE v2 address.", true});
  else
    into.unset.push_back(
        {"NCCL_IB_GID_INDEX",
         differs
             ? fmt::format("The index differs ({}), so no value fits. NCCL 2.21 and newer "
                           "choose it for each device.",
                           fmt::join(each, ", "))
             : fmt::format("NCCL 2.21 and newer choose it. An older NCCL needs {} here.", index)});
  into.unset.push_back(
      {"UCX_IB_GID_INDEX", "UCX chooses a RoCE v2 address for each device by itself."});
}

void adviseVerbs(const Node& node, Advice& into) {
  const PodView& pod = into.pod;
  into.set.push_back({"NCCL_IB_HCA", "=" + activePorts(pod.verbs, PortNames::kWhereSeveral),
                      "NCCL uses these devices. Without \"=\", mlx5_1 matches mlx5_10, too.",
                      true});
  into.set.push_back({"UCX_NET_DEVICES", activePorts(pod.verbs, PortNames::kAll),
                      "UCX uses these devices, and no TCP interface.", true});
  into.set.push_back({"UCX_TLS", pod.gpus != 0 ? "ib,sm,self,cuda" : "ib,sm,self",
                      "RDMA between hosts and shared memory within one. Without tcp in the list, "
                      "UCX fails instead of falling back to TCP."});
  const bool infiniband = std::ranges::any_of(pod.verbs, [](const RdmaDevice& one) {
    return !one.ports.empty() && one.ports.front().infiniband();
  });
  if (infiniband && pod.pod && pod.vendor == "Microsoft Corporation")
    into.set.push_back({"UCX_IB_ADDR_TYPE", "eth",
                        "The guide for InfiniBand on AKS asks for it: otherwise UCX may not "
                        "connect pods of two nodes."});
  adviseGid(node, into);
  into.unset.push_back(
      {"FI_PROVIDER", "libfabric chooses a provider for these devices by itself."});
  if (pod.gpus != 0)
    into.unset.push_back(
        {"NCCL_NET_GDR_LEVEL", "NCCL decides by the distance between GPU and NIC."});
}

// EFA devices of the first generation, as in g5 instances, cannot read memory of the peer.
bool readsRemoteMemory(const std::string& product) {
  constexpr std::array kFamilies{"p4d", "p4de", "p5", "p5e", "p5en", "p6", "trn2"};
  const std::string family = product.substr(0, product.find_first_of(".-"));
  return base::contains(kFamilies, family);
}

void adviseEfa(Advice& into) {
  const PodView& pod = into.pod;
  into.set.push_back({"FI_PROVIDER", "efa", "libfabric fails instead of falling back to TCP."});
  if (readsRemoteMemory(pod.product))
    into.set.push_back({"FI_EFA_USE_DEVICE_RDMA", "1",
                        "The devices read and write memory of the peer themselves."});
  else
    into.unset.push_back({"FI_EFA_USE_DEVICE_RDMA",
                          "libfabric asks the device. With 1, a program aborts on devices without "
                          "RDMA reads."});
  if (pod.gpus != 0)
    into.set.push_back({"FI_EFA_ENABLE_SHM_TRANSFER", "0",
                        "libfabric's shared memory cannot take GPU memory on all versions."});
  constexpr auto kBackend = "NIXL uses libfabric. UCX would fall back to TCP without a word.";
  into.set.push_back({"SGLANG_DISAGGREGATION_NIXL_BACKEND", "LIBFABRIC", kBackend});
  into.set.push_back({"TRTLLM_NIXL_KVCACHE_BACKEND", "LIBFABRIC", kBackend});
  into.set.push_back({"DYN_KVBM_NIXL_BACKEND_LIBFABRIC", "true", kBackend});
  into.unset.push_back({"NCCL_IB_HCA", "NCCL_IB_* have no effect on EFA."});
  into.unset.push_back({"UCX_TLS", "UCX has no fast path on EFA. Choose LIBFABRIC in NIXL."});
}

// Names the default interface, because a pod's other interfaces are rails on which no service
// listens.
void adviseInterface(Advice& into) {
  const std::string& name = into.pod.default_interface;
  if (name.empty() || !base::contains(into.pod.interfaces, name)) return;
  constexpr auto kReason = "The default route goes there: the processes of a job find each other.";
  into.set.push_back({"NCCL_SOCKET_IFNAME", "=" + name, kReason});
  into.set.push_back({"GLOO_SOCKET_IFNAME", name, kReason});
}

}  // namespace

Advice adviceFor(const Node& node) {
  Advice out{.pod = podView(node)};
  out.devices = devicesLine(out.pod);
  out.absent = absentDevices(out.pod.given);
  addRemarks(out.pod, out);
  if (const auto* faults = node.variable("VIADUCT_FAULTS"); faults != nullptr && !faults->empty())
    out.remarks.push_back(fmt::format("VIADUCT_FAULTS={} asks Viaduct's agents to inject faults.",
                                      printable(*faults)));
  if (!out.pod.verbs.empty()) adviseVerbs(node, out);
  if (!out.pod.efa.empty()) adviseEfa(out);
  adviseInterface(out);
  return out;
}

}  // namespace viaduct::diag
