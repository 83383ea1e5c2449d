// Checks errors and congestion: counters that grew while the doctor ran, and totals.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/lists.h"
#include "diag/allocation.h"
#include "diag/counters.h"
#include "diag/hardware.h"
#include "diag/own_devices.h"
#include "diag/pcie_path.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using namespace std::string_view_literals;

constexpr auto kPriorityFlow =
    "Look at flow control and congestion marking on NIC and switch:\n"
    "  mlnx_qos -i INTERFACE; ethtool -S INTERFACE | grep -E 'prio._(pause|discard)'\n"
    "Give RDMA traffic a lossless class with ECN: same DSCP, PFC priority and ECN on all hops.";
constexpr auto kCable =
    "Look at both ends of the link, then reseat or replace the cable: mlxlink -d DEVICE -m -c";

// The meaning of a growing counter. Several counters may share one finding.
struct CounterKind {
  std::string_view code;
  const char *what, *cause, *fix, *gain;
};
constexpr CounterKind kLinkDowned{"counters.link-downed", "Links went down while the doctor looked",
                                  "A cable, a transceiver or a switch port is failing.", kCable,
                                  "Transfers no longer end with the link."};
constexpr CounterKind kSignal{
    "counters.signal-errors", "Links receive packets with symbol or bit errors",
    "A cable or transceiver is dirty, bent or failing.", kCable,
    "No packet is sent twice because of damage, which delays all packets behind it."};
constexpr CounterKind kOutOfSequence{
    "counters.out-of-sequence", "Packets arrive out of sequence",
    "Packets are lost on the way: on RoCE, PFC or ECN is set up wrongly on a hop. On InfiniBand, "
    "adaptive routing also reorders them.",
    kPriorityFlow, "Full throughput: each lost packet costs a round trip or more."};
constexpr CounterKind kTimeout{"counters.local-ack-timeout",
                               "Packets are sent again because no acknowledgement came",
                               "Packets are lost on the way, or a peer has died.", kPriorityFlow,
                               "Queue pairs no longer wait milliseconds for each retry, nor end "
                               "with status 12 after the last one."};
constexpr CounterKind kNotReady{
    "counters.rnr", "Receivers have no buffer ready for a message",
    "The receiving program posts too few receives, or is too slow.",
    "Post more receives, or use one-sided writes. Look at the receiving process: is it starved of "
    "CPU?",
    "Senders no longer wait and repeat a message that the receiver refused (RNR NAK)."};
constexpr CounterKind kDiscards{
    "counters.discards", "Ports throw packets away",
    "The port or the way behind it is congested, and flow control does not reach the sender.",
    kPriorityFlow, "Thrown away packets are sent again, which costs a timeout each."};
constexpr CounterKind kCorrupt{
    "counters.corrupt-packets", "RDMA packets arrive with a wrong checksum",
    "A switch or NIC on the way damages packets.",
    "Find the hop by trying pairs of nodes. Update the firmware of its NIC and switch.",
    "Packets are not sent twice because of damage."};
constexpr CounterKind kRemoteAccess{
    "counters.remote-access", "Peers access memory that is not registered",
    "A peer uses an old key or address, after the memory was deregistered or the process "
    "restarted.",
    "Restart both processes together, so that they exchange their keys anew.",
    "Connections no longer end with a remote access error."};
constexpr CounterKind kPeers{
    "counters.unresponsive-peers", "EFA has peers that do not answer",
    "A peer has died or is overloaded, or a security group does not let its packets pass.",
    "The security group must allow all protocols from and to itself, inbound and outbound:\n"
    "  aws ec2 describe-security-groups --group-ids GROUP",
    "Transfers to these peers succeed instead of timing out."};

