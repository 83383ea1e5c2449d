// Checks RDMA devices: ports, rates, firmware, and the device files through which programs open
// them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "diag/allocation.h"
#include "diag/own_devices.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

struct PortOf {
  const RdmaDevice* device = nullptr;
  const RdmaPort* port = nullptr;
  // "mlx5_0", or "mlx5_0:2" if the device has several ports.
  std::string name() const {
    return device->ports.size() == 1 ? device->name
                                     : fmt::format("{}:{}", device->name, port->number);
  }
};
using PortList = std::vector<PortOf>;

std::vector<std::string> portNames(const PortList& ports) {
  return base::mapped(ports, &PortOf::name);
}

PortList portsOf(const OwnDevices& own) {
  PortList out;
  for (const RdmaDevice& device : own.devices)
    for (const RdmaPort& port : device.ports) out.push_back({&device, &port});
  return out;
}

std::vector<Evidence> filesOf(const PortList& ports, std::initializer_list<const char*> names,
                              const Tree& tree) {
  std::vector<Evidence> out;
  for (const PortOf& one : ports)
    for (const char* name : names) {
      const std::string path = fmt::format("{}/{}", one.port->folder, name);
      if (tree.has(path)) out.push_back({path, printable(tree.line(path))});
    }
  return out;
}

// ---- States.

// The reasons why a port carries no data. kNo: the port is active.
enum class DownKind { kNo, kPolling, kDown, kInit, kUnknown };

DownKind downOf(const RdmaPort& port) {
  if (port.active()) return DownKind::kNo;
  if (port.state.starts_with("2:") || port.state.starts_with("3:")) return DownKind::kInit;
  if (!port.state.starts_with("1:")) return DownKind::kUnknown;
  return port.phys_state.starts_with("2:") ? DownKind::kPolling : DownKind::kDown;
}

// True if another check reports why the port is down, or if it is a virtual function that no pod
// uses.
bool isOfAnotherCheck(const Node& node, const OwnDevices& own, const PortOf& one) {
  if (!one.device->physical.empty() &&
      (!own.certain || functionFault(node.tree, *one.device) != FunctionFault::kNo))
    return true;
  const std::string interface = interfaceOf(node.tree, *one.device, *one.port);
  return one.port->roce() && !interface.empty() && isInterfaceDown(node.tree, interface);
}

// True if exactly the cards' first ports are active: second ports often have no cable.
bool areUnusedSecondPorts(const OwnDevices& own, const PortList& down) {
  const auto second = [](const RdmaDevice& one) { return !one.pci.ends_with(".0"); };
  return std::ranges::all_of(down, [&](const PortOf& one) { return second(*one.device); }) &&
         std::ranges::all_of(
             own.devices, [&](const RdmaDevice& one) { return hasActivePort(one) != second(one); });
}

Severity severityOfDown(const OwnDevices& own, const PortList& down) {
  const bool none_active = std::ranges::none_of(own.devices, hasActivePort);
  if (own.given || none_active) return Severity::kFailure;
  return areUnusedSecondPorts(own, down) ? Severity::kInfo : Severity::kWarning;
}

std::string leaveOut(const PortList& ports) {
  return fmt::format("If nobody needs the port, leave it out: NCCL_IB_HCA=^={}",
                     fmt::join(portNames(ports), ","));
}

void reportPolling(const Node& node, const OwnDevices& own, const PortList& ports,
                   Findings& findings) {
  findings.add({.severity = severityOfDown(own, ports),
                .code = "rdma.polling",
                .what = fmt::format("{} no link partner: the physical state is Polling.",
                                    withVerb(portNames(ports), "finds", "find")),
                .evidence = filesOf(ports, {"state", "phys_state"}, node.tree),
                .cause = "The cable or its transceiver is missing or broken, or the switch port is "
                         "off.",
                .fix = fmt::format("Look at the cable and the switch port: mlxlink -d {} -m\n{}",
                                   toolName(*ports.front().device), leaveOut(ports)),
                .gain = "The node gains the rate of each port that comes up."});
}

