#include "host/link_facts.h"

#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "base/fd.h"

namespace viaduct::host {
namespace {

using Bytes = std::span<const std::byte>;

// Copies a structure from the front of `from`. A shorter structure is filled with zeros: older
// kernels know fewer fields.
template <class T>
T structIn(Bytes from) {
  T out{};
  const auto whole = std::as_writable_bytes(std::span(&out, 1));
  std::ranges::copy(from.first(std::min(sizeof out, from.size())), whole.begin());
  return out;
}

constexpr std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// Calls `each` with the type and the content of each attribute. Ends at an attribute that is longer
// than the rest.
template <class Each>
void eachAttribute(Bytes from, Each each) {
  while (from.size() >= sizeof(rtattr)) {
    const auto head = structIn<rtattr>(from);
    if (head.rta_len < sizeof head || head.rta_len > from.size()) return;
    each(head.rta_type & NLA_TYPE_MASK, from.subspan(sizeof head, head.rta_len - sizeof head));
    from = from.subspan(std::min(padded(head.rta_len), from.size()));
  }
}

// Calls `each` with the type and the content of each message.
template <class Each>
void eachMessage(Bytes from, Each each) {
  while (from.size() >= sizeof(nlmsghdr)) {
    const auto head = structIn<nlmsghdr>(from);
    if (head.nlmsg_len < sizeof head || head.nlmsg_len > from.size()) return;
    each(head.nlmsg_type, from.subspan(sizeof head, head.nlmsg_len - sizeof head));
    from = from.subspan(std::min(padded(head.nlmsg_len), from.size()));
  }
}

Bytes attributeOf(Bytes from, std::uint32_t wanted) {
  Bytes out;
  eachAttribute(from, [&](std::uint32_t type, Bytes content) {
    if (type == wanted) out = content;
  });
  return out;
}

// The attributes after a message's structure.
template <class T>
Bytes attributesAfter(Bytes message) {
  return message.subspan(std::min(padded(sizeof(T)), message.size()));
}

std::string textIn(Bytes from) {
  const std::string_view text(reinterpret_cast<const char*>(from.data()), from.size());
  return std::string(text.substr(0, text.find('\0')));
}

// A rate above 32 bits has an attribute of its own.
std::uint64_t rateIn(const tc_ratespec& rate, Bytes wide) {
  return wide.empty() ? rate.rate : structIn<std::uint64_t>(wide);
}

std::uint64_t tbfRate(Bytes options) {
  return rateIn(structIn<tc_tbf_qopt>(attributeOf(options, TCA_TBF_PARMS)).rate,
                attributeOf(options, TCA_TBF_RATE64));
}
std::uint64_t cakeRate(Bytes options) {
  return structIn<std::uint64_t>(attributeOf(options, TCA_CAKE_BASE_RATE64));
}
std::uint64_t netemRate(Bytes options) {
  // The structure of fixed fields comes before the attributes.
  const Bytes more = options.subspan(std::min(padded(sizeof(tc_netem_qopt)), options.size()));
  const Bytes wide = attributeOf(more, TCA_NETEM_RATE64);
  const std::uint64_t narrow = structIn<tc_netem_rate>(attributeOf(more, TCA_NETEM_RATE)).rate;
  return wide.empty() ? narrow : structIn<std::uint64_t>(wide);
}
std::uint64_t htbCeiling(Bytes options) {
  return rateIn(structIn<tc_htb_opt>(attributeOf(options, TCA_HTB_PARMS)).ceil,
                attributeOf(options, TCA_HTB_CEIL64));
}

// The queueing disciplines with a rate for the whole interface. The rates of htb are in its
// classes.
struct RateReader {
  std::string_view kind;
  std::uint64_t (*rate)(Bytes options);
};
constexpr std::array kReaders{RateReader{"tbf", tbfRate}, RateReader{"cake", cakeRate},
                              RateReader{"netem", netemRate}};

// Calls `each` with the structure and the attributes of each interface.
template <class Each>
void eachLink(Bytes messages, Each each) {
  eachMessage(messages, [&](std::uint32_t type, Bytes message) {
    if (type == RTM_NEWLINK && message.size() >= sizeof(ifinfomsg))
      each(structIn<ifinfomsg>(message), attributesAfter<ifinfomsg>(message));
  });
}

using ByIndex = std::map<int, LinkFacts>;

ByIndex linksIn(Bytes messages) {
  ByIndex out;
  eachLink(messages, [&](const ifinfomsg& head, Bytes attributes) {
    const auto counts = structIn<rtnl_link_stats64>(attributeOf(attributes, IFLA_STATS64));
    out[head.ifi_index] = {.name = textIn(attributeOf(attributes, IFLA_IFNAME)),
                           .mtu = structIn<std::uint32_t>(attributeOf(attributes, IFLA_MTU)),
                           .dropped = counts.rx_dropped + counts.tx_dropped};
  });
  return out;
}

void addShaper(LinkFacts& link, std::string_view kind, std::uint64_t rate) {
  if (rate == 0 || (!link.shaper.empty() && link.shaped_bytes_per_s <= rate)) return;
  link.shaper = kind;
  link.shaped_bytes_per_s = rate;
}

// Calls `each` with the interface, the structure and the attributes of each message.
template <class Each>
void eachOfTraffic(Bytes messages, std::uint32_t wanted, ByIndex& links, Each each) {
  eachMessage(messages, [&](std::uint32_t type, Bytes message) {
    if (type != wanted || message.size() < sizeof(tcmsg)) return;
    const auto head = structIn<tcmsg>(message);
    if (const auto link = links.find(head.tcm_ifindex); link != links.end())
      each(link->second, head, attributesAfter<tcmsg>(message));
  });
}

void addDisciplines(Bytes messages, ByIndex& links) {
  eachOfTraffic(
      messages, RTM_NEWQDISC, links, [](LinkFacts& link, const tcmsg& head, Bytes attributes) {
        const std::string kind = textIn(attributeOf(attributes, TCA_KIND));
        for (const RateReader& reader : kReaders)
          if (reader.kind == kind)
            addShaper(link, kind, reader.rate(attributeOf(attributes, TCA_OPTIONS)));
        // Skips inner disciplines, because outer disciplines count their drops too.
        if (head.tcm_parent != TC_H_ROOT && head.tcm_parent != TC_H_INGRESS) return;
        const Bytes counts = attributeOf(attributes, TCA_STATS2);
        link.dropped += structIn<gnet_stats_queue>(attributeOf(counts, TCA_STATS_QUEUE)).drops;
      });
}

// The rate of htb is the highest ceiling of its classes, because no traffic exceeds that.
void addClasses(Bytes messages, ByIndex& links) {
  std::map<LinkFacts*, std::uint64_t> highest;
  eachOfTraffic(messages, RTM_NEWTCLASS, links,
                [&](LinkFacts& link, const tcmsg& /*head*/, Bytes attributes) {
                  if (textIn(attributeOf(attributes, TCA_KIND)) != "htb") return;
                  std::uint64_t& most = highest[&link];
                  most = std::max(most, htbCeiling(attributeOf(attributes, TCA_OPTIONS)));
                });
  for (const auto& [link, rate] : highest) addShaper(*link, "htb", rate);
}

base::Fd openNetlink() {
  base::Fd out(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  // The kernel answers within the call that asks. The limit only keeps a fault from being a hang.
  const timeval limit{.tv_sec = 1, .tv_usec = 0};
  if (out)
    static_cast<void>(::setsockopt(out.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  return out;
}

// Asks for all objects of a kind. Empty: the kernel refuses.
template <class Body>
std::vector<std::byte> ask(const base::Fd& netlink, std::uint16_t type, const Body& body) {
  struct {
    nlmsghdr head{};
    Body body{};
  } request{.body = body};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = type;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  if (::send(netlink.get(), &request, sizeof request, 0) < 0) return {};
  std::vector<std::byte> out, part(std::size_t{64} << 10U);
  for (bool more = true; more;) {
    const ssize_t got = ::recv(netlink.get(), part.data(), part.size(), 0);
    if (got <= 0) return {};
    const Bytes fresh(part.data(), static_cast<std::size_t>(got));
    eachMessage(fresh, [&](std::uint32_t kind, Bytes /*content*/) {
      more = more && kind != NLMSG_DONE && kind != NLMSG_ERROR;
    });
    out.insert(out.end(), fresh.begin(), fresh.end());
  }
  return out;
}

// Asks for the classes of the interfaces that have htb.
std::vector<std::byte> askClasses(const base::Fd& netlink, Bytes disciplines) {
  std::vector<std::byte> out;
  eachMessage(disciplines, [&](std::uint32_t type, Bytes message) {
    if (type != RTM_NEWQDISC || message.size() < sizeof(tcmsg)) return;
    if (textIn(attributeOf(attributesAfter<tcmsg>(message), TCA_KIND)) != "htb") return;
    tcmsg body{};
    body.tcm_ifindex = structIn<tcmsg>(message).tcm_ifindex;
    const std::vector<std::byte> some = ask(netlink, RTM_GETTCLASS, body);
    out.insert(out.end(), some.begin(), some.end());
  });
  return out;
}

}  // namespace

std::vector<LinkFacts> linkFactsFrom(const LinkAnswers& answers) {
  ByIndex links = linksIn(answers.links);
  addDisciplines(answers.disciplines, links);
  addClasses(answers.classes, links);
  std::vector<LinkFacts> out;
  for (auto& [index, link] : links) out.push_back(std::move(link));
  return out;
}

std::vector<Counter> linkCountersFrom(std::span<const std::byte> links) {
  std::vector<Counter> out;
  eachLink(links, [&](const ifinfomsg& /*head*/, Bytes attributes) {
    const Bytes counts = attributeOf(attributes, IFLA_STATS64);
    if (counts.empty()) return;
    const auto figures = structIn<rtnl_link_stats64>(counts);
    out.push_back(
        {textIn(attributeOf(attributes, IFLA_IFNAME)), figures.tx_bytes, figures.rx_bytes});
  });
  return out;
}

std::vector<Counter> linkCounters() {
  const base::Fd netlink = openNetlink();
  return netlink ? linkCountersFrom(ask(netlink, RTM_GETLINK, ifinfomsg{}))
                 : std::vector<Counter>{};
}

std::vector<LinkFacts> linkFacts() {
  const base::Fd netlink = openNetlink();
  if (!netlink) return {};
  const auto links = ask(netlink, RTM_GETLINK, ifinfomsg{});
  const auto disciplines = ask(netlink, RTM_GETQDISC, tcmsg{});
  const auto classes = askClasses(netlink, disciplines);
  return linkFactsFrom({links, disciplines, classes});
}

}  // namespace viaduct::host
