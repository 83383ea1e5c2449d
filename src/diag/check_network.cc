// Checks network interfaces: addresses, routes, and the rails of RDMA devices.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/text.h"
#include "diag/allocation.h"
#include "diag/own_devices.h"
#include "diag/pod_view.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using RailNames = std::vector<std::string>;

// The network devices of active RoCE ports, in this network namespace.
RailNames railsOf(const Node& node) {
  RailNames out;
  for (const RdmaDevice& device : ownDevices(node).devices)
    for (const RdmaPort& port : device.ports) {
      const std::string name = interfaceOf(node.tree, device, port);
      if (name.empty() || !isRoce(node.tree, device, port) || !port.active()) continue;
      if (!base::contains(out, name)) out.push_back(name);
    }
  return out;
}

// ---- Addresses.

struct Ipv4Subnet {
  std::uint32_t address = 0;
  unsigned prefix = 0;
  std::uint32_t subnet() const {
    return prefix == 0 ? 0 : address & (0xffffffffU << (32U - prefix));
  }
};

std::optional<Ipv4Subnet> ipv4In(const InterfaceAddress& one) {
  in_addr raw{};
  if (one.prefix > 32 || ::inet_pton(AF_INET, one.address.c_str(), &raw) != 1) return std::nullopt;
  const Ipv4Subnet out{ntohl(raw.s_addr), one.prefix};
  const bool link_local = (out.address >> 16U) == 0xa9feU;
  const bool loopback = (out.address >> 24U) == 127;
  return link_local || loopback ? std::nullopt : std::optional(out);
}

std::string showSubnet(const Ipv4Subnet& one) {
  const std::uint32_t net = one.subnet();
  return fmt::format("{}.{}.{}.{}/{}", net >> 24U, (net >> 16U) & 0xffU, (net >> 8U) & 0xffU,
                     net & 0xffU, one.prefix);
}

void checkIpv4Addresses(const Node& node, Findings& findings) {
  const auto interfaces = base::only(node.tree.list("/sys/class/net"), [](const std::string& name) {
    return name != "lo" && isDeviceName(name);
  });
  if (interfaces.empty())
    return findings.add({.severity = Severity::kInfo,
                         .code = "network.loopback-only",
                         .what = "There is no network interface here but loopback.",
                         .evidence = {{"/sys/class/net", "lo"}}});
  if (node.live.addresses.empty())
    return findings.add(
        {.severity = Severity::kUnknown,
         .code = "network.addresses-unknown",
         .what = "Could not look at the addresses of the interfaces.",
         .cause = "The folder of files does not hold them.",
         .fix = "Run the doctor on the node itself: viaduct doctor --only network"});
  RailNames shown;
  for (const InterfaceAddress& one : node.live.addresses)
    if (ipv4In(one)) shown.push_back(fmt::format("{} {}", one.interface, one.address));
  if (!shown.empty())
    return findings.fine(fmt::format("IPv4 addresses: {}.", shortList(shown, "addresses")));
  const bool ipv6 = std::ranges::any_of(node.live.addresses, [](const InterfaceAddress& one) {
    return one.address.find(':') != std::string::npos && !one.address.starts_with("fe80:") &&
           one.address != "::1";
  });
  findings.add({.severity = ipv6 ? Severity::kInfo : Severity::kFailure,
                .code = "network.no-ipv4",
                .what = ipv6 ? "No interface has an IPv4 address; there are IPv6 addresses."
                             : fmt::format("None of {} has an IPv4 address.",
                                           shortList(interfaces, "interfaces")),
                .evidence = {{"ip -4 addr", "no address beyond loopback"}},
                .cause = "DHCP has not answered, or the pod's network was not set up.",
                .fix = "Look at the interface: ip addr; networkctl status\n"
                       "In Kubernetes: kubectl describe pod POD",
                .gain = "Processes find and reach each other."});
}

// ---- Routes.

RailNames interfacesWithRoute(const Tree& tree) {
  RailNames out;
  for (const std::string& line : tree.lines("/proc/net/route"))
    if (const auto words = base::wordsOf(line); words.size() > 1) out.emplace_back(words[0]);
  return out;
}

void checkRoutes(const Node& node, const RailNames& rails, Findings& findings) {
  const std::string with_default = podView(node).default_interface;
  if (!with_default.empty())
    findings.fine(fmt::format("The default route leaves through {}.", with_default));
  const RailNames routed = interfacesWithRoute(node.tree);
  const auto without =
      base::only(rails, [&](const auto& rail) { return !base::contains(routed, rail); });
  if (routed.empty() || without.empty()) return;
  findings.add({.severity = Severity::kInfo,
                .code = "network.no-route",
                .what = fmt::format("The main routing table has no route through {}.",
                                    shortList(without, "rails")),
                .evidence = {{"/proc/net/route", "no line of " + without.front()}},
                .cause = "The rail has no address, or its routes are in another table.",
                .fix = "See all tables: ip rule; ip route show table all"});
}

