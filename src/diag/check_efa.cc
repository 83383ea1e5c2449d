// Checks EFA, Amazon's fabric adapter: devices, driver, and errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "diag/allocation.h"
#include "diag/hardware.h"
#include "diag/own_devices.h"
#include "diag/process_facts.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using EfaDevices = std::vector<RdmaDevice>;

// A row of AWS's list of instance types with EFA.
struct EfaInstance {
  std::string_view type;
  unsigned devices, gigabits;
};
constexpr std::array kEfaInstances{
    EfaInstance{"p4d.24xlarge", 4, 100},      EfaInstance{"p4de.24xlarge", 4, 100},
    EfaInstance{"p5.48xlarge", 32, 100},      EfaInstance{"p5e.48xlarge", 32, 100},
    EfaInstance{"p5en.48xlarge", 16, 200},    EfaInstance{"p6-b200.48xlarge", 8, 400},
    EfaInstance{"p6-b300.48xlarge", 16, 400},
};

constexpr auto kProductName = "/sys/devices/virtual/dmi/id/product_name";

struct EfaView {
  EfaDevices devices = {};
  std::vector<std::string> functions = {};  // PCI functions, with an RDMA device or without
  std::string type = {};                    // instance type; empty: unknown
  const EfaInstance* instance = nullptr;    // null: the type is not in the list
  bool pod = false;
};

EfaView efaView(const Node& node) {
  EfaView out{.type = node.tree.line(kProductName), .pod = inPod(node)};
  out.instance = base::firstWith(kEfaInstances, &EfaInstance::type, out.type);
  for (RdmaDevice& one : rdmaDevices(node.tree))
    if (one.efa() && isDeviceName(one.name)) out.devices.push_back(std::move(one));
  for (const PciFunction& one : pciFunctions(node.tree))
    if (one.isEfa()) out.functions.push_back(one.address);
  return out;
}

// ---- The number of devices.

constexpr auto kEfaLaunchFix =
    "Give the instance all its EFA interfaces when it is launched. With eksctl:\n"
    "  managedNodeGroups: [{efaEnabled: true}]\n"
    "In a launch template: a NetworkInterfaces entry with InterfaceType efa-only for each card.\n"
    "See what the type has: aws ec2 describe-instance-types --instance-types ";

constexpr auto kEfaDriverFix =
    "Load the driver, then look at its messages: modprobe efa; dmesg | grep efa\n"
    "If there is no such module, run the EFA installer: ./efa_installer.sh -y";

void checkEfaCount(const EfaView& efa, Findings& findings) {
  const std::size_t wanted = efa.instance != nullptr ? efa.instance->devices : efa.functions.size();
  const std::size_t have = efa.devices.size();
  if (have >= wanted)
    return findings.fine(fmt::format("{} has {} EFA devices{}.",
                                     efa.type.empty() ? "The node" : printable(efa.type), have,
                                     efa.instance != nullptr ? ", as its type should" : ""));
  const bool driver = efa.functions.size() > have;
  findings.add(
      {.severity = have == 0 ? Severity::kFailure : Severity::kWarning,
       .code = "efa.fewer-devices",
       .what = efa.instance != nullptr
                   ? fmt::format("This {} has {} of {} EFA devices.", efa.type, have, wanted)
                   : fmt::format("{} of {} EFA functions have a device.", have, wanted),
       .evidence = {{kProductName, printable(efa.type)},
                    {"/sys/class/infiniband",
                     shortList(base::mapped(efa.devices, &RdmaDevice::name), "EFA devices")},
                    {"/sys/bus/pci/devices",
                     fmt::format("{} EFA functions", efa.functions.size())}},
       .cause = driver ? "The driver has not taken all functions, or the devices are in another "
                         "network namespace."
                       : "The instance was launched with fewer EFA interfaces than its type has.",
       .fix = driver ? kEfaDriverFix : kEfaLaunchFix + printable(efa.type),
       .gain = efa.instance != nullptr
                   ? fmt::format("{} Gb/s instead of {}.", efa.instance->gigabits * wanted,
                                 efa.instance->gigabits * have)
                   : ""});
}

// ---- The driver.

