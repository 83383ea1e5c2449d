#include "backends/tcp/tcp_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/net/lookup.h"

namespace viaduct::tcp {

namespace {

constexpr std::size_t kMaxAddresses = 64;

const sockaddr_in& v4(const TcpAddress& e) {
  return reinterpret_cast<const sockaddr_in&>(e.storage);
}
const sockaddr_in6& v6(const TcpAddress& e) {
  return reinterpret_cast<const sockaddr_in6&>(e.storage);
}

TcpAddress make(std::span<const std::byte> host, std::uint16_t port) {
  TcpAddress out;
  if (host.size() == sizeof(in_addr)) {
    auto& to = reinterpret_cast<sockaddr_in&>(out.storage);
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    std::memcpy(&to.sin_addr, host.data(), host.size());
    out.length = sizeof(to);
  } else {
    auto& to = reinterpret_cast<sockaddr_in6&>(out.storage);
    to.sin6_family = AF_INET6;
    to.sin6_port = htons(port);
    std::memcpy(&to.sin6_addr, host.data(), sizeof(to.sin6_addr));
    out.length = sizeof(to);
  }
  return out;
}

bool sameNet(const TcpAddress& a, const LocalInterface& on) {
  const auto x = a.host(), y = on.address.host(), mask = on.mask.host();
  if (x.empty() || x.size() != y.size() || x.size() != mask.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((x[i] & mask[i]) != (y[i] & mask[i])) return false;
  return true;
}

// Smaller is nearer. Loopback of a peer that is not known to be here is the last resort: it may be
// here all the same, and the hello finds out.
int distance(const TcpAddress& to, const RailSource& from, std::span<const LocalInterface> here,
             bool same_host) {
  if (from.address && from.address->family() != to.family()) return 4;
  if (from.address && from.address->loopback() && to.loopback()) return 0;
  if (to.loopback()) return same_host && !from.address ? 0 : 3;
  const bool near = std::any_of(here.begin(), here.end(), [&](const LocalInterface& on) {
    return (!from.address || on.address.sameHost(*from.address)) && sameNet(to, on);
  });
  return near ? 1 : 2;
}

}  // namespace

TcpAddress TcpAddress::of(const sockaddr* address, socklen_t length) {
  TcpAddress out;
  out.length = std::min<socklen_t>(length, sizeof(out.storage));
  std::memcpy(&out.storage, address, out.length);
  return out;
}

std::span<const std::byte> TcpAddress::host() const {
  if (family() == AF_INET) return std::as_bytes(std::span(&v4(*this).sin_addr, 1));
  if (family() == AF_INET6) return std::as_bytes(std::span(&v6(*this).sin6_addr, 1));
  return {};
}

std::uint16_t TcpAddress::port() const {
  return ntohs(family() == AF_INET ? v4(*this).sin_port : v6(*this).sin6_port);
}

TcpAddress TcpAddress::withPort(std::uint16_t port) const {
  TcpAddress out = *this;
  if (family() == AF_INET)
    reinterpret_cast<sockaddr_in&>(out.storage).sin_port = htons(port);
  else
    reinterpret_cast<sockaddr_in6&>(out.storage).sin6_port = htons(port);
  return out;
}

bool TcpAddress::loopback() const {
  if (family() == AF_INET) return host()[0] == std::byte{127};
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(*this).sin6_addr);
}

bool TcpAddress::wildcard() const {
  const auto bytes = host();
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

bool TcpAddress::linkLocal() const {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(*this).sin6_addr);
}

bool TcpAddress::sameHost(const TcpAddress& other) const {
  return family() == other.family() && std::ranges::equal(host(), other.host());
}

std::string TcpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> out{};
  if (host().empty() || inet_ntop(family(), host().data(), out.data(), out.size()) == nullptr)
    return "?";
  const std::string name = family() == AF_INET6 ? "[" + std::string(out.data()) + "]" : out.data();
  return name + ":" + std::to_string(port());
}

std::vector<LocalInterface> interfaces() {
  std::vector<LocalInterface> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_netmask == nullptr) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    LocalInterface one{at->ifa_name, TcpAddress::of(at->ifa_addr, length),
                       TcpAddress::of(at->ifa_netmask, length)};
    one.mask.storage.ss_family = static_cast<sa_family_t>(family);
    out.push_back(std::move(one));
  }
  ::freeifaddrs(list);
  return out;
}

