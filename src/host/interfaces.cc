#include "host/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <array>
#include <bit>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/lists.h"
#include "base/text.h"

namespace viaduct::host {
namespace {

// The bytes of an IPv4 or IPv6 address; of others, none.
std::span<const std::byte> bytesOf(const sockaddr* address) {
  if (address != nullptr && address->sa_family == AF_INET)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 1));
  if (address != nullptr && address->sa_family == AF_INET6)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 1));
  return {};
}

std::string textOf(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto bytes = bytesOf(address);
  if (bytes.empty()) return {};
  return ::inet_ntop(address->sa_family, bytes.data(), text.data(), text.size()) == nullptr
             ? ""
             : text.data();
}

}  // namespace

std::vector<InterfaceAddress> interfaceAddresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(raw, &::freeifaddrs);
  std::vector<InterfaceAddress> out;
  for (const ifaddrs* at = all.get(); at != nullptr; at = at->ifa_next) {
    out.push_back({.interface = at->ifa_name,
                   .address = textOf(at->ifa_addr),
                   .up = (at->ifa_flags & IFF_UP) != 0,
                   .running = (at->ifa_flags & IFF_RUNNING) != 0});
    for (const std::byte byte : bytesOf(at->ifa_netmask))
      out.back().prefix += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(byte)));
  }
  return out;
}

std::vector<Interface> interfaces(const Tree& tree) {
  std::vector<Interface> out;
  for (InterfaceAddress& one : interfaceAddresses()) {
    Interface* known = base::firstWith(out, &Interface::name, one.interface);
    if (known == nullptr)
      known = &out.emplace_back(Interface{
          .name = one.interface, .up = one.up, .mbit_per_s = linkRate(tree, one.interface)});
    if (!one.address.empty()) known->addresses.push_back(std::move(one.address));
  }
  return out;
}

std::string interfaceFile(const std::string& interface, std::string_view name) {
  return fmt::format("/sys/class/net/{}/{}", interface, name);
}

std::uint64_t linkRate(const Tree& tree, const std::string& interface) {
  // The kernel writes "-1" for an unknown speed, which number() does not accept.
  return tree.has(interfaceFile(interface, "device"))
             ? tree.number(interfaceFile(interface, "speed")).value_or(0)
             : 0;
}

}  // namespace viaduct::host
