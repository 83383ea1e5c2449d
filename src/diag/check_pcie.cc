// Checks speed, width and error counters of the PCIe links of NICs and GPUs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "diag/hardware.h"
#include "diag/pcie_path.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

// A NIC's physical function, because virtual functions have no link of their own.
struct NicPath {
  std::vector<std::string> names = {};  // of the RDMA devices on the function
  PciFunction function = {};
  std::vector<PciFunction> above = {};  // from the CPU down
  double needed = 0;                    // bytes a second of its active ports; 0: none
};

// One kind of fault, with all devices that have it.
struct PathFault {
  std::vector<std::string> names = {};
  std::vector<std::string> bridges = {};
  std::vector<Evidence> evidence = {};
  std::string address = {};  // of the first device's function
  Severity severity = Severity::kInfo;
};

void addLinkEvidence(PathFault& fault, const PciFunction& function) {
  fault.evidence.push_back(
      {"/sys/bus/pci/devices/" + function.address + "/{current,max}_link_{speed,width}",
       fmt::format("{}, at most {}", textOf(function.link.gigatransfers, function.link.width),
                   textOf(function.link.most_gigatransfers, function.link.most_width))});
}

std::vector<NicPath> nicPaths(const Node& node) {
  std::map<std::string, NicPath> paths;
  for (const RdmaDevice& nic : rdmaNics(node)) {
    if (!nic.function) continue;
    const std::string& physical = nic.function->physical;
    auto function = physical.empty() ? nic.function : pciFunction(node.tree, physical);
    if (!function) continue;  // a guest sees only virtual functions
    NicPath& path = paths[function->address];
    path.names.push_back(nic.name);
    // All RDMA devices of one function share its port.
    path.needed = std::max(path.needed, nic.gigabits() * 1e9 / 8);
    path.function = *std::move(function);
  }
  std::vector<NicPath> out;
  for (auto& [address, path] : paths) {
    path.above = bridgesAbove(node.tree, path.function);
    out.push_back(std::move(path));
  }
  return out;
}

// Whether the bridge is the other end of the function's own link.
bool isParent(const PciFunction& bridge, const PciFunction& function) {
  return function.place.pci.size() >= 2 &&
         function.place.pci[function.place.pci.size() - 2] == bridge.address;
}

const PciFunction* parentOf(const NicPath& path) {
  const bool known = !path.above.empty() && isParent(path.above.back(), path.function);
  return known ? &path.above.back() : nullptr;
}

// A link below the capability of both of its ends has trained badly. If the other end is unknown,
// the slot itself may be slow. A slow slot matters only if the NIC's ports need more.
template <class Number>
Severity trainedBadly(Number now, Number most, Number most_of_parent, bool parent_known,
                      bool enough) {
  if (now <= 0 || most <= now) return Severity::kInfo;
  if (parent_known && most_of_parent > 0)
    return most_of_parent > now ? Severity::kWarning : Severity::kInfo;
  return enough ? Severity::kInfo : Severity::kWarning;
}

void note(PathFault& fault, const NicPath& path) {
  if (fault.address.empty()) fault.address = path.function.address;
  fault.names.insert(fault.names.end(), path.names.begin(), path.names.end());
  addLinkEvidence(fault, path.function);
  fault.severity = Severity::kWarning;
}

// The bridges whose link carries less than the NIC's ports need, and also less than the NIC's own
// link or the bridge's own capability. trainedBadly() judges the capability of the NIC's parent.
std::vector<const PciFunction*> slowBridges(const NicPath& path) {
  std::vector<const PciFunction*> out;
  const double own = path.function.link.bytesPerSecond();
  const double needed = path.needed > 0 ? path.needed : own;
  for (const PciFunction& bridge : path.above) {
    const double now = bridge.link.bytesPerSecond();
    const bool below_own = own > 0 && now < own;
    const bool badly = bridge.link.mostBytesPerSecond() > now && !isParent(bridge, path.function);
    if (now < needed && (below_own || badly)) out.push_back(&bridge);
  }
  return out;
}

enum LinkFault : std::size_t { kSpeed, kWidth, kUpstream, kTooSlow, kLinkFaults };
using NicFaults = std::array<PathFault, kLinkFaults>;

