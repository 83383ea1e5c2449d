// Checks RDMA over Ethernet: interfaces, addresses, GIDs and MTU of its devices.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/lists.h"
#include "diag/allocation.h"
#include "diag/libraries.h"
#include "diag/own_devices.h"
#include "diag/pod_view.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

// A RoCE port, and its network device in this namespace.
struct RoceRail {
  std::string device = {}, interface = {};
  RdmaPort port = {};
  bool default_route = false;
  bool of_sriov = false;  // the topic `sriov` reports why the port is down
};
using RoceRails = std::vector<RoceRail>;

struct RoceView {
  RoceRails rails = {};
  std::vector<std::string> elsewhere = {};  // devices whose network device is in another namespace
  bool given = false;
  // InfiniBand or EFA carries the data here, so faults of RoCE are only information.
  bool secondary = false;
  Severity worst(Severity severity) const { return secondary ? Severity::kInfo : severity; }
  // The severity of a fault that makes `count` rails useless.
  Severity useless(std::size_t count) const {
    const bool all = given || count == rails.size();
    return worst(all ? Severity::kFailure : Severity::kWarning);
  }
};

RoceView roceView(const Node& node) {
  const OwnDevices own = ownDevices(node);
  const std::string with_default = podView(node).default_interface;
  RoceView out{.given = own.given};
  for (const RdmaDevice& device : own.devices)
    for (const RdmaPort& port : device.ports) {
      const bool efa = device.efa();
      out.secondary |= port.active() && (efa || port.infiniband());
      if (efa || !isRoce(node.tree, device, port)) continue;
      const std::string interface = interfaceOf(node.tree, device, port);
      if (!interface.empty())
        out.rails.push_back({device.name, interface, port, interface == with_default,
                             functionFault(node.tree, device) != FunctionFault::kNo});
      else if (port.active())
        out.elsewhere.push_back(device.name);
    }
  return out;
}

std::vector<std::string> railNamesOf(const RoceRails& rails) {
  return base::mapped(
      rails, [](const RoceRail& one) { return fmt::format("{} ({})", one.device, one.interface); });
}

// Moves the rails for which `is` holds out of `rails`.
template <class Is>
RoceRails takeOut(RoceRails& rails, Is is) {
  RoceRails out = base::only(rails, is);
  std::erase_if(rails, is);
  return out;
}

// Joins one command per rail.
std::string forEach(const RoceRails& rails,
                    const std::function<std::string(const RoceRail&)>& command) {
  std::string out;
  for (const RoceRail& one : rails) out += command(one) + "\n";
  return out;
}

// ---- Interfaces and addresses.

void reportDownRails(const Node& node, const RoceView& view, const RoceRails& down,
                     Findings& findings) {
  Finding finding{.severity = view.useless(down.size()),
                  .code = "roce.interface-down",
                  .what = fmt::format("{} no link: the network interface is down.",
                                      withVerb(railNamesOf(down), "has", "have")),
                  .cause = "RoCE needs its network interface up; the RDMA port follows it.",
                  .fix = forEach(down,
                                 [](const RoceRail& one) {
                                   return fmt::format("ip link set {} up", one.interface);
                                 }) +
                         "If it stays down, look at the cable and the switch port: ethtool " +
                         down.front().interface,
                  .gain = "The node gains the rate of each rail that comes up."};
  for (const RoceRail& one : down) {
    const std::string path = interfaceFile(one.interface, "operstate");
    finding.evidence.push_back({path, printable(node.tree.line(path))});
    finding.evidence.push_back({one.port.folder + "/state", printable(one.port.state)});
  }
  findings.add(std::move(finding));
}

struct RailAddresses {
  bool ipv4 = false, ipv6 = false;  // addresses that are not link-local
};

RailAddresses addressesOf(const Node& node, const RoceRail& rail) {
  RailAddresses out;
  for (const InterfaceAddress& one : node.live.addresses) {
    if (one.interface != rail.interface) continue;
    const bool ipv6 = one.address.find(':') != std::string::npos;
    out.ipv4 |= !ipv6 && !one.address.starts_with("169.254.");
    out.ipv6 |= ipv6 && !one.address.starts_with("fe80:");
  }
  return out;
}

// Whether NCCL is told to use IPv6; by default it uses IPv4.
bool wantsIpv6(const Node& node) {
  const std::string* const family = node.variable("NCCL_IB_ADDR_FAMILY");
  return family != nullptr && *family == "AF_INET6";
}

