// The addresses of this machine and of peers: listed, sent, chosen. Threads: plain values; any.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// "host:port" to bind to; the host by number or name. The port stands for the session alone.
Result<std::vector<base::SocketAddress>> listenAddresses(
    std::string_view host_port, Clock::time_point until = Clock::time_point::max());

// Where a rail's sockets come from. No address: wherever the system likes.
struct RailSource {
  std::string name;
  std::optional<base::SocketAddress> address;
  std::string device;  // given by the interface's name
};
// An address of this machine, or an interface's name.
Result<RailSource> sourceOf(const std::string& text, std::span<const LocalInterface> here);

base::Bytes encodeAddresses(std::span<const base::SocketAddress> addresses);
Result<std::vector<base::SocketAddress>> decodeAddresses(std::span<const std::byte> bytes);

// Those that a rail reaches by itself: an address on another rail's network leads over that one.
std::vector<base::SocketAddress> ownOf(const RailSource& from,
                                       const std::vector<base::SocketAddress>& there,
                                       std::span<const RailSource> rails,
                                       std::span<const LocalInterface> here);

// The peer's addresses in the order to try from this source, the `turn`th of those that are equally
// near first.
std::vector<base::SocketAddress> inOrder(const std::vector<base::SocketAddress>& there,
                                         const RailSource& from,
                                         std::span<const LocalInterface> here, bool same_host,
                                         std::size_t turn);

}  // namespace viaduct::tcp
