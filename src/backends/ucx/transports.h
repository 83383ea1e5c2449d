// Reads UCX's transports, and those of an endpoint, from the texts that UCX prints. UCX 1.13 has no
// other interface for them. Threads: pure functions.
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
// The kind of a transport. An unknown name counts as TCP, so that nothing unknown passes for RDMA.
TransportKind kindOf(std::string_view transport);
bool anyOf(std::span<const Transport> transports, TransportKind realm);

// Every transport on every device, from the text of ucp_context_print_info.
std::vector<Transport> resourcesIn(std::string_view context_info);
// The transports that carry reads and writes, from the text of ucp_ep_print_info.
std::vector<Transport> lanesIn(std::string_view endpoint_info);

// "tcp", "rc_mlx5,rc_verbs": each name once; TCP first, then RDMA, then memory.
std::string transportText(std::span<const Transport> lanes);
// "tcp/eth0, tcp/lo"
std::string listText(std::span<const Transport> transports);

}  // namespace viaduct::ucx