void reportDownPorts(const Node& node, const OwnDevices& own, const PortList& ports,
                     Findings& findings) {
  const RdmaDevice& device = *ports.front().device;
  const std::string interface =
      device.interfaces.empty() ? std::string() : printable(device.interfaces.front());
  findings.add({.severity = severityOfDown(own, ports),
                .code = "rdma.port-down",
                .what = fmt::format("{} down.", withVerb(portNames(ports), "is", "are")),
                .evidence = filesOf(ports, {"state", "phys_state", "link_layer"}, node.tree),
                .cause = "The port is disabled, its interface is down, or the link has failed.",
                .fix = fmt::format(
                    "{}Look at the link: rdma link show {}/{}; mlxlink -d {}\n{}",
                    interface.empty()
                        ? std::string()
                        : fmt::format("Bring the interface up: ip link set {} up\n", interface),
                    device.name, ports.front().port->number, toolName(device), leaveOut(ports)),
                .gain = "The node gains the rate of each port that comes up."});
}

void reportInit(const Node& node, const OwnDevices& own, const PortList& ports,
                Findings& findings) {
  findings.add({.severity = severityOfDown(own, ports),
                .code = "rdma.port-init",
                .what = fmt::format("{} a link and no subnet manager: the state is {}.",
                                    withVerb(portNames(ports), "has", "have"),
                                    printable(ports.front().port->state)),
                .evidence = filesOf(ports, {"state", "lid", "sm_lid", "link_layer"}, node.tree),
                .cause = "No subnet manager runs in this InfiniBand fabric, or it does not reach "
                         "this port.",
                .fix = "Find the subnet manager: sminfo\n"
                       "Start one on a switch, in UFM, or on one node: systemctl start opensm",
                .gain = "The port becomes active."});
}

void reportUnknownStates(const Node&, const OwnDevices&, const PortList& ports,
                         Findings& findings) {
  findings.add({.severity = Severity::kUnknown,
                .code = "rdma.state-unknown",
                .what = fmt::format("Could not look at the port state of {}.",
                                    fmt::join(portNames(ports), ", ")),
                .evidence = base::mapped(ports,
                                         [](const PortOf& one) {
                                           return Evidence{one.port->folder + "/state",
                                                           printable(one.port->state)};
                                         }),
                .cause = "The file is missing, empty or damaged.",
                .fix = "Read it on the node: ibv_devinfo"});
}

void checkPortStates(const Node& node, const OwnDevices& own, const PortList& ports,
                     Findings& findings) {
  std::map<DownKind, PortList> found;
  for (const PortOf& one : ports)
    if (const DownKind down = downOf(*one.port);
        down == DownKind::kNo || down == DownKind::kUnknown || !isOfAnotherCheck(node, own, one))
      found[down].push_back(one);
  for (const auto& [kind, report] :
       {std::pair(DownKind::kPolling, &reportPolling), std::pair(DownKind::kDown, &reportDownPorts),
        std::pair(DownKind::kInit, &reportInit),
        std::pair(DownKind::kUnknown, &reportUnknownStates)})
    if (found.contains(kind)) report(node, own, found[kind], findings);
}

// Reports ports that cannot be judged, because their files are missing or damaged.
void checkPortFiles(const Node& node, const OwnDevices& own, const PortList& ports,
                    Findings& findings) {
  Cases unknown;
  for (const RdmaDevice& device : own.devices)
    if (device.ports.empty()) unknown.add(device.name, {device.folder + "/ports", "no port"});
  for (const PortOf& one : ports) {
    const std::string lid = one.port->folder + "/lid";
    const bool any_layer = !one.device->mellanox() || one.port->roce();
    if (!any_layer && !one.port->infiniband())
      unknown.add(one.name(), {one.port->folder + "/link_layer", printable(one.port->link_layer)});
    else if (one.port->infiniband() && one.port->active() && !node.tree.number(lid))
      unknown.add(one.name(), {lid, printable(node.tree.line(lid))});
  }
  if (unknown.empty()) return;
  findings.add({.severity = Severity::kUnknown,
                .code = "rdma.port-unknown",
                .what = fmt::format("Could not look at the ports of {}.",
                                    shortList(unknown.names, "devices")),
                .evidence = std::move(unknown.evidence),
                .cause = "Files of the port are missing or damaged.",
                .fix = "Read them on the node: ibv_devinfo"});
}

