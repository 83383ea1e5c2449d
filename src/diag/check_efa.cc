// Checks EFA, Amazon's fabric adapter: devices, driver, and errors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/allocation.h"
#include "diag/own_devices.h"
#include "diag/pci.h"
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

const EfaInstance* instanceOf(const std::string& type) {
  const auto found = std::find_if(kEfaInstances.begin(), kEfaInstances.end(),
                                  [&](const EfaInstance& one) { return one.type == type; });
  return found == kEfaInstances.end() ? nullptr : &*found;
}

constexpr auto kProductName = "/sys/devices/virtual/dmi/id/product_name";

struct EfaView {
  EfaDevices devices = {};
  std::vector<std::string> functions = {};  // PCI functions, with an RDMA device or without
  std::string type = {};                    // instance type; empty: unknown
  const EfaInstance* instance = nullptr;    // null: the type is not in the list
  bool pod = false;
};

bool isEfa(const PciFunction& one) {
  return one.vendor == 0x1d0f && (one.device & 0xfff0U) == 0xefa0;
}

EfaView efaView(const Node& node) {
  EfaView out{.type = node.tree.line(kProductName), .pod = inPod(node.tree, node.variables)};
  out.instance = instanceOf(out.type);
  for (RdmaDevice& one : rdmaDevices(node.tree))
    if (one.kind == RdmaDevice::Kind::kEfa && isDeviceName(one.name))
      out.devices.push_back(std::move(one));
  for (const PciFunction& one : pciFunctions(node.tree))
    if (isEfa(one)) out.functions.push_back(one.address);
  return out;
}

std::vector<std::string> deviceNames(const EfaDevices& devices) {
  std::vector<std::string> out;
  for (const RdmaDevice& one : devices) out.push_back(one.name);
  return out;
}

// ---- How many there are.

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
  Finding finding{
      .severity = have == 0 ? Severity::kFailure : Severity::kWarning,
      .code = "efa.fewer-devices",
      .what = efa.instance != nullptr
                  ? fmt::format("This {} has {} of {} EFA devices.", efa.type, have, wanted)
                  : fmt::format("{} of {} EFA functions have a device.", have, wanted),
      .evidence = {{kProductName, printable(efa.type)},
                   {"/sys/class/infiniband", shortList(deviceNames(efa.devices), "EFA devices")},
                   {"/sys/bus/pci/devices", fmt::format("{} EFA functions", efa.functions.size())}},
      .cause = driver ? "The driver has not taken all functions, or the devices are in another "
                        "network namespace."
                      : "The instance was launched with fewer EFA interfaces than its type has.",
      .fix = driver ? kEfaDriverFix : kEfaLaunchFix + printable(efa.type)};
  if (efa.instance != nullptr)
    finding.gain = fmt::format("{} Gb/s instead of {}.", efa.instance->gigabits * wanted,
                               efa.instance->gigabits * have);
  findings.add(std::move(finding));
}

// ---- The driver.

// Parses "3.0.0g".
std::optional<std::pair<unsigned, unsigned>> efaDriverVersion(const std::string& text) {
  unsigned major = 0, minor = 0;
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || dot == end || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, end, minor).ec != std::errc()) return std::nullopt;
  return {{major, minor}};
}

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
  const auto version = efaDriverVersion(file.text);
  if (!version)
    return findings.add({.severity = Severity::kUnknown,
                         .code = "efa.driver-unknown",
                         .what = "Could not look at the version of the efa driver.",
                         .evidence = {{kEfaVersion, printable(file.text)}},
                         .fix = "Read it on the node: modinfo efa"});
  if (*version >= std::pair(2U, 6U))
    return findings.fine(fmt::format("The efa driver has version {}.", printable(file.text)));
  findings.add(
      {.severity = Severity::kWarning,
       .code = "efa.driver-old",
       .what =
           fmt::format("The efa driver {} is old: 2.6 or newer is needed.", printable(file.text)),
       .evidence = {{kEfaVersion, printable(file.text)}},
       .cause = *version < std::pair(2U, 4U)
                    ? "Before 2.4 the driver has no RDMA write, before 2.6 it does not say "
                      "how it reaches GPU memory."
                    : "Before 2.6 the driver does not say how it reaches GPU memory.",
       .fix = kEfaInstaller,
       .gain = "RDMA writes and GPUDirect; since 2.13 the real link speed."});
}