constexpr auto kEfaVersion = "/sys/module/efa/version";
constexpr auto kEfaInstaller =
    "Install a recent driver on the node, then restart it:\n"
    "  curl -O https://efa-installer.amazonaws.com/aws-efa-installer-latest.tar.gz\n"
    "  tar -xf aws-efa-installer-latest.tar.gz && cd aws-efa-installer && sudo "
    "./efa_installer.sh -y";

void checkEfaDriver(const Node& node, Findings& findings) {
  const FileText file = node.tree.read(kEfaVersion);
  if (!file)
    return findings.add(
        {.severity = Severity::kInfo,
         .code = "efa.driver-unnamed",
         .what = "The efa driver shows no version: it is probably the kernel's own.",
         .evidence = {{kEfaVersion, file.reason.empty() ? "No such file" : file.reason}}});
  const VersionNumbers version = versionNumbers(file.text);  // the text is like "3.0.0g"
  if (version.size() < 2)
    return findings.add({.severity = Severity::kUnknown,
                         .code = "efa.driver-unknown",
                         .what = "Could not look at the version of the efa driver.",
                         .evidence = {{kEfaVersion, printable(file.text)}},
                         .fix = "Read it on the node: modinfo efa"});
  if (version >= VersionNumbers{2, 6})
    return findings.fine(fmt::format("The efa driver has version {}.", printable(file.text)));
  findings.add(
      {.severity = Severity::kWarning,
       .code = "efa.driver-old",
       .what =
           fmt::format("The efa driver {} is old: 2.6 or newer is needed.", printable(file.text)),
       .evidence = {{kEfaVersion, printable(file.text)}},
       .cause = version < VersionNumbers{2, 4}
                    ? "Before 2.4 the driver has no RDMA write, before 2.6 it does not say "
                      "how it reaches GPU memory."
                    : "Before 2.6 the driver does not say how it reaches GPU memory.",
       .fix = kEfaInstaller,
       .gain = "RDMA writes and GPUDirect; since 2.13 the real link speed."});
}

// ---- GPU memory.

void checkEfaPeerMemory(const Node& node, const EfaView& efa, Findings& findings) {
  if (countNvidiaGpus(node.tree) == 0) return;
  Cases without, with;
  for (const RdmaDevice& one : efa.devices) {
    const std::string path = one.folder + "/device/p2p";
    // An old driver lacks the file, and another finding reports the driver.
    if (!node.tree.read(path)) continue;
    (node.tree.line(path).empty() ? without : with).add(one.name, {path, "empty"});
  }
  if (!with.empty())
    findings.fine(fmt::format("The efa driver reaches GPU memory (p2p): {}.",
                              shortList(with.names, "devices")));
  if (without.empty()) return;
  findings.add({.severity = Severity::kWarning,
                .code = "efa.no-peer-memory",
                .what = fmt::format("The efa driver has no way to GPU memory for {}.",
                                    shortList(without.names, "devices")),
                .evidence = without.evidence,
                .cause = "The NVIDIA driver was loaded after efa or is not loaded. With its open "
                         "module and a recent libfabric, dma-buf may still work.",
                .fix = "See that the NVIDIA driver is loaded, then load the peer memory module:\n"
                       "  nvidia-smi; modprobe efa_nv_peermem || modprobe nvidia_peermem\n"
                       "Then look again: cat " +
                       without.evidence.front().source,
                .gain = "GPU memory goes to the network directly and not through host memory."});
}

// ---- Errors.

struct EfaErrorCounter {
  const char *name, *what, *cause, *fix;
};
constexpr std::array kEfaErrors{
    EfaErrorCounter{"reg_mr_err", "Registering memory failed",
                    "A memory region is larger than the device allows, too many are registered, or "
                    "GPU memory was registered with neither peer memory nor dma-buf.",
                    "See the reason in the kernel log: dmesg | grep -E 'REG_MR|efa'\n"
                    "Register fewer or smaller regions, and run fewer processes per device."},
    EfaErrorCounter{
        "create_ah_err", "Creating address handles failed",
        "Each peer takes an address handle; the device has run out of them, or a peer's "
        "address is wrong.",
        "See the reason in the kernel log: dmesg | grep -E 'CREATE_AH|efa'\n"
        "Run fewer processes per device, or connect each to fewer peers."},
    EfaErrorCounter{
        "alloc_pd_err", "Allocating protection domains failed",
        "Too many processes use the device.",
        "Run fewer processes per device; see who has it open: fuser -v /dev/infiniband/*"},
    EfaErrorCounter{
        "create_qp_err", "Creating queue pairs failed", "Too many endpoints use the device.",
        "Run fewer processes per device; see who has it open: fuser -v /dev/infiniband/*"},
    EfaErrorCounter{"create_cq_err", "Creating completion queues failed",
                    "Too many endpoints use the device, or the limit of locked memory is too low.",
                    "Raise the limit: ulimit -l unlimited"},
};