void reportNoAddress(const RoceView& view, const RoceRails& without, Findings& findings) {
  findings.add(
      {.severity = view.useless(without.size()),
       .code = "roce.no-address",
       .what = fmt::format("{} no IPv4 address.", withVerb(railNamesOf(without), "has", "have")),
       .evidence = base::mapped(without,
                                [](const RoceRail& one) {
                                  return Evidence{"ip -4 addr show dev " + one.interface,
                                                  "no address"};
                                }),
       .cause = "RoCE v2 packets are IP packets: without an address the device has only a "
                "link-local GID.",
       .fix = forEach(without,
                      [](const RoceRail& one) {
                        return fmt::format("ip addr add ADDRESS/PREFIX dev {}", one.interface);
                      }) +
              "In a pod, give the NetworkAttachmentDefinition of the rail an ipam section.\n"
              "On an IPv6 fabric, tell NCCL: export NCCL_IB_ADDR_FAMILY=AF_INET6\n"
              "If nobody needs the rail, leave it out: NCCL_IB_HCA=^=" +
              without.front().device,
       .gain = "The rail reaches other nodes."});
}

// ---- GIDs.

bool isVersion2(const Gid& gid) { return gid.type == "RoCE v2"; }

std::vector<Evidence> shownGids(const RoceRails& rails) {
  std::vector<Evidence> out;
  for (const RoceRail& one : rails) {
    if (one.port.gids.empty()) out.push_back({one.port.folder + "/gids", "no GID"});
    for (const Gid& gid : one.port.gids)
      out.push_back({fmt::format("{}/gids/{}", one.port.folder, gid.index),
                     printable(fmt::format("{} ({})", gid.gid, gid.type))});
  }
  return out;
}

bool isGid(const std::string& text) {
  return text.size() == 39 && text.find_first_not_of("0123456789abcdef:") == std::string::npos;
}

// True if the kernel is too old to show the types of GIDs, or the table is unreadable. A readable
// table always has entries, even if all are empty.
bool areGidsUnknown(const Tree& tree, const RdmaPort& port) {
  if (port.gids.empty()) return tree.list(port.folder + "/gids").empty();
  return std::ranges::any_of(port.gids, [](const Gid& one) { return !isGid(one.gid); }) ||
         std::ranges::all_of(port.gids, [](const Gid& one) { return one.type.empty(); });
}

void reportUnknownGids(const RoceView& view, const RoceRails& rails, Findings& findings) {
  findings.add({.severity = view.worst(Severity::kUnknown),
                .code = "roce.gids-unknown",
                .what = fmt::format("Could not look at the GIDs of {}.",
                                    shortList(railNamesOf(rails), "rails")),
                .evidence = shownGids(rails),
                .cause = "The files of the GID table are missing or damaged.",
                .fix = "Read the table on the node: show_gids"});
}

void reportNoVersion2(const RoceView& view, const RoceRails& without, Findings& findings) {
  findings.add(
      {.severity = view.useless(without.size()),
       .code = "roce.no-v2-gid",
       .what = fmt::format("{} no GID of RoCE v2.", withVerb(railNamesOf(without), "has", "have")),
       .evidence = shownGids(without),
       .cause = "The device or its driver is set to RoCE v1, which no router forwards, or "
                "the interface has lost its addresses.",
       .fix = "Bring the interface up again, which makes its GIDs anew:\n" +
              forEach(without,
                      [](const RoceRail& one) {
                        return fmt::format("ip link set {0} down; ip link set {0} up",
                                           one.interface);
                      }) +
              "Look at the table: show_gids; rdma link show",
       .gain = "NCCL, UCX and libfabric use RoCE v2 by default."});
}

// The rail's address, "10.0.103.7/24", for a command.
std::string addressOn(const Node& node, const RoceRail& rail) {
  for (const InterfaceAddress& one : node.live.addresses)
    if (one.interface == rail.interface && !one.address.starts_with("fe80:"))
      return printable(fmt::format("{}/{}", one.address, one.prefix));
  return "ADDRESS/PREFIX";
}

