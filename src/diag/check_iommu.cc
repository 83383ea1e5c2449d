// Checks that the IOMMU and ACS let GPUs, and NICs and GPUs, reach each other's memory directly.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/text.h"
#include "diag/acs.h"
#include "diag/gpu_distances.h"
#include "diag/hardware.h"
#include "diag/process_facts.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

constexpr auto kIommuGroups = "/sys/kernel/iommu_groups";
constexpr auto kCommandLine = "/proc/cmdline";

// The name of a NIC or GPU, and its PCI function.
struct DmaDevice {
  std::string name;
  PciFunction function;
  bool nic = false;
};

// The devices that reach each other's memory over PCIe.
struct DmaPeers {
  bool nics = false;  // a NIC and a GPU
  bool gpus = false;  // two GPUs, because there is no NVSwitch between them
  const char* text() const { return !nics ? "GPUs" : gpus ? "GPUs and NICs" : "GPU and NIC"; }
};

// The kernel's IOMMU settings. They are only hints: the type of a device's own group decides.
struct IommuHints {
  std::string machine = {};  // "x86_64", "aarch64"; empty: unknown
  std::string command_line = {};
  bool pt = false;              // iommu=pt is on the command line
  bool passthrough = false;     // the effective setting of the command line on this machine
  std::string encryption = {};  // evidence that memory is encrypted
  bool arm() const { return machine.starts_with("aarch64") || machine.starts_with("arm"); }
};

std::vector<DmaDevice> dmaDevices(const Node& node) {
  std::vector<DmaDevice> out;
  for (RdmaDevice& nic : rdmaNics(node))
    if (nic.function) out.push_back({nic.name, *std::move(nic.function), true});
  for (PciFunction& gpu : nvidiaGpus(node.tree)) {
    std::string name = "GPU " + gpu.address;
    out.push_back({std::move(name), std::move(gpu)});
  }
  return out;
}

std::string machineOf(const Node& node) {
  if (!node.live.machine.empty()) return node.live.machine;
  for (const std::string& name : node.tree.list("/sys/class/iommu")) {
    if (name.starts_with("smmu") || name.starts_with("arm")) return "aarch64";
    if (name.starts_with("dmar") || name.starts_with("ivhd")) return "x86_64";
  }
  return {};
}

std::string encryptionEvidence(const Node& node, const std::string& command_line) {
  const std::string log = node.live.kernel_log ? node.live.kernel_log->text : "";
  for (const char* text : {"Memory encryption detected", "Memory Encryption Features active"})
    if (std::string line = lineWith(log, text); !line.empty()) return line;
  constexpr auto kOn = "mem_encrypt=on";
  return base::contains(base::wordsOf(command_line), kOn) ? kOn : "";
}

// Reads "iommu=pt,nofullflush": settings of one key, the last of which counts.
void readIommuWord(std::string_view value, IommuHints& hints) {
  for (const std::string& one : base::partsOf(value)) {
    if (one == "pt") hints.pt = true;
    if (hints.arm()) continue;  // arm64 ignores the key
    if (one == "pt") hints.passthrough = true;
    if (one == "nopt") hints.passthrough = false;
  }
}

// Parses a truth value as the kernel does.
bool isYes(std::string_view value) {
  return value == "on" ||
         (!value.empty() && std::string_view("1yYtT").find(value[0]) != std::string_view::npos);
}

IommuHints iommuHints(const Node& node) {
  constexpr std::string_view kX86 = "iommu=", kGeneric = "iommu.passthrough=";
  IommuHints out{.machine = machineOf(node), .command_line = node.tree.line(kCommandLine)};
  for (const std::string_view word : base::wordsOf(out.command_line)) {
    if (word.starts_with(kX86)) readIommuWord(word.substr(kX86.size()), out);
    if (word.starts_with(kGeneric)) out.passthrough = isYes(word.substr(kGeneric.size()));
  }
  out.encryption = encryptionEvidence(node, out.command_line);
  return out;
}

bool isTranslated(const DmaDevice& device) {
  return device.function.group_type == "DMA" || device.function.group_type == "DMA-FQ" ||
         device.function.group_type == "blocked";
}