// ---- GPU memory.

bool hasNvidiaGpu(const Node& node) {
  if (!node.tree.list("/proc/driver/nvidia/gpus").empty()) return true;
  const auto all = pciFunctions(node.tree);
  return std::any_of(all.begin(), all.end(), isNvidiaGpu);
}

void checkEfaPeerMemory(const Node& node, const EfaView& efa, Findings& findings) {
  if (!hasNvidiaGpu(node)) return;
  std::vector<std::string> without, with;
  Finding finding{.severity = Severity::kWarning, .code = "efa.no-peer-memory"};
  for (const RdmaDevice& one : efa.devices) {
    const std::string path = one.folder + "/device/p2p";
    const FileText file = node.tree.read(path);
    // An old driver lacks the file, and has a finding of its own.
    if (!file) continue;
    const bool empty = node.tree.line(path).empty();
    (empty ? without : with).push_back(one.name);
    if (empty) finding.evidence.push_back({path, "empty"});
  }
  if (!with.empty())
    findings.fine(
        fmt::format("The efa driver reaches GPU memory (p2p): {}.", shortList(with, "devices")));
  if (without.empty()) return;
  finding.what =
      fmt::format("The efa driver has no way to GPU memory for {}.", shortList(without, "devices"));
  finding.cause =
      "The NVIDIA driver was loaded after efa or is not loaded. With its open module and a recent "
      "libfabric, dma-buf may still work.";
  finding.fix =
      "See that the NVIDIA driver is loaded, then load the peer memory module:\n"
      "  nvidia-smi; modprobe efa_nv_peermem || modprobe nvidia_peermem\n"
      "Then look again: cat " +
      finding.evidence.front().source;
  finding.gain = "GPU memory goes to the network directly and not through host memory.";
  findings.add(std::move(finding));
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
    std::vector<std::string> names;
    Finding finding{.severity = Severity::kWarning,
                    .code = "efa.errors",
                    .cause = counter.cause,
                    .fix = counter.fix};
    for (const RdmaDevice& one : efa.devices) {
      const std::string path = fmt::format("{}/hw_counters/{}", one.folder, counter.name);
      const auto count = node.tree.number(path);
      if (!count || *count == 0) continue;
      names.push_back(fmt::format("{} times on {}", *count, one.name));
      finding.evidence.push_back({path, std::to_string(*count)});
    }
    if (names.empty()) continue;
    any = true;
    finding.what =
        fmt::format("{} since the node booted: {}.", counter.what, shortList(names, "devices"));
    findings.add(std::move(finding));
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
  std::vector<std::string> names;
  std::vector<Evidence> evidence;
  for (const RdmaDevice& one : rdmaDevices(node.tree)) {
    const std::string file = "/dev/infiniband/" + one.uverbs;
    if (one.kind != RdmaDevice::Kind::kMellanox || one.uverbs.empty() || !node.tree.has(file))
      continue;
    names.push_back(printable(one.name));
    evidence.push_back({printable(file), printable(one.name)});
  }
  if (names.empty()) return;
  findings.add({.severity = efa.pod ? Severity::kFailure : Severity::kInfo,
                .code = "efa.mellanox-beside",
                .what = fmt::format("{} the files of {} in /dev/infiniband beside those of EFA.",
                                    efa.pod ? "This container has" : "This node has",
                                    fmt::join(names, ", ")),
                .evidence = std::move(evidence),
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