void reportLinkLocal(const Node& node, const RoceView& view, const RoceRails& local,
                     Findings& findings) {
  findings.add({.severity = view.useless(local.size()),
                .code = "roce.link-local-only",
                .what = fmt::format("{} only link-local GIDs of RoCE v2.",
                                    withVerb(railNamesOf(local), "has", "have")),
                .evidence = shownGids(local),
                .cause = "The GID table does not hold the interface's address. Link-local GIDs do "
                         "not reach beyond the rail's own switch, and NCCL skips them.",
                .fix = "Set the address again, which adds its GID:\n" +
                       forEach(local,
                               [&](const RoceRail& one) {
                                 return fmt::format(
                                     "ip addr del {0} dev {1}; ip addr add {0} dev {1}",
                                     addressOn(node, one), one.interface);
                               }) +
                       "In a pod, see that the rail's network attachment has an ipam section.",
                .gain = "The rail reaches other nodes."});
}

// ---- The index of the GID to use.

Severity severityOfIndices(const Node& node, const RoceView& view) {
  for (const char* name : {"NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX"})
    if (const std::string* const set = node.variable(name);
        set != nullptr && *set != "-1" && *set != "auto")
      return view.worst(Severity::kFailure);
  const auto version = ncclVersion(node.live);
  const bool old = version && *version < kNcclChoosesGid;
  return view.worst(old ? Severity::kWarning : Severity::kInfo);
}

constexpr auto kIndexFix =
    "With NCCL 2.21 or newer, leave the index unset; NCCL then chooses for each device:\n"
    "  unset NCCL_IB_GID_INDEX UCX_IB_GID_INDEX\n"
    "Older NCCL takes one index for all devices. Update it, or set the addresses again in the\n"
    "same order on each device until show_gids lists the same index everywhere.";

void checkIndices(const Node& node, const RoceView& view, const RoceRails& rails,
                  Findings& findings) {
  std::map<unsigned, std::vector<std::string>> of;
  std::vector<Evidence> evidence;
  for (const RoceRail& one : rails) {
    const Gid* const gid = routableGid(one.port);
    if (gid == nullptr) continue;
    of[gid->index].push_back(one.device);
    evidence.push_back({fmt::format("{}/gids/{}", one.port.folder, gid->index),
                        printable(gid->ipv4() ? gid->ipv4Address() : gid->gid)});
  }
  if (of.empty()) return;
  if (of.size() == 1)
    return findings.fine(
        fmt::format("The GID of RoCE v2 with an address has index {} on all "
                    "devices.",
                    of.begin()->first));
  const auto groups = base::mapped(of, [](const auto& group) {
    return fmt::format("{} for {}", group.first, shortList(group.second, "devices"));
  });
  findings.add(
      {.severity = severityOfIndices(node, view),
       .code = "roce.index-differs",
       .what = fmt::format("The index of the right GID differs: {}.", fmt::join(groups, "; ")),
       .evidence = std::move(evidence),
       .cause = "One NCCL_IB_GID_INDEX is wrong for some of these devices. Transfers over "
                "them end with status 12, IBV_WC_RETRY_EXC_ERR.",
       .fix = kIndexFix,
       .gain = "Each device uses the RoCE v2 GID that holds the IP address of its interface."});
}

// ---- MTU.

// An RDMA packet has at most 96 bytes of headers around its payload.
constexpr std::uint64_t kRdmaHeaders = 96, kFullMtu = 4096 + kRdmaHeaders;

unsigned payloadOf(std::uint64_t mtu) {
  for (const unsigned payload : std::array{4096U, 2048U, 1024U, 512U})
    if (mtu >= payload + kRdmaHeaders) return payload;
  return 256;
}

void reportMtu(const RoceView& view, const RoceRails& small,
               const std::map<std::string, std::uint64_t>& mtus, Findings& findings) {
  const bool on_default = std::ranges::all_of(small, &RoceRail::default_route);
  const std::uint64_t mtu = mtus.at(small.front().interface);
  findings.add(
      {.severity = view.worst(on_default ? Severity::kInfo : Severity::kWarning),
       .code = "roce.mtu",
       .what = fmt::format("{} an MTU of {}, so RDMA packets carry {} bytes instead of 4096.",
                           withVerb(railNamesOf(small), "has", "have"), mtu, payloadOf(mtu)),
       .evidence = base::mapped(small,
                                [&](const RoceRail& one) {
                                  return Evidence{interfaceFile(one.interface, "mtu"),
                                                  std::to_string(mtus.at(one.interface))};
                                }),
       .cause =
           "The MTU of the interface limits that of RDMA: 1500 gives 1024, and 4096 needs 4200.",
       .fix = forEach(small,
                      [](const RoceRail& one) {
                        return fmt::format("ip link set {} mtu 9000", one.interface);
                      }) +
              "Set it on the switch ports and the peers too. In Kubernetes, set mtu: 9000 in the\n"
              "SriovNetworkNodePolicy and the network attachment.",
       .gain = "Headers take about 2 % of the link instead of 7 %, and the NIC handles a quarter "
               "of the packets."});
}