void judge(const NicPath& path, NicFaults& faults) {
  const PciLink& link = path.function.link;
  const PciFunction* const parent = parentOf(path);
  const PciLink theirs = parent != nullptr ? parent->link : PciLink{};
  const bool enough = link.bytesPerSecond() >= path.needed;
  const auto speed = trainedBadly(link.gigatransfers, link.most_gigatransfers,
                                  theirs.most_gigatransfers, parent != nullptr, enough);
  const auto width =
      trainedBadly(link.width, link.most_width, theirs.most_width, parent != nullptr, enough);
  if (speed == Severity::kWarning) note(faults[kSpeed], path);
  if (width == Severity::kWarning) note(faults[kWidth], path);
  const auto slow = slowBridges(path);
  if (!slow.empty()) note(faults[kUpstream], path);
  for (const PciFunction* bridge : slow) {
    auto& bridges = faults[kUpstream].bridges;
    if (base::contains(bridges, bridge->address)) continue;
    bridges.push_back(bridge->address);
    addLinkEvidence(faults[kUpstream], *bridge);
  }
  const bool explained =
      speed == Severity::kWarning || width == Severity::kWarning || !slow.empty();
  if (explained || link.bytesPerSecond() <= 0 || enough) return;
  note(faults[kTooSlow], path);
  faults[kTooSlow].evidence.push_back(
      {"rate of its ports",
       fmt::format("{:.0f} Gb/s = {:.1f} GB/s; the link carries {:.1f} GB/s", path.needed * 8e-9,
                   path.needed * 1e-9, link.bytesPerSecond() * 1e-9)});
}

constexpr auto kReseat =
    "Drain the node, seat the card or riser again, and try another slot.\n"
    "Look at the firmware's setting of this slot (generation, bifurcation).";

// The texts of each LinkFault, in its order. `what` names the devices as {0}, the bridges as {1}.
struct LinkFaultTexts {
  const char *code, *what, *cause, *fix, *gain;
};
constexpr std::array<LinkFaultTexts, kLinkFaults> kLinkFaultTexts{{
    {"pcie.speed", "The PCIe link of {0} runs below its speed.",
     "The link trained at a lower generation: a bad contact, riser or setting.", kReseat,
     "Each generation doubles the bandwidth of the link."},
    {"pcie.width", "The PCIe link of {0} has fewer lanes than it could.",
     "Lanes failed in training, or the slot is split between two cards.", kReseat,
     "Bandwidth grows with the number of lanes."},
    {"pcie.upstream", "The PCIe bridges {1} above {0} are slower than the NIC.",
     "The slowest link on the way to the CPU counts.",
     "Move the NIC to a slot with a faster path, or repair the bridge's link.",
     "The NIC reaches the rate of its own link."},
    {"pcie.too-slow-for-nic", "The PCIe link of {0} carries less than its ports.",
     "The slot has an older generation or fewer lanes than the NIC needs.",
     "Move the NIC to a slot with PCIe 5 x16 (400 Gb/s) or PCIe 4 x16 (200 Gb/s).",
     "The NIC reaches its rate. In PCIe 4 x16 a NIC of 400 Gb/s carries 28 to 31 GB/s instead of "
     "50."},
}};

// Adds a finding, unless no device has the fault.
void addLinkFault(const PathFault& fault, LinkFault kind, Findings& findings) {
  const LinkFaultTexts& texts = kLinkFaultTexts[kind];
  if (fault.names.empty()) return;
  findings.add(
      {.severity = fault.severity,
       .code = texts.code,
       .what = fmt::format(fmt::runtime(texts.what), listed(fault.names), listed(fault.bridges)),
       .evidence = fault.evidence,
       .cause = texts.cause,
       .fix = fmt::format("{}\nThen: lspci -vvs {} | grep -E 'LnkCap|LnkSta'", texts.fix,
                          fault.bridges.empty() ? fault.address : fault.bridges.front()),
       .gain = texts.gain});
}

void checkNicLinks(const Node& node, const std::vector<NicPath>& paths, Findings& findings) {
  if (paths.empty())
    return findings.fine(rdmaNics(node).empty()
                             ? "No RDMA device on PCI."
                             : "Only virtual functions here: their links belong to the host.");
  NicFaults faults;
  std::vector<std::string> unknown;  // PCI addresses
  for (const NicPath& path : paths) {
    if (path.function.link.bytesPerSecond() <= 0) unknown.push_back(path.function.address);
    judge(path, faults);
  }
  for (const LinkFault kind : {kSpeed, kWidth, kUpstream, kTooSlow})
    addLinkFault(faults[kind], kind, findings);
  if (!unknown.empty())
    findings.add(
        {.code = "pcie.unknown",
         .what = fmt::format("The kernel does not know the PCIe link of {}.", listed(unknown)),
         .evidence = {{fmt::format("/sys/bus/pci/devices/{}/current_link_speed", unknown[0]),
                       "Unknown"}},
         .cause = "Virtual machines often hide the link."});
  const bool fine =
      std::ranges::all_of(faults, [](const PathFault& fault) { return fault.names.empty(); });
  if (fine && unknown.size() < paths.size())
    findings.fine(fmt::format("The PCIe paths of {} NICs carry their rate.", paths.size()));
}