struct CounterRow {
  std::string_view name;
  const CounterKind* kind;
  std::uint64_t least;  // a healthy node's counter may grow by less
};
// Files below ports/N/counters and ports/N/hw_counters.
constexpr std::array kCounters{
    CounterRow{"link_downed", &kLinkDowned, 1},
    CounterRow{"link_error_recovery", &kSignal, 1},
    CounterRow{"local_link_integrity_errors", &kSignal, 1},
    CounterRow{"port_rcv_errors", &kSignal, 1},
    CounterRow{"symbol_error", &kSignal, 10},
    CounterRow{"port_xmit_discards", &kDiscards, 1},
    CounterRow{"rx_drops", &kDiscards, 1},
    CounterRow{"out_of_sequence", &kOutOfSequence, 1},
    CounterRow{"packet_seq_err", &kOutOfSequence, 1},
    CounterRow{"implied_nak_seq_err", &kOutOfSequence, 1},
    CounterRow{"local_ack_timeout_err", &kTimeout, 1},
    CounterRow{"roce_adp_retrans", &kTimeout, 1},
    CounterRow{"rnr_nak_retry_err", &kNotReady, 1},
    CounterRow{"out_of_buffer", &kNotReady, 1},
    CounterRow{"rx_icrc_encapsulated", &kCorrupt, 1},
    CounterRow{"req_remote_access_errors", &kRemoteAccess, 1},
    CounterRow{"resp_remote_access_errors", &kRemoteAccess, 1},
    CounterRow{"retrans_timeout_events", &kPeers, 1},
    CounterRow{"unresponsive_remote_events", &kPeers, 1},
    CounterRow{"impaired_remote_conn_events", &kPeers, 1},
};

struct PortCounter {
  std::string path = {};
  const CounterRow* row = nullptr;
};

// The counters that exist. Some contain "N/A (no PMA)" instead of a number.
std::vector<PortCounter> countersOf(const Tree& tree, const RdmaDevice& device) {
  std::vector<PortCounter> out;
  for (const RdmaPort& port : device.ports)
    for (const char* folder : {"/counters", "/hw_counters"})
      for (const std::string& name : tree.list(port.folder + folder))
        if (const CounterRow* const row = base::firstWith(kCounters, &CounterRow::name, name))
          out.push_back({fmt::format("{}{}/{}", port.folder, folder, name), row});
  return out;
}

// ---- Growth.

struct Growing {
  Cases devices = {};
  std::string fix = {};  // the commands, with the names of the first device
};

struct Growth {
  std::map<const CounterKind*, Growing> of = {};
  std::size_t counted = 0;
  std::vector<Evidence> unknown = {};
};

// Replaces the placeholders of a text by the names of a device and its port's interface.
std::string filledIn(std::string text, const Tree& tree, const RdmaDevice& device,
                     const RdmaPort& port) {
  for (const auto& [word, name] : {std::pair("DEVICE"sv, toolName(device)),
                                   std::pair("INTERFACE"sv, interfaceOf(tree, device, port))})
    for (auto at = text.find(word); !name.empty() && at != std::string::npos;
         at = text.find(word, at + name.size()))
      text.replace(at, word.size(), name);
  return text;
}

void addGrowth(const Node& node, const RdmaDevice& device, Growth& into) {
  for (const PortCounter& one : countersOf(node.tree, device)) {
    const std::string text = node.tree.line(one.path);
    if (text.starts_with("N/A")) continue;
    if (!node.tree.number(one.path)) {
      into.unknown.push_back({one.path, printable(text)});
      continue;
    }
    ++into.counted;
    const std::uint64_t more = node.live.growthOf(one.path);
    if (more < one.row->least) continue;
    Growing& growing = into.of[one.row->kind];
    if (growing.devices.empty())
      growing.fix = filledIn(one.row->kind->fix, node.tree, device, device.ports.front());
    growing.devices.add(
        device.name, {one.path, fmt::format("{} more within {:.1f} s", more, node.live.seconds)});
  }
}

void checkGrowth(const Node& node, const OwnDevices& own, Findings& findings) {
  if (node.live.seconds <= 0)
    return findings.add(
        {.severity = Severity::kUnknown,
         .code = "counters.not-sampled",
         .what = "Could not look at the growth of error counters.",
         .cause = "They were not read twice on the node.",
         .fix = "Run the doctor on the node itself: viaduct doctor --only counters"});
  Growth growth;
  for (const RdmaDevice& device : own.devices) addGrowth(node, device, growth);
  if (!growth.unknown.empty())
    findings.add({.severity = Severity::kUnknown,
                  .code = "counters.unknown",
                  .what = fmt::format("{} error counters hold no number.", growth.unknown.size()),
                  .evidence = std::move(growth.unknown),
                  .cause = "The files are damaged, or the driver behind them does not answer."});
  for (const auto& [kind, growing] : growth.of)
    findings.add(
        {.severity = Severity::kWarning,
         .code = std::string(kind->code),
         .what = fmt::format("{}: {}.", kind->what, shortList(growing.devices.names, "devices")),
         .evidence = growing.devices.evidence,
         .cause = kind->cause,
         .fix = growing.fix,
         .gain = kind->gain});
  if (growth.of.empty() && growth.counted != 0)
    findings.fine(fmt::format("{} error counters of {} devices have not grown within {:.1f} s.",
                              growth.counted, own.devices.size(), node.live.seconds));
}