// ---- Rails in one subnet.

// The effective setting: the kernel takes the greater of an interface's value and that of "all".
std::optional<std::uint64_t> settingOf(const Tree& tree, const std::string& interface,
                                       const char* name) {
  const auto read = [&](const std::string& of) {
    return tree.number(fmt::format("/proc/sys/net/ipv4/conf/{}/{}", of, name));
  };
  const auto own = read(interface), all = read("all");
  if (!own || !all) return std::nullopt;
  return std::max(*own, *all);
}

std::string addressOn(const Node& node, const std::string& interface) {
  for (const InterfaceAddress& one : node.live.addresses)
    if (one.interface == interface && ipv4In(one)) return one.address;
  return "ADDRESS";
}

std::string subnetFix(const Node& node, const RailNames& rails, const std::string& subnet) {
  std::string out = "Best, give each rail a subnet of its own. Or let each answer for itself:\n";
  unsigned table = 100;
  for (const std::string& rail : rails) {
    out += fmt::format(
        "  sysctl -w net.ipv4.conf.{0}.rp_filter=2 net.ipv4.conf.{0}.arp_ignore=1 "
        "net.ipv4.conf.{0}.arp_announce=2\n"
        "  ip route add {1} dev {0} table {2}; ip rule add from {3} table {2}\n",
        rail, subnet, ++table, addressOn(node, rail));
  }
  out.pop_back();
  return out;
}

void judgeSubnet(const Node& node, const std::string& subnet, const RailNames& rails,
                 Findings& findings) {
  std::vector<Evidence> evidence;
  bool strict = false, known = true, loose = false;
  for (const std::string& rail : rails)
    for (const char* name : {"rp_filter", "arp_ignore"}) {
      const auto value = settingOf(node.tree, rail, name);
      known &= value.has_value();
      if (!value) continue;
      const bool is_filter = std::string_view(name) == "rp_filter";
      strict |= is_filter && *value == 1;
      loose |= !is_filter && *value == 0;
      evidence.push_back({fmt::format("net.ipv4.conf.{}.{}", rail, name),
                          fmt::format("{} (with that of all)", *value)});
    }
  const std::string shared =
      fmt::format("{} are in the same subnet {}", shortList(rails, "rails"), subnet);
  const auto report = [&](const char* code, const char* setting, const char* cause) {
    findings.add({.severity = strict || known ? Severity::kWarning : Severity::kUnknown,
                  .code = code,
                  .what = shared + setting,
                  .evidence = evidence,
                  .cause = cause,
                  .fix = subnetFix(node, rails, subnet),
                  .gain = "Each rail carries its own traffic, and connections between rails do "
                          "not time out."});
  };
  if (strict)
    return report("network.rp-filter", ", and rp_filter is 1.",
                  "One routing table sends all answers through one rail. Strict reverse path "
                  "filtering drops packets that come in through the others.");
  if (!known)
    return report("network.arp-unknown", "; could not look at rp_filter and arp_ignore.",
                  "/proc/sys/net/ipv4/conf is missing or damaged.");
  if (loose)
    return report("network.same-subnet", ", and arp_ignore is 0.",
                  "Each rail answers ARP for the addresses of the others, so that traffic of "
                  "several rails ends up on one.");
  findings.fine(shared + "; each answers ARP for its own address only.");
}

void checkSubnets(const Node& node, const RailNames& rails, Findings& findings) {
  std::map<std::pair<std::uint32_t, unsigned>, std::pair<std::string, RailNames>> of;
  for (const InterfaceAddress& one : node.live.addresses) {
    const auto address = ipv4In(one);
    if (!address || !base::contains(rails, one.interface)) continue;
    auto& [subnet, names] = of[{address->subnet(), address->prefix}];
    subnet = showSubnet(*address);
    if (!base::contains(names, one.interface)) names.push_back(one.interface);
  }
  bool shared = false;
  for (const auto& [key, group] : of) {
    if (group.second.size() < 2) continue;
    shared = true;
    judgeSubnet(node, group.first, group.second, findings);
  }
  if (!shared && of.size() > 1) findings.fine("Each rail has a subnet of its own.");
}

// ---- Links that come and go, and MTU.

// A restarting switch changes the carrier twice. From kManyChanges on, a rail is reported if it has
// at least four times the median of all rails. From kManyChangesAlone on, it is always reported.
constexpr std::uint64_t kManyChanges = 20, kManyChangesAlone = 100;