std::string typePath(const PciFunction& function) {
  return fmt::format("{}/{}/type", kIommuGroups, function.group);
}

std::string dmaNames(const std::vector<DmaDevice>& devices) {
  return listed(base::mapped(devices, &DmaDevice::name));
}

std::string passthroughFix(const Node& node, const IommuHints& hints) {
  const std::string setting = hints.arm() ? "iommu.passthrough=1" : "iommu=pt";
  if (onOpenShift(node))
    return fmt::format(
        "Apply this manifest; the nodes of the pool then restart one by one:\n"
        "oc apply -f - <<'EOF'\n"
        "apiVersion: machineconfiguration.openshift.io/v1\n"
        "kind: MachineConfig\n"
        "metadata:\n"
        "  name: 99-worker-iommu-passthrough\n"
        "  labels: {{machineconfiguration.openshift.io/role: worker}}\n"
        "spec:\n"
        "  kernelArguments: [{}]\n"
        "EOF\n"
        "A restart takes 15 to 30 minutes a node. Intel CPUs may need intel_iommu=on as well.",
        setting);
  return fmt::format(
      "Add {0} to the kernel command line of the node, and restart it.\n"
      "RHEL, Rocky, Amazon Linux: grubby --update-kernel=ALL --args=\"{0}\"\n"
      "Debian, Ubuntu: add {0} to GRUB_CMDLINE_LINUX in /etc/default/grub; update-grub\n"
      "Azure, GKE, EKS: put it into the image or the node pool's start-up script.{1}",
      setting, hints.machine.empty() ? "\nOn arm64 the setting is iommu.passthrough=1." : "");
}

// The commands that change a group's type, which is possible while no driver holds its devices.
std::string changeTypeFix(const std::vector<DmaDevice>& translated) {
  const auto addresses =
      base::mapped(translated, [](const DmaDevice& one) { return one.function.address; });
  return fmt::format(
      "Change the groups by hand, on the node, as root, while no job runs:\n"
      "for a in {}; do\n"
      "  g=$(readlink -f /sys/bus/pci/devices/$a/iommu_group)\n"
      "  echo $a > /sys/bus/pci/devices/$a/driver/unbind\n"
      "  echo identity > $g/type\n"
      "  echo $a > /sys/bus/pci/drivers_probe\n"
      "done",
      fmt::join(addresses, " "));
}

struct TranslationCause {
  const char* code;
  std::string cause, fix;
};

TranslationCause causeOf(const Node& node, const IommuHints& hints,
                         const std::vector<DmaDevice>& translated) {
  if (hints.arm() && hints.pt && !hints.passthrough)
    return {"iommu.pt-on-arm", "The kernel of arm64 ignores iommu=pt, which belongs to x86.",
            "Remove iommu=pt.\n" + passthroughFix(node, hints)};
  if (!hints.encryption.empty())
    return {"iommu.memory-encryption",
            "Encrypted memory (SME or SEV) makes the kernel keep DMA translation on.",
            "If this node may do without it, add mem_encrypt=off to the command line.\n" +
                passthroughFix(node, hints) +
                "\nA confidential VM cannot: choose an instance type without SEV."};
  if (hints.passthrough)
    return {"iommu.not-in-force",
            "The command line asks for passthrough, but a driver or the firmware overrides it.",
            changeTypeFix(translated)};
  return {"iommu.translated", "The kernel translates DMA addresses unless it is told otherwise.",
          passthroughFix(node, hints)};
}

std::vector<Evidence> translationEvidence(const Node& node, const IommuHints& hints,
                                          const std::vector<DmaDevice>& translated) {
  std::map<std::string, std::pair<std::string, std::vector<std::string>>> groups;
  for (const DmaDevice& one : translated) {
    auto& [type, names] = groups[typePath(one.function)];
    type = one.function.group_type;
    names.push_back(one.name);
  }
  std::vector<Evidence> out;
  out.reserve(groups.size());
  for (const auto& [path, group] : groups)
    out.push_back({path, fmt::format("{} ({})", group.first, listed(group.second))});
  out.push_back({kCommandLine, hints.command_line});
  if (!hints.encryption.empty()) out.push_back({"kernel", hints.encryption});
  if (node.live.kernel_log)
    if (std::string line = lineWith(node.live.kernel_log->text, "Default domain type");
        !line.empty())
      out.push_back({"kernel log", std::move(line)});
  return out;
}