void checkEfaErrors(const Node& node, const EfaView& efa, Findings& findings) {
  bool any = false;
  std::vector<std::string> unknown;
  for (const RdmaDevice& one : efa.devices)
    if (!node.tree.number(one.folder + "/hw_counters/reg_mr_err")) unknown.push_back(one.name);
  for (const EfaErrorCounter& counter : kEfaErrors) {
    Cases failing;
    for (const RdmaDevice& one : efa.devices) {
      const std::string path = fmt::format("{}/hw_counters/{}", one.folder, counter.name);
      if (const auto count = node.tree.number(path).value_or(0); count != 0)
        failing.add(fmt::format("{} times on {}", count, one.name), {path, std::to_string(count)});
    }
    if (failing.empty()) continue;
    any = true;
    findings.add({.severity = Severity::kWarning,
                  .code = "efa.errors",
                  .what = fmt::format("{} since the node booted: {}.", counter.what,
                                      shortList(failing.names, "devices")),
                  .evidence = std::move(failing.evidence),
                  .cause = counter.cause,
                  .fix = counter.fix});
  }
  if (unknown.empty() && !any) findings.fine("EFA devices count no failed commands.");
  if (unknown.empty()) return;
  findings.add(
      {.severity = Severity::kUnknown,
       .code = "efa.errors-unknown",
       .what = fmt::format("Could not look at the error counters of {}.",
                           shortList(unknown, "devices")),
       .evidence = {{"/sys/class/infiniband/" + unknown.front() + "/hw_counters/reg_mr_err",
                     "no number"}},
       .cause = "The driver is too old to have them, or the files are damaged.",
       .fix = kEfaInstaller});
}

// ---- Other devices in the same container.

void checkEfaBeside(const Node& node, const EfaView& efa, Findings& findings) {
  Cases beside;
  for (const RdmaDevice& one : rdmaDevices(node.tree)) {
    const std::string file = "/dev/infiniband/" + one.uverbs;
    if (one.mellanox() && !one.uverbs.empty() && node.tree.has(file))
      beside.add(printable(one.name), {printable(file), printable(one.name)});
  }
  if (beside.empty()) return;
  findings.add({.severity = efa.pod ? Severity::kFailure : Severity::kInfo,
                .code = "efa.mellanox-beside",
                .what = fmt::format("{} the files of {} in /dev/infiniband beside those of EFA.",
                                    efa.pod ? "This container has" : "This node has",
                                    fmt::join(beside.names, ", ")),
                .evidence = std::move(beside.evidence),
                .cause = "libfabric then finds no usable EFA device: fi_getinfo ends with -61, No "
                         "data available. A hostPath mount of /dev/infiniband does that.",
                .fix = "Remove the hostPath volume of /dev/infiniband, and request the devices:\n"
                       "  resources: {limits: {vpc.amazonaws.com/efa: " +
                       std::to_string(efa.devices.size()) + "}}",
                .gain = "libfabric finds the EFA devices."});
}

}  // namespace

void checkEfa(const Node& node, Findings& findings) {
  const EfaView efa = efaView(node);
  if (efa.devices.empty() && efa.functions.empty() && efa.instance == nullptr)
    return findings.fine("There are no EFA devices: nothing to check.");
  checkEfaCount(efa, findings);
  if (efa.devices.empty()) return;
  checkEfaDriver(node, findings);
  checkEfaPeerMemory(node, efa, findings);
  checkEfaErrors(node, efa, findings);
  checkEfaBeside(node, efa, findings);
}

}  // namespace viaduct::diag
