#include "backends/tcp/tcp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/net/lookup.h"

namespace viaduct::tcp {

namespace {

constexpr std::size_t kMaxAddresses = 64;
constexpr std::uint8_t kAddressVersion = 2;

bool sameNet(const base::SocketAddress& a, const LocalInterface& on) {
  const auto x = a.host(), y = on.address.host(), mask = on.mask.host();
  if (x.empty() || x.size() != y.size() || x.size() != mask.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((x[i] & mask[i]) != (y[i] & mask[i])) return false;
  return true;
}

// The distance of an address; smaller is nearer, and 4 is not tried. A peer's loopback address
// comes last unless the peer is known to be on this host. The peer may be here all the same, and
// its welcome proves it.
int distance(const base::SocketAddress& to, const RailSource& from,
             std::span<const LocalInterface> here, bool same_host) {
  if (from.address && from.address->family() != to.family()) return 4;
  if (from.address && from.address->isLoopback() && to.isLoopback()) return 0;
  if (to.isLoopback()) return same_host && !from.address ? 0 : 3;
  const bool near = std::any_of(here.begin(), here.end(), [&](const LocalInterface& on) {
    return (!from.address || on.address.sameHost(*from.address)) && sameNet(to, on);
  });
  return near ? 1 : 2;
}

}  // namespace

std::vector<LocalInterface> interfaces() {
  std::vector<LocalInterface> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_netmask == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    LocalInterface one{.name = at->ifa_name};
    for (auto [to, from] :
         {std::pair(&one.address, at->ifa_addr), std::pair(&one.mask, at->ifa_netmask)}) {
      to->size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      std::memcpy(&to->storage, from, to->size);
      to->storage.ss_family = static_cast<sa_family_t>(family);
    }
    out.push_back(std::move(one));
  }
  ::freeifaddrs(list);
  return out;
}

Result<std::vector<base::SocketAddress>> listenAddresses(std::string_view host_port,
                                                         Clock::time_point until) {
  VIADUCT_TRY(const base::HostPort where, base::parseHostPort(host_port));
  VIADUCT_TRY(auto out, base::resolve(where, until));
  if (where.host == "*") out.push_back(base::hostAddress(std::array<std::byte, 16>{}, 0));
  return out;
}

Result<RailSource> sourceOf(const std::string& text, std::span<const LocalInterface> here) {
  std::array<std::byte, sizeof(in6_addr)> host{};
  if (::inet_pton(AF_INET, text.c_str(), host.data()) == 1)
    return RailSource{text, base::hostAddress(std::span(host).first(sizeof(in_addr)), 0), ""};
  if (::inet_pton(AF_INET6, text.c_str(), host.data()) == 1)
    return RailSource{text, base::hostAddress(host, 0), ""};
  const LocalInterface* found = nullptr;
  for (const LocalInterface& one : here) {
    if (one.name != text || one.address.isLinkLocal()) continue;
    if (found == nullptr || one.address.family() < found->address.family()) found = &one;
  }
  if (found == nullptr)
    return Error{.code = Code::kInvalid,
                 .operation = "rail " + text,
                 .detail = "neither an address nor an interface with one",
                 .remedy = "`ip -brief address` lists both"};
  return RailSource{text, found->address.withPort(0), text};
}

base::Bytes encodeAddress(const TcpAddress& address) {
  base::Writer out;
  const auto listed =
      std::span(address.addresses).first(std::min(address.addresses.size(), kMaxAddresses));
  out.put(kAddressVersion).put(static_cast<std::uint8_t>(listed.size()));
  for (const base::SocketAddress& one : listed) out.put(one.port()).sized(one.host());
  out.put(static_cast<std::uint8_t>(address.offer.wish));
  out.put(static_cast<std::uint8_t>(address.offer.fast_aes ? 1 : 0));
  return out.take();
}

Result<TcpAddress> decodeAddress(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  const auto count = in.get<std::uint8_t>();
  bool good = in.ok() && version == kAddressVersion && count <= kMaxAddresses;
  TcpAddress out;
  for (std::size_t i = 0; good && i < count; ++i) {
    const auto port = in.get<std::uint16_t>();
    const auto host = in.sized();
    good = in.ok() && (host.size() == sizeof(in_addr) || host.size() == sizeof(in6_addr));
    if (good) out.addresses.push_back(base::hostAddress(host, port));
  }
  const auto wish = in.get<std::uint8_t>(), fast_aes = in.get<std::uint8_t>();
  good = good && wish <= static_cast<std::uint8_t>(Privacy::kRequired) && fast_aes <= 1;
  out.offer = {.wish = static_cast<Privacy>(wish), .fast_aes = fast_aes == 1};
  if (good && in.finished()) return out;
  return Error{.code = Code::kProtocol,
               .operation = "tcp address",
               .detail = "the peer's list of addresses is malformed, or of another release",
               .remedy = "install the same release at both ends"};
}

std::vector<base::SocketAddress> ownOf(const RailSource& from,
                                       const std::vector<base::SocketAddress>& there,
                                       std::span<const RailSource> rails,
                                       std::span<const LocalInterface> here) {
  const auto on_network_of = [&](const RailSource& rail, const base::SocketAddress& to) {
    return rail.address && std::any_of(here.begin(), here.end(), [&](const LocalInterface& on) {
             return on.address.sameHost(*rail.address) && sameNet(to, on);
           });
  };
  std::vector<base::SocketAddress> out;
  for (const base::SocketAddress& to : there) {
    const bool others = std::any_of(rails.begin(), rails.end(), [&](const RailSource& rail) {
      return on_network_of(rail, to);
    });
    if (to.isLoopback() || !others || on_network_of(from, to)) out.push_back(to);
  }
  return out;
}

std::vector<base::SocketAddress> inOrder(const std::vector<base::SocketAddress>& there,
                                         const RailSource& from,
                                         std::span<const LocalInterface> here, bool same_host,
                                         std::size_t turn) {
  std::vector<base::SocketAddress> out;
  for (int want = 0; want < 4; ++want) {
    std::vector<base::SocketAddress> equal;
    for (const base::SocketAddress& to : there)
      if (distance(to, from, here, same_host) == want) equal.push_back(to);
    if (equal.empty()) continue;
    std::rotate(equal.begin(), equal.begin() + static_cast<std::ptrdiff_t>(turn % equal.size()),
                equal.end());
    out.insert(out.end(), equal.begin(), equal.end());
  }
  return out;
}

}  // namespace viaduct::tcp