// While the IOMMU translates, a virtual function on a node with GPUs fails, and so does a device of
// a blocked group. Other devices work, but each registration of memory costs more.
Severity translationSeverity(const std::vector<DmaDevice>& devices,
                             const std::vector<DmaDevice>& translated) {
  const bool gpus = std::ranges::any_of(devices, [](const auto& d) { return !d.nic; });
  return std::ranges::any_of(translated,
                             [&](const DmaDevice& one) {
                               return one.function.group_type == "blocked" ||
                                      (one.nic && gpus && !one.function.physical.empty());
                             })
             ? Severity::kFailure
             : Severity::kWarning;
}

constexpr auto kRdmaGain =
    "RDMA between NIC and GPU works (without: IBV_WC_LOC_PROT_ERR).\n"
    "A published case went from 0.98 GiB/s over TCP to 83.33 GiB/s, with this and unlimited "
    "memlock.";
constexpr auto kGpuGain =
    "Copies between GPUs over PCIe work. NVIDIA does not support them while the IOMMU translates:\n"
    "they may damage memory.";

void checkTranslation(const Node& node, const std::vector<DmaDevice>& devices,
                      const DmaPeers& peers, Findings& findings) {
  const std::vector<DmaDevice> translated = base::only(devices, isTranslated);
  if (translated.empty()) return;
  const IommuHints hints = iommuHints(node);
  TranslationCause found = causeOf(node, hints, translated);
  findings.add({.severity = translationSeverity(devices, translated),
                .code = found.code,
                .what = fmt::format("The IOMMU translates the DMA of {}.", dmaNames(translated)),
                .evidence = translationEvidence(node, hints, translated),
                .cause = std::move(found.cause),
                .fix = std::move(found.fix) + "\nThen " + typePath(translated[0].function) +
                       " reads identity.",
                .gain = peers.nics ? kRdmaGain : kGpuGain});
}

// Reports groups of unknown type: kernels before 5.11 do not show it, and newer ones may have new
// types.
void checkUnknownTypes(const Node& node, const std::vector<DmaDevice>& devices,
                       Findings& findings) {
  const auto unknown = base::only(devices, [](const DmaDevice& one) {
    return !one.function.group.empty() && !isTranslated(one) &&
           one.function.group_type != "identity";
  });
  if (unknown.empty()) return;
  const IommuHints hints = iommuHints(node);
  const PciFunction& first = unknown[0].function;
  findings.add(
      {.severity = hints.passthrough ? Severity::kInfo : Severity::kUnknown,
       .code = "iommu.type-unknown",
       .what = fmt::format("Could not tell whether the IOMMU translates the DMA of {}.",
                           dmaNames(unknown)),
       .evidence = {{typePath(first), first.group_type.empty() ? "absent" : first.group_type},
                    {kCommandLine, hints.command_line}},
       .cause = first.group_type.empty()
                    ? "Kernels before 5.11 do not show the type of an IOMMU group."
                    : "The kernel names a type that is neither translation nor identity.",
       .fix = "Look at the kernel log: dmesg | grep 'Default domain type'\n"
              "Passthrough is right; Translated is not."});
}

using Bridges = std::set<std::string>;

// The bridges between two devices, below the last bridge that they share. Empty: they share none.
Bridges bridgesBetween(const PciFunction& one, const PciFunction& other) {
  const auto &from = one.place.pci, &to = other.place.pci;
  const auto [a, b] = std::mismatch(from.begin(), from.end(), to.begin(), to.end());
  Bridges out;
  if (a == from.begin()) return out;
  if (a != from.end()) out.insert(a, from.end() - 1);
  if (b != to.end()) out.insert(b, to.end() - 1);
  return out;
}

