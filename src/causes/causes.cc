#include "causes/causes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/sizes.h"

namespace viaduct::causes {
namespace {

using Found = std::vector<std::string>;

// ---- Thresholds. docs/measuring.md has the table for users.

// A shaper delays only bursts on an interface that sends less than this part of the shaper's rate.
constexpr double kShaped = 0.7;
// A rail delays a row if it had bytes on their way for at least half of the row, and the middle one
// of the other rails for at most half as long.
constexpr double kMostly = 0.5;
// A part of a socket's busy time. A socket waits for space in a tiny buffer even if the receiver is
// fast: on an idle machine for a quarter to a third. The kernel counts in steps of 4 ms.
constexpr double kOften = 0.15;
// In seconds. A rail is not slow if TCP only waited once for 0.2 s after a loss. The kernel counts
// busy time in steps of up to 10 ms.
constexpr double kLongerThanATimeout = 0.3;
// Statistics of a socket that sent fewer bytes are left out: they fit into its first round trips.
constexpr std::uint64_t kEnoughBytes = std::uint64_t{1} << 20U;
// Healthy runs repeat up to one segment in 2,000, and links of data centres lose less than one
// packet in 10,000. With three losses in 1,000, TCP reaches 2.6 Gbit/s over 0.1 ms, and less over
// longer paths.
constexpr double kLost = 0.003;
constexpr std::uint64_t kFewLosses = 100;
// TCP hands the NIC up to 64 KiB at once. A buffer for fewer than two of these pieces makes it
// wait after each.
constexpr std::uint64_t kTwoPieces = std::uint64_t{128} << 10U;
// A buffer should hold several times the bytes in flight, because the kernel's own overhead takes
// half of the buffer or more.
constexpr double kRoundTrips = 4;
// The least MTU that IPv6 allows. Tunnels over Ethernet, whose MTU is 1500, leave more.
constexpr std::uint32_t kLeastMtu = 1280;
// Headers of IP and TCP with all options.
constexpr std::uint32_t kHeaders = 120;
// Loopback and jumbo frames above this size have other limits.
constexpr std::uint32_t kLargestSegment = 16384;
// A process lacks processors if its threads waited for a fifth of the time in which they could run,
// and for a tenth of the row. Less is the usual noise of a scheduler.
constexpr double kWaited = 0.2, kOfTheRow = 0.1;
// A host is crowded if other programs take a fifth of its cores, and less than a tenth is idle.
constexpr double kMuch = 0.2, kIdle = 0.1;
// 4 KiB pages cost time if small blocks lie apart in more memory than the processor's TLB covers
// (2,048 entries, 8 MiB): docs/measured/local.md. Within large blocks, the processor prefetches.
constexpr std::uint64_t kSmallBlock = std::uint64_t{64} << 10U,
                        kManyPages = std::uint64_t{64} << 20U;
constexpr double kFarFromCeiling = 0.5;

// ---- Words.

std::string of(const Member& member) { return member.name.empty() ? "" : " of " + member.name; }
std::string subject(const Member& member) {
  return member.name.empty() ? "this process" : member.name;
}

std::string bits(double bytes_per_s) {
  const double bits = bytes_per_s * 8;
  if (bits >= 1e9) return fmt::format("{:.3g} Gbit/s", bits * 1e-9);
  return fmt::format("{:.3g} Mbit/s", bits * 1e-6);
}

std::string percent(double part) { return fmt::format("{:.2g} %", part * 100); }

double secondsOf(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

// The rate of one socket of a rail, while it had something to send.
double rateOf(const SocketStatistics& one) {
  const double busy = secondsOf(one.busy);
  return busy > 0 ? static_cast<double>(one.sent_bytes) / busy : 0;
}
double busyOf(const RailUse& rail) {
  return secondsOf(rail.sockets.busy) /
         static_cast<double>(std::max<std::uint64_t>(rail.sockets.sockets, 1));
}

std::vector<const RailUse*> sendingRails(const Member& member) {
  std::vector<const RailUse*> out;
  for (const RailUse& rail : member.rails)
    if (rail.sockets.sent_bytes >= kEnoughBytes) out.push_back(&rail);
  return out;
}

// Calls `each` for each member. Keeps the texts that `each` returns, except empty ones.
template <class Each>
Found ofMembers(const Scene& scene, Each each) {
  Found out;
  for (const Member& member : scene.members)
    if (std::string one = each(member); !one.empty()) out.push_back(std::move(one));
  return out;
}

// Shows at most kMost texts, because many members may have the same cause.
std::string listed(const Found& found) {
  constexpr std::size_t kMost = 2;
  const std::span<const std::string> some(found.data(), std::min(found.size(), kMost));
  return fmt::format(
      "{}{}", fmt::join(some, ", "),
      found.size() > kMost ? fmt::format(", and {} more", found.size() - kMost) : "");
}

// ---- The rules.

Found traced(const Scene& scene) {
  return ofMembers(scene, [](const Member& member) {
    return member.limits.tracer == 0
               ? std::string()
               : fmt::format("process {} traces {}, and stops it at each system call or signal",
                             member.limits.tracer, subject(member));
  });
}

std::uint64_t sentBy(const Member& member, const std::string& interface) {
  for (const InterfaceUse& use : member.interfaces)
    if (use.name == interface) return use.sent;
  return 0;
}

// Returns "" if no queueing discipline slows the interface.
std::string shapedLink(const Scene& scene, const Member& member, const host::LinkFacts& link) {
  if (link.shaper.empty()) return {};
  const auto rate = static_cast<double>(link.shaped_bytes_per_s);
  std::string text = fmt::format("interface {}{} is limited to {} by its queueing discipline {}",
                                 link.name, of(member), bits(rate), link.shaper);
  if (!scene.row) return text;
  const double sent =
      member.seconds > 0 ? static_cast<double>(sentBy(member, link.name)) / member.seconds : 0;
  return sent < kShaped * rate ? std::string() : fmt::format("{}, and sent {}", text, bits(sent));
}

// Only one member of each host and network lists its interfaces, so each is named once.
Found shaped(const Scene& scene) {
  Found out;
  for (const Member& member : scene.members)
    for (const host::LinkFacts& link : member.links)
      if (auto text = shapedLink(scene, member, link); !text.empty())
        out.push_back(std::move(text));
  return out;
}

std::string ratesOf(const std::vector<const RailUse*>& rails) {
  std::vector<std::string> words;
  for (const RailUse* rail : rails) {
    const double rate = rateOf(rail->sockets) * static_cast<double>(rail->sockets.sockets);
    words.push_back(rail->name + " " + (rate > 0 ? bits(rate) : "too fast to tell"));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

Found slowRail(const Scene& scene) {
  return ofMembers(scene, [](const Member& member) -> std::string {
    auto rails = sendingRails(member);
    if (rails.size() < 2 || member.seconds <= 0) return {};
    const auto by_busy = [](const RailUse* a, const RailUse* b) { return busyOf(*a) > busyOf(*b); };
    std::ranges::stable_sort(rails, by_busy);
    const double busiest = busyOf(*rails.front());
    const double usual = busyOf(*rails[rails.size() / 2]);  // the middle one of the others
    if (busiest < kLongerThanATimeout || busiest < kMostly * member.seconds ||
        usual > kMostly * busiest)
      return {};
    std::ranges::sort(rails, {}, [](const RailUse* rail) { return rail->name; });
    return fmt::format("the rails of {} differ while they send: {}", subject(member),
                       ratesOf(rails));
  });
}

std::string dropsOf(const Scene& scene) {
  std::string out;
  for (const Member& member : scene.members)
    for (const host::LinkFacts& link : member.links)
      if (link.dropped >= kFewLosses)
        out += fmt::format(", {}{} dropped {} packets", link.name, of(member), link.dropped);
  return out;
}

Found lost(const Scene& scene) {
  const auto is_much = [](std::uint64_t repeated, std::uint64_t sent) {
    return repeated >= kFewLosses &&
           static_cast<double>(repeated) >= kLost * static_cast<double>(sent);
  };
  const auto part = [](std::uint64_t repeated, std::uint64_t sent) {
    return static_cast<double>(repeated) / static_cast<double>(std::max<std::uint64_t>(sent, 1));
  };
  Found out;
  for (const Member& member : scene.members) {
    const auto& [sent, repeated] = member.segments;
    if (!scene.row && is_much(repeated, sent))
      out.push_back(fmt::format("{} of the TCP segments of this network namespace were sent again",
                                percent(part(repeated, sent))));
    for (const RailUse& rail : member.rails)
      if (scene.row && is_much(rail.sockets.repeated_segments, rail.sockets.sent_segments))
        out.push_back(
            fmt::format("rail {}{} sent {} of {} TCP segments again ({})", rail.name, of(member),
                        rail.sockets.repeated_segments, rail.sockets.sent_segments,
                        percent(part(rail.sockets.repeated_segments, rail.sockets.sent_segments))));
  }
  if (scene.row && !out.empty()) out.back() += dropsOf(scene);
  return out;
}

// The least receive buffer of all other members; 0: unknown.
std::uint64_t farBuffer(const Scene& scene, const Member& sender) {
  std::uint64_t out = 0;
  for (const Member& member : scene.members)
    if (const std::uint64_t most = member.limits.receive_buffer; &member != &sender && most != 0)
      out = out == 0 ? most : std::min(out, most);
  return out;
}

std::string limitedByBuffers(const Scene& scene, const Member& member, const RailUse& rail) {
  const SocketStatistics& s = rail.sockets;
  const auto at_once =
      static_cast<std::uint64_t>(rateOf(s) * secondsOf(s.round_trip) * kRoundTrips);
  const auto is_small = [&](std::uint64_t most) {
    return most != 0 && (most < kTwoPieces || most < at_once);
  };
  const double send = secondsOf(s.send_limited), window = secondsOf(s.window_limited);
  const bool sends = is_small(member.limits.send_buffer);
  const std::uint64_t far = farBuffer(scene, member);
  if (!sends && !is_small(far)) return {};
  const bool tiny = (sends ? member.limits.send_buffer : far) < kTwoPieces;
  if (send + window < (tiny ? kOften : kMostly) * secondsOf(s.busy)) return {};
  return fmt::format(
      "socket buffers hold at most {} ({}), and rail {}{} waited for them for {} of its time",
      base::showSize(sends ? member.limits.send_buffer : far), sends ? "tcp_wmem" : "tcp_rmem",
      rail.name, of(member), percent(std::min(1.0, (send + window) / secondsOf(s.busy))));
}

Found smallBuffers(const Scene& scene) {
  Found out;
  for (const Member& member : scene.members) {
    if (scene.row) {
      for (const RailUse* rail : sendingRails(member))
        if (std::string one = limitedByBuffers(scene, member, *rail); !one.empty())
          out.push_back(std::move(one));
      continue;
    }
    const auto check = [&](std::uint64_t most, const char* name) {
      if (most != 0 && most < kTwoPieces)
        out.push_back(
            fmt::format("TCP socket buffers hold at most {} ({})", base::showSize(most), name));
    };
    check(member.limits.send_buffer, "tcp_wmem");
    check(member.limits.receive_buffer, "tcp_rmem");
  }
  return out;
}

Found smallPackets(const Scene& scene) {
  Found out;
  for (const Member& member : scene.members) {
    for (const host::LinkFacts& link : member.links)
      if (!scene.row && link.mtu != 0 && link.mtu < kLeastMtu)
        out.push_back(fmt::format("interface {} has an MTU of {}", link.name, link.mtu));
    for (const RailUse* rail : sendingRails(member)) {
      const std::uint32_t mtu = rail->sockets.path_mtu, segment = rail->sockets.segment_bytes;
      if (mtu != 0 && mtu < kLeastMtu)
        out.push_back(
            fmt::format("the path of rail {}{} has an MTU of {}", rail->name, of(member), mtu));
      else if (segment != 0 && segment < kLargestSegment && segment + kHeaders < mtu)
        out.push_back(fmt::format(
            "rail {}{} has an MTU of {}, and the other end takes only {} bytes of TCP in a packet",
            rail->name, of(member), mtu, segment));
    }
  }
  return out;
}

bool lacksProcessors(const Member& member) {
  const double waited = member.times.waited;
  return waited >= kWaited * (waited + member.times.ran) && waited >= kOfTheRow * member.seconds;
}

std::string processorsOf(const Member& member) {
  return fmt::format("{} may run on {} of {} processors", subject(member),
                     member.limits.allowed.size(), member.limits.processors);
}

Found quota(const Scene& scene) {
  return ofMembers(scene, [&](const Member& member) -> std::string {
    if (member.limits.quota <= 0) return {};
    const std::string text = fmt::format("the control group of {} has a quota of {:.3g} processors",
                                         subject(member), member.limits.quota);
    if (!scene.row) return member.limits.quota < scene.threads ? text : "";
    if (member.times.throttled < kOfTheRow * member.seconds) return {};
    return fmt::format("{}, and was held back for {:.2g} s", text, member.times.throttled);
  });
}

// Returns the processor time, in seconds, that other programs took on the processors on which the
// member may run.
double othersOn(const Scene& scene, const Member& member) {
  double own = 0;
  for (const Member& other : scene.members)
    if (other.host == member.host && other.limits.allowed == member.limits.allowed)
      own += other.times.ran;
  return member.times.busy - own;
}

bool sharesWithOthers(const Scene& scene, const Member& member) {
  return othersOn(scene, member) >=
         kMuch * member.seconds * static_cast<double>(member.limits.allowed.size());
}

Found pinned(const Scene& scene) {
  return ofMembers(scene, [&](const Member& member) -> std::string {
    if (!member.limits.pinned()) return {};
    if (!scene.row) return member.limits.allowed.size() < scene.threads ? processorsOf(member) : "";
    if (!lacksProcessors(member)) return {};
    return fmt::format("{}, and its threads waited for them for {:.2g} of {:.2g} s",
                       processorsOf(member), member.times.waited, member.seconds);
  });
}

Found neighbours(const Scene& scene) {
  if (!scene.row) return {};
  return ofMembers(scene, [&](const Member& member) -> std::string {
    if (!member.limits.pinned() || !lacksProcessors(member) || !sharesWithOthers(scene, member))
      return {};
    return fmt::format("other programs kept processor {} of {} busy for {:.2g} of {:.2g} s",
                       fmt::join(member.limits.allowed, ","), subject(member),
                       othersOn(scene, member), member.seconds);
  });
}

Found crowd(const Scene& scene) {
  if (!scene.row) return {};
  const RowState& row = *scene.row;
  if (row.cores <= 0 || row.cores_others < kMuch * row.cores ||
      row.cores_busy + row.cores_others < (1 - kIdle) * row.cores)
    return {};
  return {
      fmt::format("other processes kept {:.1f} of {:.0f} cores busy", row.cores_others, row.cores)};
}

Found smallPages(const Scene& scene) {
  if (scene.row && (!scene.row->in_memory || scene.row->pages == Pages::kHuge ||
                    scene.row->block > kSmallBlock || scene.row->working_set < kManyPages ||
                    scene.row->of_ceiling >= kFarFromCeiling))
    return {};
  const bool shared = scene.row && scene.row->pages == Pages::kShared;
  return ofMembers(scene, [&](const Member& member) -> std::string {
    const std::string& word = shared ? member.limits.huge_shared_pages : member.limits.huge_pages;
    // A row requests huge pages for shared memory, so "advise" suffices there. Ordinary memory
    // needs more than "madvise".
    const bool small = word == "never" || word == "deny" || word == "off" ||
                       (scene.row && !shared && word == "madvise");
    if (!small) return {};
    return fmt::format("{}memory of {} has no huge pages ({}: {})", shared ? "shared " : "",
                       subject(member), shared ? "shmem_enabled" : "enabled", word);
  });
}

// `lost-packets` is not certain without a row: since boot, a host may have lost packets only on its
// way to the Internet.
constexpr std::array kRules{
    Rule{"traced", traced, "end strace, gdb or the profiler"},
    Rule{"shaped-interface", shaped, "raise the rate, or leave the interface out of VIADUCT_RAILS"},
    Rule{"slow-rail", slowRail,
         "a transfer ends with its slowest rail, so leave that one out of VIADUCT_RAILS"},
    Rule{"lost-packets", lost,
         "find the drops with ethtool -S, tc -s qdisc, nft list ruleset, and at the switch", false},
    Rule{"small-buffers", smallBuffers,
         "raise both at both ends: sysctl -w net.ipv4.tcp_wmem=\"4096 65536 16777216\" "
         "net.ipv4.tcp_rmem=\"4096 131072 16777216\""},
    Rule{"small-packets", smallPackets, "give both ends and the switch the same, larger MTU"},
    Rule{"quota", quota, "raise the quota, or the pod's limit of CPUs"},
    Rule{"busy-neighbour", neighbours, "choose other processors, or stop these programs"},
    Rule{"few-processors", pinned, "allow more processors with taskset, cpuset or numactl"},
    Rule{"other-programs", crowd, "measure again on an idle host"},
    Rule{"small-pages", smallPages,
         "use --use-hugepages; or write \"advise\" to shmem_enabled, and \"always\" to enabled for "
         "--memory malloc, in /sys/kernel/mm/transparent_hugepage",
         false},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

std::vector<Cause> causesOf(const Scene& scene) {
  std::vector<Cause> out;
  for (const Rule& rule : kRules)
    if (const Found found = rule.find(scene); !found.empty())
      out.push_back({rule.name, listed(found), rule.remedy, rule.certain});
  return out;
}

std::string textOf(std::span<const Cause> causes) {
  std::string out;
  for (const Cause& one : causes)
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", one.what, one.remedy);
  return out;
}

Scene hereAndNow(const host::Tree& tree, std::vector<host::LinkFacts> links) {
  return {.members = {{.limits = host::processLimits(tree),
                       .links = std::move(links),
                       .segments = host::tcpSegments(tree)}}};
}

void add(SocketStatistics& into, const SocketStatistics& more) {
  into.sent_bytes += more.sent_bytes;
  into.received_bytes += more.received_bytes;
  into.sent_segments += more.sent_segments;
  into.repeated_segments += more.repeated_segments;
  into.busy += more.busy;
  into.send_limited += more.send_limited;
  into.window_limited += more.window_limited;
  into.sealing += more.sealing;
}

SocketStatistics between(const SocketStatistics& before, const SocketStatistics& after) {
  SocketStatistics out = after;
  if (after.sent_bytes < before.sent_bytes || after.received_bytes < before.received_bytes)
    return {.sockets = after.sockets};
  out.sent_bytes -= before.sent_bytes;
  out.received_bytes -= before.received_bytes;
  out.sent_segments -= before.sent_segments;
  // The count may fall, because the kernel subtracts repetitions that later prove needless.
  out.repeated_segments -= std::min(before.repeated_segments, out.repeated_segments);
  out.busy -= before.busy;
  out.send_limited -= before.send_limited;
  out.window_limited -= before.window_limited;
  out.sealing -= before.sealing;
  return out;
}

}  // namespace viaduct::causes