void checkLids(const Node& node, const PortList& active, Findings& findings) {
  const PortList without = base::only(active, [&](const PortOf& one) {
    return one.port->infiniband() && node.tree.number(one.port->folder + "/lid") == 0;
  });
  if (without.empty()) return;
  findings.add({.severity = Severity::kFailure,
                .code = "rdma.no-lid",
                .what = fmt::format("{} no address in the InfiniBand fabric: the LID is 0.",
                                    withVerb(portNames(without), "has", "have")),
                .evidence = filesOf(without, {"lid", "sm_lid", "state"}, node.tree),
                .cause =
                    "The subnet manager has not configured the port, or the device is a bond of "
                    "two ports.",
                .fix = "Find the subnet manager: sminfo\n"
                       "Let it sweep the fabric again, or use the bond's ports one by one."});
}

// ---- Rates.

// Devices with equal keys are of one model and one use, so their ports should have equal rates.
auto siblingKey(const PortOf& one) {
  return std::tuple(one.device->efa(), one.device->type, one.device->board,
                    one.device->physical.empty(), one.port->link_layer);
}

std::map<decltype(siblingKey({})), PortList> siblingsOf(const PortList& ports) {
  std::map<decltype(siblingKey({})), PortList> out;
  for (const PortOf& one : ports) out[siblingKey(one)].push_back(one);
  return out;
}

// True for a speed that the kernel does not know: it prints such a speed as the slowest, 2.5 Gb/s a
// lane.
bool isUnnamed(const RdmaPort& port) {
  return port.lanes != 0 && (port.speed.empty() || port.speed == "SDR") &&
         port.gigabits <= 2.5 * port.lanes;
}

// True for an InfiniBand port that runs with one lane at a known speed. An Ethernet port of 25 Gb/s
// always has one.
bool isNarrow(const RdmaPort& port) {
  return port.infiniband() && port.lanes == 1 && !isUnnamed(port);
}

void reportUnnamed(const Node& node, const PortList& ports, Findings& findings) {
  findings.add(
      {.severity = Severity::kInfo,
       .code = "rdma.rate-unnamed",
       .what = fmt::format("This kernel cannot name the rate of {}; it shows {}.",
                           fmt::join(portNames(ports), ", "), printable(ports.front().port->rate)),
       .evidence = filesOf(ports, {"rate", "state"}, node.tree),
       .cause = fmt::format("Kernel {} prints speeds that it does not know as 2.5 Gb/s a "
                            "lane. The link itself is probably fast.",
                            printable(node.live.kernel)),
       .fix = fmt::format("Ask the firmware for the real rate: mlxlink -d {}",
                          toolName(*ports.front().device)),
       .gain = "A newer kernel shows the rate, so that the doctor can judge it."});
}

void reportNarrow(const Node& node, const PortList& ports, Findings& findings) {
  findings.add(
      {.severity = Severity::kWarning,
       .code = "rdma.narrow",
       .what = fmt::format("{} with one lane instead of four.",
                           withVerb(portNames(ports), "runs", "run")),
       .evidence = filesOf(ports, {"rate"}, node.tree),
       .cause = "A lane of the cable or transceiver is broken, or the cable is not pushed "
                "home.",
       .fix = fmt::format("Reseat or replace the cable, then look at its lanes: mlxlink -d "
                          "{} -m -c",
                          toolName(*ports.front().device)),
       .gain = "Four lanes carry four times as much."});
}

void reportSlow(const Node& node, const PortList& slow, const PortOf& fastest, Findings& findings) {
  PortList shown = slow;
  shown.push_back(fastest);
  const auto rates = base::mapped(slow, [](const PortOf& one) {
    return fmt::format("{} ({:g} Gb/s)", one.name(), one.port->gigabits);
  });
  findings.add(
      {.severity = Severity::kWarning,
       .code = "rdma.rate-below-siblings",
       .what = fmt::format("{} slower than {} of the same model ({:g} Gb/s).",
                           withVerb(rates, "is", "are"), fastest.name(), fastest.port->gigabits),
       .evidence = filesOf(shown, {"rate"}, node.tree),
       .cause = "The link came up with fewer lanes or a lower speed: a bad cable or transceiver, "
                "or a limit at the switch port.",
       .fix = fmt::format("Compare both ends of the link: mlxlink -d {0} -m -c\n"
                          "Reseat or replace the cable; then reset the link: mlxlink -d {0} -a TG",
                          toolName(*slow.front().device)),
       .gain = fmt::format("The port carries {:g} Gb/s instead of {:g}. A collective waits for "
                           "its slowest rail.",
                           fastest.port->gigabits, slow.front().port->gigabits)});
}