// Checks only the width, because an idle GPU lowers its link to 2.5 GT/s.
void checkGpuLinks(const Tree& tree, const std::vector<PciFunction>& gpus, bool nics,
                   Findings& findings) {
  PathFault narrow;
  for (const PciFunction& gpu : gpus) {
    const PciLink& link = gpu.link;
    if (link.width == 0 || link.most_width <= link.width) continue;
    const auto above = bridgesAbove(tree, gpu);
    const bool known = !above.empty() && isParent(above.back(), gpu);
    if (known && above.back().link.most_width <= link.width) continue;  // the slot is no wider
    if (narrow.names.empty()) narrow.address = gpu.address;
    narrow.names.push_back("GPU " + gpu.address);
    addLinkEvidence(narrow, gpu);
    if (known && nics) narrow.severity = Severity::kWarning;
  }
  if (narrow.names.empty() && !gpus.empty())
    findings.fine(fmt::format("{} GPUs have all their PCIe lanes.", gpus.size()));
  addLinkFault(narrow, kWidth, findings);
}

// Fewer corrected errors are normal, because each boot causes some.
constexpr std::uint64_t kManyCorrectable = 1000;

std::string aerText(std::uint64_t total, std::uint64_t more, double seconds) {
  return more == 0 ? std::to_string(total)
                   : fmt::format("{}, {} more within {:.1f} s", total, more, seconds);
}

void addNoAer(const std::string& folder, Findings& findings) {
  findings.add({.code = "pcie.errors-unseen",
                .what = "The kernel shows no counters of PCIe errors here.",
                .evidence = {{folder + "/aer_dev_correctable", "absent, or without a total"}},
                .cause = "Error reporting (AER) is off, or is the matter of the firmware or of the "
                         "host of a virtual machine."});
}

void checkAer(const Node& node, const std::map<std::string, std::string>& folders,
              Findings& findings) {
  Cases counting;
  auto severity = Severity::kInfo;
  bool seen = false;
  for (const auto& [address, folder] : folders)
    for (const std::string_view name : kAerFiles) {
      const std::string path = fmt::format("{}/{}", folder, name);
      const auto total = aerTotal(node.tree, path);
      const std::uint64_t more = node.live.growthOf(path);
      seen |= total.has_value();
      const std::uint64_t count = total.value_or(0);
      if (count == 0) continue;
      counting.add(address, {path, aerText(count, more, node.live.seconds)});
      if (more > 0 || name != kAerFiles[0] || count >= kManyCorrectable)
        severity = Severity::kWarning;
    }
  if (!seen) return addNoAer(folders.begin()->second, findings);
  if (counting.empty())
    return findings.fine("No PCIe errors are counted on the way to NICs and GPUs.");
  findings.add({.severity = severity,
                .code = "pcie.errors",
                .what = fmt::format("The error counters of PCIe are not zero at {}.",
                                    listed(counting.names)),
                .evidence = std::move(counting.evidence),
                .cause = "A growing number means a bad slot, riser or cable.",
                .fix = "Look twice, a minute apart, under load:\n"
                       "grep TOTAL /sys/bus/pci/devices/" +
                       counting.names.front() +
                       "/aer_dev_*\n"
                       "If it grows: seat the card again, replace the riser, update the firmware.",
                .gain = "The link no longer replays packets, and no fatal error drops the device "
                        "from the bus."});
}

// The functions on the paths of RDMA traffic, each once, with their folders.
std::map<std::string, std::string> foldersOnPaths(const Tree& tree,
                                                  const std::vector<NicPath>& paths,
                                                  const std::vector<PciFunction>& gpus) {
  std::vector<PciFunction> functions = gpus;
  for (const NicPath& path : paths) functions.push_back(path.function);
  return foldersOnWay(tree, functions);
}

}  // namespace

void checkPcie(const Node& node, Findings& findings) {
  const std::vector<NicPath> paths = nicPaths(node);
  const std::vector<PciFunction> gpus = nvidiaGpus(node.tree);
  checkNicLinks(node, paths, findings);
  checkGpuLinks(node.tree, gpus, !paths.empty(), findings);
  const auto folders = foldersOnPaths(node.tree, paths, gpus);
  if (!folders.empty()) checkAer(node, folders, findings);
}

}  // namespace viaduct::diag
