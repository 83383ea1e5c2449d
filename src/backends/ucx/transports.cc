#include "backends/ucx/transports.h"

#include <algorithm>
#include <array>

namespace viaduct::ucx {
namespace {

constexpr std::array<std::string_view, 12> kRdma{"rc",       "dc",      "ud",      "ib",
                                                 "rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs",
                                                 "ud_mlx5",  "rc_x",    "dc_x",    "srd"};
constexpr std::array<std::string_view, 14> kMemory{
    "self",     "posix",    "sysv",      "cma",      "xpmem",    "knem",    "cuda_copy",
    "cuda_ipc", "gdr_copy", "rocm_copy", "rocm_ipc", "rocm_gdr", "ze_copy", "ze_ipc"};

template <class F>
void eachLine(std::string_view text, F use) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    use(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Adds the pair "tcp/eth0" at the front of the text, which ends at a blank.
void add(std::string_view pair, std::vector<Transport>& out) {
  pair = pair.substr(0, pair.find(' '));
  const auto slash = pair.find('/');
  if (slash == 0 || slash == std::string_view::npos) return;
  Transport one{std::string(pair.substr(0, slash)), std::string(pair.substr(slash + 1))};
  if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(std::move(one));
}

}  // namespace

TransportKind kindOf(std::string_view transport) {
  if (std::find(kRdma.begin(), kRdma.end(), transport) != kRdma.end()) return TransportKind::kRdma;
  if (std::find(kMemory.begin(), kMemory.end(), transport) != kMemory.end())
    return TransportKind::kMemory;
  return TransportKind::kTcp;
}

bool anyOf(std::span<const Transport> transports, TransportKind realm) {
  return std::any_of(transports.begin(), transports.end(),
                     [&](const Transport& one) { return kindOf(one.name) == realm; });
}

// Reads lines such as
// "#      resource 1  :  md 1  dev 1  flags -- tcp/lo"
std::vector<Transport> resourcesIn(std::string_view context_info) {
  std::vector<Transport> out;
  eachLine(context_info, [&](std::string_view line) {
    constexpr std::string_view kBefore = "flags ";
    const auto flags = line.find(kBefore);
    if (line.find("resource ") == std::string_view::npos || flags == std::string_view::npos) return;
    line.remove_prefix(flags + kBefore.size());
    const auto blank = line.find(' ');  // after the flags
    if (blank != std::string_view::npos) add(line.substr(blank + 1), out);
  });
  return out;
}

// Reads lines such as
// "#   lane[0]:  1:tcp/lo.0 md[1]     -> md[1]/tcp/sysdev[255] am am_bw#0 keepalive wireup"
std::vector<Transport> lanesIn(std::string_view endpoint_info) {
  std::vector<Transport> rma, am;
  eachLine(endpoint_info, [&](std::string_view line) {
    const auto lane = line.find("lane["), arrow = line.find(" -> ");
    if (lane == std::string_view::npos || arrow == std::string_view::npos) return;
    const auto number = line.find(": ", lane);
    if (number == std::string_view::npos) return;
    std::string_view pair = line.substr(number + 1);
    pair.remove_prefix(std::min(pair.find_first_not_of(' '), pair.size()));
    pair.remove_prefix(std::min(pair.find(':') + 1, pair.size()));
    pair = pair.substr(0, pair.find(' '));
    // ".0" is the number of the path.
    if (const auto dot = pair.rfind('.'); dot != std::string_view::npos) pair = pair.substr(0, dot);
    const std::string_view uses = line.substr(arrow);
    if (uses.find(" rma") != std::string_view::npos) add(pair, rma);
    if (uses.find(" am") != std::string_view::npos) add(pair, am);
  });
  return rma.empty() ? am : rma;  // without an rma lane UCX moves data by active messages
}

std::string transportText(std::span<const Transport> lanes) {
  std::string out;
  for (const TransportKind realm :
       {TransportKind::kTcp, TransportKind::kRdma, TransportKind::kMemory})
    for (const Transport& lane : lanes)
      if (kindOf(lane.name) == realm &&
          ("," + out + ",").find("," + lane.name + ",") == std::string::npos)
        out += (out.empty() ? "" : ",") + lane.name;
  return out;
}

std::string listText(std::span<const Transport> transports) {
  std::string out;
  for (const Transport& one : transports)
    out += (out.empty() ? "" : ", ") + one.name + "/" + one.device;
  return out;
}

}  // namespace viaduct::ucx