Result<std::vector<TcpAddress>> listenAddresses(std::string_view host_port,
                                                Clock::time_point until) {
  std::string host(host_port.substr(0, host_port.rfind(':')));
  const bool v6 = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (v6) host = host.substr(1, host.size() - 2);
  std::vector<TcpAddress> out;
  if (const base::HostPort name{.host = host, .v6 = v6}; !host.empty() && !base::isLiteral(name)) {
    VIADUCT_TRY(const auto found, base::resolve(name, until));
    for (const auto& one : found) out.push_back(TcpAddress::of(one.get(), one.size));
    return out;
  }
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const char* const name = host.empty() || host == "*" ? nullptr : host.c_str();
  if (const int rc = ::getaddrinfo(name, "0", &hints, &list); rc != 0)
    return Error{.code = Code::kInvalid,
                 .operation = "listen on " + std::string(host_port),
                 .detail = ::gai_strerror(rc),
                 .remedy = "give an address of this machine"};
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next)
    if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
      out.push_back(TcpAddress::of(at->ai_addr, at->ai_addrlen));
  ::freeaddrinfo(list);
  return out;
}

Result<RailSource> sourceOf(const std::string& text, std::span<const LocalInterface> here) {
  std::array<std::byte, sizeof(in6_addr)> host{};
  if (::inet_pton(AF_INET, text.c_str(), host.data()) == 1)
    return RailSource{text, make(std::span(host).first(sizeof(in_addr)), 0), ""};
  if (::inet_pton(AF_INET6, text.c_str(), host.data()) == 1)
    return RailSource{text, make(host, 0), ""};
  const LocalInterface* found = nullptr;
  for (const LocalInterface& one : here) {
    if (one.name != text || one.address.linkLocal()) continue;
    if (found == nullptr || one.address.family() < found->address.family()) found = &one;
  }
  if (found == nullptr)
    return Error{.code = Code::kInvalid,
                 .operation = "rail " + text,
                 .detail = "neither an address nor an interface with one",
                 .remedy = "`ip -brief address` lists both"};
  return RailSource{text, found->address.withPort(0), text};
}

base::Bytes encodeAddresses(std::span<const TcpAddress> addresses) {
  base::Writer out;
  const auto listed = addresses.first(std::min(addresses.size(), kMaxAddresses));
  out.put(std::uint8_t{1}).put(static_cast<std::uint8_t>(listed.size()));
  for (const TcpAddress& one : listed) out.put(one.port()).sized(one.host());
  return out.take();
}

Result<std::vector<TcpAddress>> decodeAddresses(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  const auto count = in.get<std::uint8_t>();
  bool good = in.ok() && version == 1 && count <= kMaxAddresses;
  std::vector<TcpAddress> out;
  for (std::size_t i = 0; good && i < count; ++i) {
    const auto port = in.get<std::uint16_t>();
    const auto host = in.sized();
    good = in.ok() && (host.size() == sizeof(in_addr) || host.size() == sizeof(in6_addr));
    if (good) out.push_back(make(host, port));
  }
  if (good && in.finished()) return out;
  return Error{.code = Code::kProtocol,
               .operation = "tcp address",
               .detail = "the peer's list of addresses is malformed"};
}

std::vector<TcpAddress> ownOf(const RailSource& from, const std::vector<TcpAddress>& there,
                              std::span<const RailSource> rails,
                              std::span<const LocalInterface> here) {
  const auto on_network_of = [&](const RailSource& rail, const TcpAddress& to) {
    return rail.address && std::any_of(here.begin(), here.end(), [&](const LocalInterface& on) {
             return on.address.sameHost(*rail.address) && sameNet(to, on);
           });
  };
  std::vector<TcpAddress> out;
  for (const TcpAddress& to : there) {
    const bool others = std::any_of(rails.begin(), rails.end(), [&](const RailSource& rail) {
      return on_network_of(rail, to);
    });
    if (to.loopback() || !others || on_network_of(from, to)) out.push_back(to);
  }
  return out;
}

std::vector<TcpAddress> inOrder(const std::vector<TcpAddress>& there, const RailSource& from,
                                std::span<const LocalInterface> here, bool same_host,
                                std::size_t turn) {
  std::vector<TcpAddress> out;
  for (int want = 0; want < 4; ++want) {
    std::vector<TcpAddress> equal;
    for (const TcpAddress& to : there)
      if (distance(to, from, here, same_host) == want) equal.push_back(to);
    if (equal.empty()) continue;
    std::rotate(equal.begin(), equal.begin() + static_cast<std::ptrdiff_t>(turn % equal.size()),
                equal.end());
    out.insert(out.end(), equal.begin(), equal.end());
  }
  return out;
}

}  // namespace viaduct::tcp
