// Which transports UCX has, and which of them an endpoint uses, read from what it prints of itself:
// UCX 1.13 has no other way to ask. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::ucx {

enum class TransportKind : std::uint8_t { kTcp, kRdma, kMemory };

struct Transport {
  std::string name = {};    // "tcp", "rc_mlx5"
  std::string device = {};  // "eth0", "mlx5_0:1"
  friend bool operator==(const Transport&, const Transport&) = default;
};
// An unknown name counts as TCP: nobody shall take for RDMA what nobody here has heard of.
TransportKind kindOf(std::string_view transport);
bool anyOf(std::span<const Transport> transports, TransportKind realm);

// From ucp_context_print_info: every transport on every device.
std::vector<Transport> resourcesIn(std::string_view context_info);
// From ucp_ep_print_info: those that carry reads and writes.
std::vector<Transport> lanesIn(std::string_view endpoint_info);

// "tcp", "rc_mlx5,rc_verbs": each name once, the least of them first.
std::string transportText(std::span<const Transport> lanes);
// "tcp/eth0, tcp/lo"
std::string listText(std::span<const Transport> transports);

}  // namespace viaduct::ucx