void checkRatesOf(const Node& node, const PortList& siblings, Findings& findings) {
  const PortList unnamed =
      base::only(siblings, [](const PortOf& one) { return isUnnamed(*one.port); });
  if (unnamed.size() == siblings.size()) return reportUnnamed(node, unnamed, findings);
  const PortOf fastest = *std::ranges::max_element(siblings, [](const PortOf& a, const PortOf& b) {
    return a.port->gigabits < b.port->gigabits;
  });
  const PortList slow = base::only(siblings, [&](const PortOf& one) {
    return one.port->gigabits < fastest.port->gigabits && !isNarrow(*one.port);
  });
  if (!slow.empty()) reportSlow(node, slow, fastest, findings);
}

void checkPortRates(const Node& node, const PortList& active, Findings& findings) {
  const auto readable = [](const PortOf& one) {
    return one.port->gigabits > 0 && one.port->lanes != 0;
  };
  if (const PortList odd = base::only(active, std::not_fn(readable)); !odd.empty())
    findings.add(
        {.severity = Severity::kUnknown,
         .code = "rdma.rate-unknown",
         .what = fmt::format("Could not look at the rate of {}.", fmt::join(portNames(odd), ", ")),
         .evidence = filesOf(odd, {"rate"}, node.tree),
         .cause = "The file is missing, empty or damaged.",
         .fix = "Read it on the node: ibstat"});
  const PortList known = base::only(active, readable);
  const PortList narrow = base::only(known, [](const PortOf& one) { return isNarrow(*one.port); });
  if (!narrow.empty()) reportNarrow(node, narrow, findings);
  for (const auto& [key, siblings] : siblingsOf(known)) checkRatesOf(node, siblings, findings);
}

// ---- Firmware and device files.

// The version of most devices; if two are equally frequent, the greater one.
std::string usualVersion(const std::map<std::string, std::vector<std::string>>& versions) {
  return std::max_element(
             versions.rbegin(), versions.rend(),
             [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); })
      ->first;
}

void checkRdmaFirmware(const OwnDevices& own, Findings& findings) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::vector<std::string>>>
      versions;
  for (const RdmaDevice& one : own.devices)
    if (!one.efa() && !one.firmware.empty() && !one.board.empty())
      versions[{one.type, one.board}][one.firmware].push_back(one.name);
  for (const auto& [board, found] : versions) {
    if (found.size() < 2) continue;
    Finding finding{.severity = Severity::kWarning,
                    .code = "rdma.firmware-differs",
                    .what = fmt::format("Devices of the board {} run {} firmware versions.",
                                        printable(board.second), found.size()),
                    .cause = "An update reached some of the devices, or waits for a reset.",
                    .fix =
                        "See versions and updates: mlxfwmanager --query\n"
                        "Update these, then reset them:",
                    .gain = "All rails behave alike; known faults of the old version are gone."};
    const std::string usual = usualVersion(found);
    for (const RdmaDevice& one : own.devices)
      if (one.type == board.first && one.board == board.second && one.firmware != usual)
        finding.fix +=
            fmt::format("\n  mlxfwmanager -d {0} --update; mlxfwreset -d {0} reset", toolName(one));
    for (const auto& [version, names] : found)
      finding.evidence.push_back({"fw_ver of " + shortList(names, "devices"), printable(version)});
    findings.add(std::move(finding));
  }
}

std::string fixOfNoFiles(const OwnDevices& own) {
  if (own.given)
    return "Recreate the pod. In its SriovNetworkNodePolicy: isRdma: true, deviceType: netdevice";
  if (own.pod)
    return fmt::format(
        "Request the devices in the container:\n"
        "  resources: {{limits: {{{}}}}}\n"
        "The node may offer another name: kubectl get node NODE -o "
        "jsonpath='{{.status.allocatable}}'",
        own.devices.front().efa() ? fmt::format("vpc.amazonaws.com/efa: {}", own.devices.size())
                                  : std::string("rdma/hca_shared_devices_a: 1"));
  return "Load the module, and let udev make the files: modprobe ib_uverbs; udevadm trigger\n"
         "With Docker: --device=/dev/infiniband";
}

