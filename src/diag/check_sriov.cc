// Checks SR-IOV: the devices that this pod got, and the links of its virtual functions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/lists.h"
#include "diag/allocation.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using enum AllocationFaultKind;

constexpr auto kRecreate =
    "Look at the device plugin on this node, then recreate the pod:\n"
    "  kubectl -n openshift-sriov-network-operator logs ds/sriov-device-plugin\n"
    "Outside of OpenShift, the namespace is that of the SR-IOV network operator.";

// Makes one finding of all faults of a kind.
void addFaults(const Allocation& given, AllocationFaultKind kind, Finding finding,
               Findings& findings) {
  std::vector<std::string> subjects;
  for (const AllocationFault& one : given.faults) {
    if (one.kind != kind) continue;
    subjects.push_back(fmt::format("{} {}", one.subject, one.detail));
    finding.evidence.push_back({one.variable, fmt::format("{}: {}", one.subject, one.detail)});
  }
  if (subjects.empty()) return;
  finding.what += fmt::format(": {}.", fmt::join(subjects, "; "));
  findings.add(std::move(finding));
}

void reportFaults(const Allocation& given, Findings& findings) {
  const Severity severity = given.certain() ? Severity::kWarning : Severity::kFailure;
  addFaults(given, kBrokenInfo,
            {.severity = severity,
             .code = "sriov.broken-info",
             .what = "The device plugin's description of this pod's devices cannot be read",
             .cause = "The variable was cut off or overwritten, or its form is unknown.",
             .fix = kRecreate},
            findings);
  addFaults(given, kHostileName,
            {.severity = severity,
             .code = "sriov.hostile-name",
             .what = "A PCIDEVICE_* variable holds a name that no device can have",
             .cause = "The variable was overwritten. Its value is ignored.",
             .fix = kRecreate},
            findings);
  addFaults(given, kNoDevice,
            {.severity = Severity::kFailure,
             .code = "sriov.no-device",
             .what = "This pod was given functions without an RDMA device here",
             .cause = "The function was reset or bound to another driver, or the RDMA device is in "
                      "another network namespace.",
             .fix = "On the node, see which device each function has:\n"
                    "  rdma link show; ls /sys/bus/pci/devices/*/infiniband\n"
                    "In its SriovNetworkNodePolicy: isRdma: true, deviceType: netdevice"},
            findings);
  addFaults(given, kRenamed,
            {.severity = Severity::kInfo,
             .code = "sriov.renamed",
             .what = "A device has another name than the device plugin says",
             .cause = "The device was renamed after the plugin started. The name here counts."},
            findings);
  addFaults(given, kNotRdma,
            {.severity = Severity::kInfo,
             .code = "sriov.not-rdma",
             .what = "This pod was given functions that are no RDMA devices",
             .cause = "Their resource is for Ethernet or for vfio."},
            findings);
}

void reportGiven(const Node& node, const Allocation& given, Findings& findings) {
  const std::string names = namesOf(given.devices);
  switch (given.known_by) {
    case KnownBy::kInfo:
    case KnownBy::kAddresses:
      return findings.fine(
          fmt::format("This pod was given {} ({}).", names, fmt::join(given.variables, ", ")));
    case KnownBy::kDeviceFiles:
      return findings.fine(fmt::format("This container has the device files of {} only.", names));
    case KnownBy::kFunctions:
      return findings.add(
          {.severity = Severity::kWarning,
           .code = "sriov.guessed",
           .what = fmt::format("This pod sees all devices of the node, and nothing says that it "
                               "was given {}.",
                               names),
           .evidence = base::mapped(
               given.devices, [](const RdmaDevice& one) { return Evidence{one.folder, one.pci}; }),
           .cause = "The pod is privileged and requests no SR-IOV resource. Some of these virtual "
                    "functions may belong to other pods.",
           .fix = "Request the resource of the SR-IOV device plugin in the container:\n"
                  "  resources: {limits: {openshift.io/NAME: 1}}\n"
                  "List the names: kubectl get node NODE -o jsonpath='{.status.allocatable}'",
           .gain = "The pod gets functions that no other pod uses."});
    case KnownBy::kPorts:
      return findings.fine(fmt::format("{} may use all devices with an active port: {}.",
                                       inPod(node) ? "This pod" : "A program", names));
    case KnownBy::kNone:
      return findings.fine(given.others.empty()
                               ? "There are no RDMA devices: nothing to allocate."
                               : "No RDMA device has an active port: see the topic rdma.");
  }
}

const RdmaDevice* deviceAt(const Allocation& given, const std::string& address) {
  const RdmaDevice* const other = base::firstWith(given.others, &RdmaDevice::pci, address);
  return other != nullptr ? other : base::firstWith(given.devices, &RdmaDevice::pci, address);
}

// The index of a virtual function on its physical function; empty: it is not visible.
std::string numberOf(const Tree& tree, const RdmaDevice& device) {
  const std::string owner = "/sys/bus/pci/devices/" + device.physical;
  for (const std::string& name : tree.list(owner))
    if (name.starts_with("virtfn") &&
        tree.resolve(fmt::format("{}/{}", owner, name)).ends_with(device.pci))
      return name.substr(6);
  return {};
}