void checkMtu(const Node& node, const RoceView& view, RoceRails rails, Findings& findings) {
  std::map<std::string, std::uint64_t> mtus;
  for (const RoceRail& one : rails)
    if (const auto mtu = node.tree.number(interfaceFile(one.interface, "mtu")); mtu && *mtu >= 68)
      mtus[one.interface] = *mtu;
  const RoceRails unknown =
      takeOut(rails, [&](const RoceRail& one) { return !mtus.contains(one.interface); });
  if (!unknown.empty())
    findings.add({.severity = view.worst(Severity::kUnknown),
                  .code = "roce.mtu-unknown",
                  .what = fmt::format("Could not look at the MTU of {}.",
                                      fmt::join(railNamesOf(unknown), ", ")),
                  .evidence = {{interfaceFile(unknown.front().interface, "mtu"), "not a number"}},
                  .fix = "Read it on the node: ip link show dev " + unknown.front().interface});
  const RoceRails small =
      takeOut(rails, [&](const RoceRail& one) { return mtus.at(one.interface) < kFullMtu; });
  if (!small.empty()) reportMtu(view, small, mtus, findings);
  if (!rails.empty())
    findings.fine(fmt::format("The MTU of {} allows RDMA packets of 4096 bytes.",
                              shortList(railNamesOf(rails), "rails")));
}

// ---- All checks of the rails.

void reportElsewhere(const RoceView& view, Findings& findings) {
  const bool missing = view.given;
  findings.add(
      {.severity = view.worst(missing ? Severity::kFailure : Severity::kInfo),
       .code = "roce.no-interface",
       .what =
           fmt::format("{} no network interface here.", withVerb(view.elsewhere, "has", "have")),
       .evidence = {{"/sys/class/net", "no interface of these devices"}},
       .cause = missing ? "The pod was given the device, and no network attachment moved its "
                          "interface into the pod."
                        : "The interface is in the network namespace of the host or of "
                          "another pod.",
       .fix = missing ? "Name the rail's network in the pod's annotations:\n"
                        "  k8s.v1.cni.cncf.io/networks: RAIL-NETWORK"
                      : ""});
}

void checkRails(const Node& node, const RoceView& view, Findings& findings) {
  RoceRails rails = view.rails;
  RoceRails down = takeOut(
      rails, [&](const RoceRail& one) { return isInterfaceDown(node.tree, one.interface); });
  std::erase_if(down, std::mem_fn(&RoceRail::of_sriov));
  if (!down.empty()) reportDownRails(node, view, down, findings);
  std::erase_if(rails, [](const RoceRail& one) { return !one.port.active(); });
  const bool known = !node.live.addresses.empty();
  RoceRails whole = rails;
  const RoceRails without = takeOut(whole, [&](const RoceRail& one) {
    const RailAddresses has = addressesOf(node, one);
    return known && !has.ipv4 && !(has.ipv6 && wantsIpv6(node));
  });
  if (!without.empty()) reportNoAddress(view, without, findings);
  const RoceRails unknown =
      takeOut(whole, [&](const RoceRail& one) { return areGidsUnknown(node.tree, one.port); });
  if (!unknown.empty()) reportUnknownGids(view, unknown, findings);
  const RoceRails old = takeOut(
      whole, [](const RoceRail& one) { return std::ranges::none_of(one.port.gids, isVersion2); });
  if (!old.empty()) reportNoVersion2(view, old, findings);
  const RoceRails local =
      takeOut(whole, [](const RoceRail& one) { return routableGid(one.port) == nullptr; });
  if (!local.empty()) reportLinkLocal(node, view, local, findings);
  checkIndices(node, view, whole, findings);
  checkMtu(node, view, rails, findings);
}

}  // namespace

void checkRoce(const Node& node, Findings& findings) {
  const RoceView view = roceView(node);
  if (view.rails.empty() && view.elsewhere.empty())
    return findings.fine("No RDMA device has the link layer Ethernet: nothing to check.");
  if (!view.rails.empty())
    findings.fine(fmt::format("The link layer of {} is Ethernet: this is RoCE, not InfiniBand.",
                              shortList(railNamesOf(view.rails), "rails")));
  if (!view.elsewhere.empty()) reportElsewhere(view, findings);
  checkRails(node, view, findings);
}

}  // namespace viaduct::diag