using CarrierChanges = std::map<std::string, std::uint64_t>;

CarrierChanges carrierChanges(const Tree& tree, const RailNames& rails) {
  CarrierChanges out;
  for (const std::string& rail : rails)
    if (const auto count = tree.number(interfaceFile(rail, "carrier_changes"))) out[rail] = *count;
  return out;
}

std::uint64_t medianOf(const CarrierChanges& changes) {
  auto sorted = base::mapped(changes, &CarrierChanges::value_type::second);
  std::ranges::sort(sorted);
  return sorted.empty() ? 0 : sorted[(sorted.size() - 1) / 2];
}

void reportCarrier(const Cases& flapping, Findings& findings) {
  const std::string& first = flapping.names.front();
  findings.add({.severity = Severity::kWarning,
                .code = "network.carrier-changes",
                .what = fmt::format("These links go up and down often: {}.",
                                    fmt::join(flapping.names, ", ")),
                .evidence = flapping.evidence,
                .cause = "A cable, a transceiver or a switch port is failing.",
                .fix = "See the times in the kernel log: dmesg -T | grep -E 'Link (up|down)'\n"
                       "Reseat or replace the cable, then look at its errors: ethtool -S " +
                       first.substr(0, first.find(' ')) + " | grep -E 'phy|symbol'",
                .gain = "Transfers on this rail no longer end with its link."});
}

void checkCarrier(const Node& node, const RailNames& rails, Findings& findings) {
  const CarrierChanges changes = carrierChanges(node.tree, rails);
  const std::uint64_t median = medianOf(changes);
  Cases flapping;
  for (const auto& [rail, count] : changes) {
    const std::string path = interfaceFile(rail, "carrier_changes");
    const std::uint64_t more = node.live.growthOf(path);
    const bool unlike_others = count >= kManyChanges && count / 4 >= median;
    if (more != 0 || count >= kManyChangesAlone || unlike_others)
      flapping.add(
          fmt::format("{} ({} changes of the carrier)", rail, count),
          {path, fmt::format("{}, {} more within {:.1f} s", count, more, node.live.seconds)});
  }
  if (!flapping.empty()) return reportCarrier(flapping, findings);
  if (changes.size() == rails.size()) return findings.fine("The links of the rails are steady.");
  findings.add({.severity = Severity::kUnknown,
                .code = "network.carrier-unknown",
                .what = "Could not look at how often the links of all rails changed.",
                .evidence = {{"/sys/class/net/*/carrier_changes",
                              fmt::format("{} of {} rails", changes.size(), rails.size())}},
                .cause = "The file is missing or damaged."});
}

void checkRailMtus(const Node& node, const RailNames& rails, Findings& findings) {
  constexpr std::uint64_t kFullRdma = 4192;  // the topic roce reports smaller MTUs
  std::map<std::uint64_t, Cases> of;
  for (const std::string& rail : rails)
    if (const auto mtu = node.tree.number(interfaceFile(rail, "mtu")); mtu && *mtu >= kFullRdma)
      of[*mtu].add(rail, {interfaceFile(rail, "mtu"), std::to_string(*mtu)});
  if (of.size() < 2) return;
  const std::uint64_t largest = of.rbegin()->first;
  RailNames groups;
  std::vector<Evidence> evidence;
  std::string fix;
  for (const auto& [mtu, cases] : of) {
    groups.push_back(fmt::format("{} on {}", mtu, shortList(cases.names, "rails")));
    evidence.insert(evidence.end(), cases.evidence.begin(), cases.evidence.end());
    for (const std::string& rail : cases.names)
      if (mtu != largest) fix += fmt::format("ip link set {} mtu {}\n", rail, largest);
  }
  findings.add({.severity = Severity::kWarning,
                .code = "network.mtu",
                .what = fmt::format("The rails have different MTUs: {}.", fmt::join(groups, "; ")),
                .evidence = std::move(evidence),
                .cause =
                    "One of them was set up in another way. A switch or peer with a smaller MTU "
                    "drops larger packets.",
                .fix = fmt::format("{}See that it passes: ping -M do -s {} PEER", fix,
                                   largest - 28)});  // without the headers of IPv4 and ICMP
}

}  // namespace

void checkNetwork(const Node& node, Findings& findings) {
  const RailNames rails = railsOf(node);
  checkIpv4Addresses(node, findings);
  checkRoutes(node, rails, findings);
  if (rails.empty())
    return findings.fine("No RDMA device has a network interface of its own here.");
  checkSubnets(node, rails, findings);
  checkCarrier(node, rails, findings);
  checkRailMtus(node, rails, findings);
}

}  // namespace viaduct::diag