// ---- Totals.

// True if packets were discarded, and no mark told their senders to slow down.
bool discardsUnmarked(const Tree& tree, const RdmaPort& port) {
  const auto number = [&](const char* name) { return tree.number(port.folder + name); };
  return number("/counters/port_xmit_discards").value_or(0) != 0 &&
         number("/hw_counters/np_cnp_sent") == 0 && number("/hw_counters/rp_cnp_handled") == 0;
}

constexpr auto kMarkingFix =
    "Switch congestion control on for the RDMA priority, and ECN on the switch:\n"
    "  echo 1 > /sys/class/net/INTERFACE/ecn/roce_np/enable/3\n"
    "  echo 1 > /sys/class/net/INTERFACE/ecn/roce_rp/enable/3";

void checkMarking(const Node& node, const OwnDevices& own, Findings& findings) {
  Cases unmarked;
  std::string fix;
  for (const RdmaDevice& device : own.devices)
    for (const RdmaPort& port : device.ports) {
      if (!port.roce() || !discardsUnmarked(node.tree, port)) continue;
      if (unmarked.empty()) fix = filledIn(kMarkingFix, node.tree, device, port);
      for (const char* name : {"/counters/port_xmit_discards", "/hw_counters/np_cnp_sent"})
        unmarked.add(
            device.name,
            {port.folder + name, std::to_string(node.tree.number(port.folder + name).value_or(0))});
    }
  if (unmarked.empty()) return;
  findings.add({.severity = Severity::kWarning,
                .code = "counters.discards",
                .what = fmt::format("Packets were thrown away and none was marked: {}.",
                                    shortList(unmarked.names, "devices")),
                .evidence = std::move(unmarked.evidence),
                .cause = "Congestion marking (ECN) is off on the switch or the NIC: packets are "
                         "dropped instead of marked, and senders never slow down.",
                .fix = std::move(fix),
                .gain = "Senders slow down before packets are lost."});
}

// Fewer losses are normal, because a link goes down whenever its switch restarts.
constexpr std::uint64_t kManyLosses = 10;

void checkLosses(const Node& node, const OwnDevices& own, Findings& findings) {
  Cases lossy;
  for (const RdmaDevice& device : own.devices)
    for (const RdmaPort& port : device.ports) {
      const std::string path = port.folder + "/counters/link_downed";
      if (const auto count = node.tree.number(path).value_or(0); count >= kManyLosses)
        lossy.add(fmt::format("{} ({} times)", device.name, count), {path, std::to_string(count)});
    }
  if (lossy.empty()) return;
  findings.add({.severity = Severity::kInfo,
                .code = "counters.link-downed-total",
                .what = fmt::format("Links went down since the counters were cleared: {}.",
                                    shortList(lossy.names, "devices")),
                .evidence = std::move(lossy.evidence),
                .cause = "Switches were restarted, or a cable is failing.",
                .fix = "See whether it goes on: dmesg -T | grep -i 'link down'"});
}

}  // namespace

std::vector<std::string> counterPaths(const Tree& tree) {
  std::vector<std::string> out;
  const auto add_number = [&](std::string path) {
    if (counterValue(tree, path)) out.push_back(std::move(path));
  };
  std::vector<PciFunction> functions = nvidiaGpus(tree);
  for (const RdmaDevice& device : rdmaDevices(tree)) {
    if (!isDeviceName(device.name)) continue;
    for (PortCounter& one : countersOf(tree, device)) add_number(std::move(one.path));
    if (auto function = pciFunction(tree, device.pci)) functions.push_back(*std::move(function));
  }
  for (const auto& [address, folder] : foldersOnWay(tree, functions))
    for (const char* name : kAerFiles) add_number(fmt::format("{}/{}", folder, name));
  for (const std::string& name : tree.list("/sys/class/net"))
    if (isDeviceName(name)) add_number(interfaceFile(name, "carrier_changes"));
  return out;
}

std::optional<std::uint64_t> counterValue(const Tree& tree, const std::string& path) {
  return path.find("/aer_dev_") == std::string::npos ? tree.number(path) : aerTotal(tree, path);
}

void checkCounters(const Node& node, Findings& findings) {
  const OwnDevices own = ownDevices(node);
  if (own.devices.empty())
    return findings.fine("There are no RDMA devices: no counters to look at.");
  checkGrowth(node, own, findings);
  checkMarking(node, own, findings);
  checkLosses(node, own, findings);
}

}  // namespace viaduct::diag
