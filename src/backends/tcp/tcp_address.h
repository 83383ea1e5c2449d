// Lists, encodes and orders the addresses of this machine and of peers. Threads: plain values; any.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/tcp/protection.h"
#include "base/bytes.h"
#include "base/net/address.h"

namespace viaduct::tcp {

// An address of this machine.
struct LocalInterface {
  std::string name;
  base::SocketAddress address = {};
  base::SocketAddress mask = {};
};
std::vector<LocalInterface> interfaces();

// The addresses for a "host:port" to bind to; the host is a number or a name. The port is that of
// the session, so callers choose another port for data.
Result<std::vector<base::SocketAddress>> listenAddresses(
    std::string_view host_port, Clock::time_point until = Clock::time_point::max());

// The source of a rail's sockets. Without an address the system chooses.
struct RailSource {
  std::string name;
  std::optional<base::SocketAddress> address;
  std::string device;  // set if the rail was given by an interface's name
};
// `text` is an address of this machine, or the name of an interface.
Result<RailSource> sourceOf(const std::string& text, std::span<const LocalInterface> here);

// Backend::address() of an agent: where to dial, and the protection that it wants.
struct TcpAddress {
  std::vector<base::SocketAddress> addresses = {};
  PrivacyOffer offer = {};
};
base::Bytes encodeAddress(const TcpAddress& address);
Result<TcpAddress> decodeAddress(std::span<const std::byte> bytes);

// The addresses that a rail may dial. An address that is only on the network of another rail is
// left out, because it leads over the NIC of that rail.
std::vector<base::SocketAddress> ownOf(const RailSource& from,
                                       const std::vector<base::SocketAddress>& there,
                                       std::span<const RailSource> rails,
                                       std::span<const LocalInterface> here);

// The peer's addresses in the order to try from this source, nearest first. `turn` selects which of
// several equally near addresses comes first.
std::vector<base::SocketAddress> inOrder(const std::vector<base::SocketAddress>& there,
                                         const RailSource& from,
                                         std::span<const LocalInterface> here, bool same_host,
                                         std::size_t turn);

}  // namespace viaduct::tcp
