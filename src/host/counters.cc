#include "host/counters.h"

#include "base/lists.h"
#include "base/text.h"
#include "host/link_facts.h"
#include "host/rdma.h"

namespace viaduct::host {
namespace {

constexpr std::uint64_t kTurn = std::uint64_t{1} << 32U;  // where a 32-bit counter wraps

// A port counts 4-byte words in `counters`. EFA counts bytes in `hw_counters` and has no other
// counters.
std::optional<Counter> readPort(const Tree& tree, const RdmaPort& port) {
  const auto words_out = tree.number(port.folder + "/counters/port_xmit_data");
  const auto words_in = tree.number(port.folder + "/counters/port_rcv_data");
  if (words_out && words_in) return Counter{port.name, *words_out, *words_in, 4};
  const auto bytes_out = tree.number(port.folder + "/hw_counters/tx_bytes");
  const auto bytes_in = tree.number(port.folder + "/hw_counters/rx_bytes");
  if (bytes_out && bytes_in) return Counter{port.name, *bytes_out, *bytes_in, 1};
  return std::nullopt;
}

}  // namespace

std::vector<Counter> interfaceCounters(const Tree& tree) {
  std::vector<Counter> out;
  for (const std::string& line : tree.lines("/proc/net/dev")) {
    // A line is "  eth0: 1234 ...": eight figures of received traffic, then eight of sent traffic.
    // The two header lines have bars.
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.find('|') != std::string::npos) continue;
    const auto figures = base::wordsOf(std::string_view(line).substr(colon + 1));
    if (figures.size() < 9) continue;
    const auto received = base::numberIn<std::uint64_t>(figures[0]),
               sent = base::numberIn<std::uint64_t>(figures[8]);
    if (received && sent)
      out.push_back(
          {std::string(base::trimmed(std::string_view(line).substr(0, colon))), *sent, *received});
  }
  return out;
}

std::vector<Counter> confirmed(std::vector<Counter> last, const std::vector<Counter>& first,
                               const std::vector<Counter>& netlink) {
  const auto agreed = [](std::uint64_t from, std::uint64_t figure, std::uint64_t to) {
    return from <= figure && figure <= to ? to : figure;
  };
  for (Counter& one : last) {
    const Counter* const before = base::firstWith(first, &Counter::device, one.device);
    const Counter* const second = base::firstWith(netlink, &Counter::device, one.device);
    if (before == nullptr || second == nullptr) continue;
    one.netlink = LinkBytes{agreed(before->sent, second->sent, one.sent),
                            agreed(before->received, second->received, one.received)};
  }
  return last;
}

std::vector<Counter> readCounters(const Tree& tree) {
  std::vector<Counter> out = interfaceCounters(tree);
  if (tree.live()) {
    const std::vector<Counter> netlink = linkCounters();
    out = confirmed(interfaceCounters(tree), out, netlink);
  }
  for (const RdmaPort& port : rdmaPorts(tree))
    if (auto counter = readPort(tree, port)) out.push_back(*std::move(counter));
  return out;
}

std::optional<DiskBytes> ownDiskBytes(const Tree& tree) {
  const std::string text = tree.read("/proc/self/io").text;
  const auto number = [&](std::string_view key) {
    return base::numberIn<std::uint64_t>(valueIn(text, key));
  };
  const auto read = number("read_bytes"), written = number("write_bytes");
  if (!read || !written) return std::nullopt;
  return DiskBytes{*read, *written};
}

std::optional<Delta> deltaOf(std::uint64_t before, std::uint64_t after, std::uint32_t unit) {
  // The counters of the oldest ports stop at their maximum and do not wrap.
  if (unit == 4 && after == kTurn - 1) return std::nullopt;
  if (after >= before) return Delta{(after - before) * unit, false};
  // Only a counter in its upper half can have wrapped; otherwise it was reset to 0.
  if (before < kTurn && before >= kTurn / 2) return Delta{(after + kTurn - before) * unit, true};
  return std::nullopt;
}

}  // namespace viaduct::host
