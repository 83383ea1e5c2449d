#include "host/link_facts.h"

#include <gtest/gtest.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <string_view>

namespace viaduct::host {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytesOf(const T& value) {
  const auto view = std::as_bytes(std::span(&value, 1));
  return {view.begin(), view.end()};
}
Bytes text(std::string_view from) {
  const auto view = std::as_bytes(std::span(from));
  Bytes out(view.begin(), view.end());
  out.push_back(std::byte{0});
  return out;
}
void append(Bytes& to, const Bytes& more) {
  to.insert(to.end(), more.begin(), more.end());
  to.resize((to.size() + 3) / 4 * 4);
}
Bytes attribute(unsigned type, const Bytes& content) {
  rtattr head{};
  head.rta_len = static_cast<unsigned short>(sizeof head + content.size());
  head.rta_type = static_cast<unsigned short>(type);
  Bytes out = bytesOf(head);
  append(out, content);
  return out;
}
Bytes all(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) append(out, part);
  return out;
}
template <class Body>
Bytes message(std::uint16_t type, const Body& body, const Bytes& attributes) {
  nlmsghdr head{};
  head.nlmsg_type = type;
  head.nlmsg_len = static_cast<std::uint32_t>(sizeof head + sizeof body + attributes.size());
  Bytes out = bytesOf(head);
  append(out, bytesOf(body));
  append(out, attributes);
  return out;
}

Bytes link(int index, std::string_view name, std::uint32_t mtu, std::uint64_t dropped) {
  ifinfomsg body{};
  body.ifi_index = index;
  rtnl_link_stats64 counts{};
  counts.rx_dropped = dropped;
  counts.tx_dropped = 1;
  counts.tx_bytes = mtu * 1'000'000'000ULL;
  counts.rx_bytes = 7;
  return message(RTM_NEWLINK, body,
                 all({attribute(IFLA_IFNAME, text(name)), attribute(IFLA_MTU, bytesOf(mtu)),
                      attribute(IFLA_STATS64, bytesOf(counts))}));
}

Bytes traffic(std::uint16_t type, int index, std::string_view kind, const Bytes& options,
              std::uint32_t drops = 0) {
  tcmsg body{};
  body.tcm_ifindex = index;
  body.tcm_parent = TC_H_ROOT;
  gnet_stats_queue queue{};
  queue.drops = drops;
  return message(type, body,
                 all({attribute(TCA_KIND, text(kind)), attribute(TCA_OPTIONS, options),
                      attribute(TCA_STATS2, attribute(TCA_STATS_QUEUE, bytesOf(queue)))}));
}

Bytes tbf(std::uint32_t rate, std::uint64_t wide = 0) {
  tc_tbf_qopt options{};
  options.rate.rate = rate;
  Bytes out = attribute(TCA_TBF_PARMS, bytesOf(options));
  if (wide != 0) append(out, attribute(TCA_TBF_RATE64, bytesOf(wide)));
  return out;
}
Bytes htb(std::uint32_t ceiling) {
  tc_htb_opt options{};
  options.ceil.rate = ceiling;
  return attribute(TCA_HTB_PARMS, bytesOf(options));
}

TEST(LinkFacts, RatesAndDropsAreFoundInTheKernelsAnswers) {
  const Bytes links = all({link(1, "lo", 65536, 0), link(2, "rail0", 1500, 5),
                           link(3, "rail1", 9000, 0), link(4, "rail2", 1500, 0)});
  const Bytes disciplines = all(
      {traffic(RTM_NEWQDISC, 1, "noqueue", {}), traffic(RTM_NEWQDISC, 2, "tbf", tbf(6'250'000), 70),
       traffic(RTM_NEWQDISC, 3, "tbf", tbf(~0U, 5'000'000'000)),
       traffic(RTM_NEWQDISC, 4, "htb", {}), traffic(RTM_NEWQDISC, 99, "tbf", tbf(1))});
  const Bytes classes = all(
      {traffic(RTM_NEWTCLASS, 4, "htb", htb(1000)), traffic(RTM_NEWTCLASS, 4, "htb", htb(3000))});
  const auto found = linkFactsFrom({links, disciplines, classes});
  EXPECT_EQ(found, (std::vector<LinkFacts>{{"lo", 65536, 1, "", 0},
                                           {"rail0", 1500, 76, "tbf", 6'250'000},
                                           {"rail1", 9000, 1, "tbf", 5'000'000'000},
                                           {"rail2", 1500, 1, "htb", 3000}}));
}

TEST(LinkFacts, ACutAnswerIsReadUpToItsLastWholePart) {
  const Bytes links = link(2, "rail0", 1500, 5);
  const Bytes disciplines = traffic(RTM_NEWQDISC, 2, "tbf", tbf(6'250'000), 70);
  for (std::size_t length = 0; length < links.size(); ++length) {
    const Bytes cut(links.begin(), links.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_TRUE(linkFactsFrom({.links = cut}).empty());
    EXPECT_TRUE(linkCountersFrom(cut).empty());
  }
  for (std::size_t length = 0; length < disciplines.size(); ++length) {
    const Bytes cut(disciplines.begin(), disciplines.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(linkFactsFrom({.links = links, .disciplines = cut}).front().shaper, "");
  }
  // Lengths inside of a whole message may lie.
  for (std::size_t at = sizeof(nlmsghdr); at < disciplines.size(); ++at)
    for (const int wrong : {0, 3, 255}) {
      Bytes damaged = disciplines;
      damaged[at] = static_cast<std::byte>(wrong);
      EXPECT_LE(linkFactsFrom({.links = links, .disciplines = damaged}).size(), 1U);
    }
}

TEST(LinkFacts, BytesAreCountedWith64Bits) {
  EXPECT_EQ(linkCountersFrom(link(2, "rail0", 1500, 5)),
            (std::vector<Counter>{{"rail0", 1'500'000'000'000, 7}}));
}

TEST(Counters, AFigureBetweenTwoReadingsAgreesWithTheLast) {
  const std::vector<Counter> first{{"a", 10, 10}, {"b", 10, 10}, {"c", 1, 1}},
      last{{"a", 20, 10}, {"b", 20, 10}, {"c", 1, 1}, {"fresh", 1, 1}},
      netlink{{"a", 15, 10}, {"b", 21, 9}, {"fresh", 1, 1}};
  const auto found = confirmed(last, first, netlink);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].netlink, (LinkBytes{20, 10}));
  EXPECT_EQ(found[1].netlink, (LinkBytes{21, 9}));
  EXPECT_FALSE(found[2].netlink) << "netlink does not know it";
  EXPECT_FALSE(found[3].netlink) << "it was not there before";
}

TEST(Counters, NetlinkConfirmsTheInterfacesOfThisHost) {
  const auto all = readCounters();
  const auto lo = std::ranges::find(all, "lo", &Counter::device);
  ASSERT_NE(lo, all.end());
  EXPECT_EQ(lo->netlink, (LinkBytes{lo->sent, lo->received}));
}

TEST(LinkFacts, LoopbackOfThisHostIsThere) {
  const std::vector<LinkFacts> links = linkFacts();
  const auto lo = std::ranges::find(links, "lo", &LinkFacts::name);
  ASSERT_NE(lo, links.end());
  EXPECT_GE(lo->mtu, 1500U);
}

}  // namespace
}  // namespace viaduct::host