// The commands for one virtual function, which an administrator types on the node.
std::string linkCommands(const Tree& tree, const RdmaDevice& device, const RdmaDevice& owner,
                         bool guid) {
  const std::string number = numberOf(tree, device);
  const bool ethernet = !device.ports.empty() && device.ports.front().roce();
  if (ethernet && !owner.interfaces.empty())
    return fmt::format("  ip link set {} vf {} state auto\n", owner.interfaces.front(),
                       number.empty() ? "N" : number);
  const std::string folder = fmt::format("/sys/class/infiniband/{}/device/sriov/{}", owner.name,
                                         number.empty() ? "N" : number);
  std::string out = fmt::format("  echo Follow > {}/policy\n", folder);
  if (guid)
    out = fmt::format("  echo GUID > {0}/node; echo GUID > {0}/port\n", folder) + out +
          fmt::format(
              "  echo {0} > /sys/bus/pci/drivers/mlx5_core/unbind\n"
              "  echo {0} > /sys/bus/pci/drivers/mlx5_core/bind\n",
              device.pci);
  return out;
}

struct DownFunctions {
  std::vector<RdmaDevice> devices = {};
  std::vector<Evidence> evidence = {};
  std::string commands = {};
};

void findDown(const Tree& tree, const Allocation& given, DownFunctions& no_guid,
              DownFunctions& down) {
  for (const RdmaDevice& one : given.devices) {
    const FunctionFault fault = functionFault(tree, one);
    if (fault == FunctionFault::kNo) continue;
    const RdmaDevice* const owner = deviceAt(given, one.physical);
    const RdmaPort& port = one.ports.front();
    const bool guid = fault == FunctionFault::kNoGuid;
    DownFunctions& into = guid ? no_guid : down;
    into.devices.push_back(one);
    into.evidence.push_back({port.folder + "/state", port.state});
    if (guid) into.evidence.push_back({one.folder + "/node_guid", "0000:0000:0000:0000"});
    if (owner != nullptr) {
      if (!guid) into.evidence.push_back({owner->folder, owner->ports.front().state});
      into.commands += linkCommands(tree, one, *owner, guid);
    }
  }
}

void reportDown(const Node& node, const Allocation& given, Findings& findings) {
  DownFunctions no_guid, down;
  findDown(node.tree, given, no_guid, down);
  if (!no_guid.devices.empty())
    findings.add(
        {.severity = Severity::kFailure,
         .code = "sriov.no-guid",
         .what = fmt::format("The InfiniBand functions {} have no GUID.", namesOf(no_guid.devices)),
         .evidence = std::move(no_guid.evidence),
         .cause = "The subnet manager does not bring up a virtual function without a GUID, so its "
                  "port stays down.",
         .fix = "In Kubernetes, install ib-kubernetes, which assigns GUIDs. By hand, on the "
                "node, with a GUID of your own for each:\n" +
                no_guid.commands,
         .gain = "The port becomes active."});
  if (!down.devices.empty())
    findings.add({.severity = Severity::kFailure,
                  .code = "sriov.link-down",
                  .what = fmt::format(
                      "Virtual functions are down, while their physical functions are active: {}.",
                      namesOf(down.devices)),
                  .evidence = std::move(down.evidence),
                  .cause = "The link policy of the function keeps it down, or its interface in the "
                           "pod is down.",
                  .fix = "On the node:\n" + down.commands + "In the pod: ip link set INTERFACE up",
                  .gain = "The port becomes active."});
}

// Reports variables that name physical functions in place of the pod's virtual ones.
void reportPhysical(const Node& node, const Allocation& given, Findings& findings) {
  constexpr std::array<const char*, 3> kLists{"NCCL_IB_HCA", "UCX_NET_DEVICES", "NVSHMEM_HCA_LIST"};
  std::vector<std::string> listed;
  std::vector<Evidence> evidence;
  std::string fix;
  for (const char* const variable : kLists) {
    const std::string* const value = node.variable(variable);
    if (value == nullptr || value->starts_with('^')) continue;
    const std::vector<RdmaDevice> physical = physicalListed(given, *value);
    for (const RdmaDevice& one : physical)
      if (!base::contains(listed, one.name)) listed.push_back(one.name);
    if (physical.empty()) continue;
    evidence.push_back({variable, printable(*value)});
    fix += fmt::format("unset {}\n", variable);
  }
  if (listed.empty()) return;
  findings.add(
      {.severity = Severity::kFailure,
       .code = "sriov.physical-listed",
       .what = fmt::format("This pod was given {}, but its variables name {}.",
                           namesOf(given.devices), fmt::join(listed, ", ")),
       .evidence = std::move(evidence),
       .cause = fmt::format("{} is the physical function. It belongs to the node, and has no "
                            "address in this pod.",
                            fmt::join(listed, ", ")),
       .fix = fix + "Start the program with the right names: viaduct exec -- COMMAND"});
}

}  // namespace

void checkSriov(const Node& node, Findings& findings) {
  const Allocation given = allocationOf(node);
  reportFaults(given, findings);
  reportGiven(node, given, findings);
  reportDown(node, given, findings);
  reportPhysical(node, given, findings);
}

}  // namespace viaduct::diag