Bridges bridgesBetweenPeers(const std::vector<DmaDevice>& devices, const DmaPeers& peers) {
  Bridges out;
  for (const DmaDevice& gpu : devices)
    for (const DmaDevice& other : devices)
      if (!gpu.nic && (other.nic || (peers.gpus && &other != &gpu)))
        out.merge(bridgesBetween(gpu.function, other.function));
  return out;
}

void addRedirects(const Cases& redirecting, const DmaPeers& peers, Findings& findings) {
  const std::vector<std::string>& bridges = redirecting.names;
  std::string fix = "As root, on the node, at each boot:\n";
  for (const std::string& bridge : bridges)
    fix += fmt::format("setpci -s {} ECAP_ACS+0x6.w=0000\n", bridge);
  fix += fmt::format("Or on the kernel command line (Linux 4.19): pci=disable_acs_redir={}\n",
                     fmt::join(bridges, ";"));
  fix += "Or switch ACS off in the firmware setup.";
  findings.add(
      {.severity = Severity::kWarning,
       .code = "iommu.acs-redirect",
       .what = fmt::format("ACS sends traffic between {} up to the CPU at {}.", peers.text(),
                           listed(bridges)),
       .evidence = redirecting.evidence,
       .cause =
           "The firmware or the kernel switches ACS on to isolate devices for virtual machines.",
       .fix = std::move(fix),
       .gain = fmt::format(
           "{} exchange data inside the PCIe switch.{}", peers.text(),
           peers.nics ? " ACS is also a known cause of error 4, vendor error 81." : "")});
}

void checkAcs(const Node& node, const std::vector<DmaDevice>& devices, const DmaPeers& peers,
              Findings& findings) {
  const Bridges between = bridgesBetweenPeers(devices, peers);
  if (between.empty()) return;
  Cases redirecting;
  std::vector<std::string> hidden;
  for (const std::string& bridge : between) {
    const std::string folder = "/sys/bus/pci/devices/" + bridge;
    const AcsControl control = acsControl(node.tree, folder);
    if (control.state == AcsControl::State::kHidden) hidden.push_back(bridge);
    if (control.redirects())
      redirecting.add(bridge, {folder + "/config", "ACSCtl: " + control.text()});
  }
  if (!redirecting.empty()) addRedirects(redirecting, peers, findings);
  if (!hidden.empty())
    findings.add({.code = "iommu.acs-unseen",
                  .what = fmt::format("Cannot see ACS of the bridges between {}: {}.", peers.text(),
                                      listed(hidden, 4)),
                  .evidence = {{fmt::format("/sys/bus/pci/devices/{}/config", hidden[0]),
                                "the first 64 bytes, or less"}},
                  .cause = "The kernel shows more of the config space only to CAP_SYS_ADMIN.",
                  .fix = "sudo viaduct doctor --only iommu"});
  if (redirecting.empty() && hidden.empty())
    findings.fine(fmt::format("No bridge between {} redirects by ACS ({} looked at).", peers.text(),
                              between.size()));
}

void sayFine(const std::vector<DmaDevice>& devices, Findings& findings) {
  std::size_t none = 0, identity = 0;
  for (const DmaDevice& one : devices) {
    none += one.function.group.empty() ? 1 : 0;
    identity += one.function.group_type == "identity" ? 1 : 0;
  }
  if (none > 0) findings.fine(fmt::format("{} devices have no IOMMU in this system.", none));
  if (identity > 0) findings.fine(fmt::format("The IOMMU passes {} devices through.", identity));
}

}  // namespace

void checkIommu(const Node& node, Findings& findings) {
  const std::vector<DmaDevice> devices = dmaDevices(node);
  const DmaPeers peers{.nics = std::ranges::any_of(devices, &DmaDevice::nic),
                       .gpus = meetOnPcie(node.tree, nvidiaGpus(node.tree))};
  if (!peers.nics && !peers.gpus)
    return findings.fine(
        "No RDMA device on PCI, and no GPUs that meet there: the IOMMU does not matter.");
  checkTranslation(node, devices, peers, findings);
  checkUnknownTypes(node, devices, findings);
  sayFine(devices, findings);
  checkAcs(node, devices, peers, findings);
}

}  // namespace viaduct::diag