void checkDeviceFiles(const Node& node, const OwnDevices& own, Findings& findings) {
  Cases without;
  for (const RdmaDevice& one : own.devices) {
    const std::string file = "/dev/infiniband/" + one.uverbs;
    // In a diagnosis for all pods, a missing device file is no fault: a container has only its own
    // files.
    const bool hidden = node.for_all_pods && own.pod;
    if (one.uverbs.empty())
      without.add(one.name, {"/sys/class/infiniband_verbs", "no entry"});
    else if (!hidden && !node.tree.has(file))
      without.add(one.name, {printable(file), "No such file"});
  }
  if (without.empty())
    return findings.fine(
        fmt::format("/dev/infiniband has a file for each of {} devices.", own.devices.size()));
  findings.add(
      {.severity = Severity::kFailure,
       .code = "rdma.no-uverbs",
       .what = fmt::format("Programs cannot open {}: /dev/infiniband has no file for {}.",
                           shortList(without.names, "devices"),
                           without.names.size() == 1 ? "it" : "them"),
       .evidence = std::move(without.evidence),
       .cause = own.pod ? "The container was started without these devices."
                        : "The module ib_uverbs is not loaded, or udev has made no file.",
       .fix = fixOfNoFiles(own),
       .gain = "RDMA works at all; libfabric then finds the device instead of error -61."});
}

// ---- No devices.

std::vector<std::string> functionsWithoutDevice(const Tree& tree) {
  constexpr std::string_view kInfiniband = "0x0207";
  return functionsOfClass(tree, kInfiniband, {host::kMellanox});
}

void reportNone(const Node& node, Findings& findings) {
  const auto idle = functionsWithoutDevice(node.tree);
  if (idle.empty())
    return findings.add({.severity = Severity::kInfo,
                         .code = "rdma.none",
                         .what = "This node has no RDMA devices: nothing to check.",
                         .evidence = {{"/sys/class/infiniband", "no entry"}}});
  findings.add(
      {.severity = Severity::kFailure,
       .code = "rdma.none",
       .what = fmt::format("InfiniBand cards have no RDMA device: {}.", fmt::join(idle, ", ")),
       .evidence = {{"/sys/class/infiniband", "no entry"}},
       .cause = "The driver is not loaded.",
       .fix = "Load it, then look at its messages: modprobe mlx5_ib; dmesg | grep mlx5"});
}

void reportActive(const Node& node, const OwnDevices& own, const PortList& active,
                  Findings& findings) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> of;
  for (const PortOf& one : active)
    of[{one.device->efa()                           ? "EFA"
        : isRoce(node.tree, *one.device, *one.port) ? "RoCE (the link layer is Ethernet)"
                                                    : printable(one.port->link_layer),
        printable(one.port->rate)}]
        .push_back(one.name());
  for (const auto& [key, names] : of)
    findings.fine(fmt::format("{} active: {}, {}.",
                              shortList(names, "ports") + (names.size() == 1 ? " is" : " are"),
                              key.first, key.second));
  std::set<std::string> versions;
  for (const RdmaDevice& one : own.devices)
    if (!one.efa() && !one.firmware.empty()) versions.insert(printable(one.firmware));
  if (!versions.empty()) findings.fine(fmt::format("Firmware: {}.", fmt::join(versions, ", ")));
}

}  // namespace

void checkRdma(const Node& node, Findings& findings) {
  const OwnDevices own = ownDevices(node);
  if (!own.odd_names.empty())
    findings.add(
        {.severity = Severity::kUnknown,
         .code = "rdma.odd-name",
         .what = fmt::format("Did not look at devices of impossible names: {}.",
                             fmt::join(own.odd_names, ", ")),
         .cause = "No kernel gives such a name. The folder of files is damaged or forged.",
         .fix = "Take a new snapshot on the node: viaduct doctor snapshot -o node.tar.gz"});
  if (own.devices.empty()) {
    if (own.odd_names.empty()) reportNone(node, findings);
    return;
  }
  const PortList ports = portsOf(own);
  const PortList active = base::only(ports, [](const PortOf& one) { return one.port->active(); });
  checkPortStates(node, own, ports, findings);
  checkPortFiles(node, own, ports, findings);
  checkLids(node, active, findings);
  checkPortRates(node, active, findings);
  checkRdmaFirmware(own, findings);
  checkDeviceFiles(node, own, findings);
  reportActive(node, own, active, findings);
}

}  // namespace viaduct::diag
