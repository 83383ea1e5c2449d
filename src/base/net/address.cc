#include "base/net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace viaduct::base {
namespace {

constexpr std::size_t kNameAt = offsetof(sockaddr_un, sun_path) + 1;  // after the zero byte
constexpr std::size_t kMaxHost = 253;                                 // of a DNS name

Error malformed(std::string_view text, std::string what) {
  return {.operation = "parse address",
          .detail = fmt::format("\"{}\": {}", text, what),
          .remedy = "write host:port, 1.2.3.4:port or [v6]:port"};
}

std::string shown(char c) {
  return c >= ' ' && c <= '~' ? fmt::format("'{}'", c)
                              : fmt::format("byte 0x{:02x}", static_cast<unsigned char>(c));
}

bool letterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The position of the first character that `allowed` rejects; npos: it rejects none.
template <class Allowed>
std::size_t firstNot(std::string_view text, Allowed allowed) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!allowed(text[i])) return i;
  return std::string_view::npos;
}

// An endpoint within a text. Errors show the whole text, and positions in it.
struct Part {
  std::string_view text;
  std::size_t begin, end;
  std::optional<std::uint16_t> default_port;

  std::string_view from(std::size_t at) const { return text.substr(at, end - at); }
  Error wrong(std::size_t at, std::string_view why) const {
    return malformed(text, fmt::format("{} at position {} {}", shown(text[at]), at + 1, why));
  }
};

// Parses the port after the ':' at `colon`. If the text ends there, returns the default port.
Result<std::uint16_t> parsePort(const Part& part, std::size_t colon) {
  if (colon == part.end && part.default_port) return *part.default_port;
  const std::string_view digits = part.from(colon + 1);
  if (digits.empty()) return malformed(part.text, "the port after the last ':' is missing");
  const std::size_t wrong = firstNot(digits, [](char c) { return c >= '0' && c <= '9'; });
  if (wrong != std::string_view::npos)
    return part.wrong(colon + 1 + wrong, "is not a digit of a port");
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (parsed.ec != std::errc()) return malformed(part.text, "the port is above 65535");
  return port;
}

Result<HostPort> parseBracketed(const Part& part) {
  const std::size_t close = part.text.substr(0, part.end).find(']', part.begin);
  if (close == std::string_view::npos) return malformed(part.text, "']' is missing");
  const std::string_view host = part.text.substr(part.begin + 1, close - part.begin - 1);
  // An interface's name follows after '%'.
  const std::string_view number = host.substr(0, host.find('%'));
  const std::size_t wrong = firstNot(number, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
           c == '.';
  });
  if (wrong != std::string_view::npos)
    return part.wrong(part.begin + 1 + wrong, "does not belong in an IPv6 address");
  in6_addr parsed;
  if (::inet_pton(AF_INET6, std::string(number).c_str(), &parsed) != 1)
    return malformed(part.text, "the text in brackets is not an IPv6 address");
  const std::size_t colon = close + 1;
  if (colon < part.end ? part.text[colon] != ':' : !part.default_port)
    return malformed(part.text,
                     fmt::format("':' and a port have to follow ']' at position {}", colon));
  VIADUCT_TRY(const std::uint16_t port, parsePort(part, colon));
  return HostPort{.host = std::string(host), .port = port, .v6 = true};
}

Result<HostPort> parsePart(const Part& part) {
  if (part.begin == part.end) return malformed(part.text, "it is empty");
  if (part.text[part.begin] == '[') return parseBracketed(part);
  const std::string_view text = part.from(part.begin);
  std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    if (!part.default_port) return malformed(part.text, "':' and a port are missing");
    colon = text.size();
  }
  const std::string_view host = text.substr(0, colon);
  if (host.empty()) return malformed(part.text, "the host before ':' is missing");
  if (const std::size_t other = host.find(':'); other != std::string_view::npos)
    return part.wrong(part.begin + other, "is one too many: write an IPv6 address in brackets");
  if (host.size() > kMaxHost) return malformed(part.text, "the host name is too long");
  const std::size_t wrong =
      firstNot(host, [](char c) { return letterOrDigit(c) || c == '.' || c == '-' || c == '_'; });
  if (wrong != std::string_view::npos && host != "*")
    return part.wrong(part.begin + wrong, "does not belong in a host name");
  VIADUCT_TRY(const std::uint16_t port, parsePort(part, part.begin + colon));
  return HostPort{.host = std::string(host), .port = port};
}

bool isV4(const std::string& host) {
  in_addr parsed;
  return ::inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

Error resolveError(const HostPort& where, int rc) {
  Error why{.code = Code::kNotFound,
            .operation = "resolve",
            .detail = fmt::format("{}: {}", where.host, ::gai_strerror(rc))};
  if (rc == EAI_SYSTEM) why.os_errno = errno;
  if (rc == EAI_AGAIN) {
    why.cause = "no name server answered";
    why.remedy = "check /etc/resolv.conf and the network, or use a numeric IP address";
  } else {
    why.cause = "the name is misspelt, or unknown to this host's name servers";
    why.remedy = "check it with getent hosts, or use a numeric IP address";
  }
  return why;
}

}  // namespace

std::string hostPortText(std::string_view host, std::uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return fmt::format("{}{}{}:{}", brackets ? "[" : "", host, brackets ? "]" : "", port);
}

Result<HostPort> parseHostPort(std::string_view text) {
  return parsePart({.text = text, .begin = 0, .end = text.size(), .default_port = {}});
}

Result<HostPort> parseHostPort(std::string_view text, std::size_t begin, std::size_t end,
                               std::uint16_t default_port) {
  return parsePart({.text = text, .begin = begin, .end = end, .default_port = default_port});
}

std::uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  if (family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  return 0;
}

void SocketAddress::setPort(std::uint16_t port) {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&storage)->sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = htons(port);
}

SocketAddress SocketAddress::withPort(std::uint16_t port) const {
  SocketAddress out = *this;
  out.setPort(port);
  return out;
}

std::span<const std::byte> SocketAddress::host() const {
  if (family() == AF_INET)
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr, 1));
  if (family() != AF_INET6) return {};
  return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr, 1));
}

bool SocketAddress::sameHost(const SocketAddress& other) const {
  return family() == other.family() && std::ranges::equal(host(), other.host());
}

bool SocketAddress::isAny() const {
  const auto bytes = host();
  return !bytes.empty() &&
         std::all_of(bytes.begin(), bytes.end(), [](std::byte one) { return one == std::byte{0}; });
}

bool SocketAddress::isLoopback() const {
  if (family() == AF_INET) return host()[0] == std::byte{127};
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

bool SocketAddress::isLinkLocal() const {
  return family() == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

std::string SocketAddress::unixName() const {
  if (family() != AF_UNIX || size <= kNameAt) return {};
  return {reinterpret_cast<const char*>(&storage) + kNameAt, size - kNameAt};
}

std::string SocketAddress::text() const {
  if (family() == AF_UNIX) return "unix:@" + unixName();
  std::array<char, NI_MAXHOST> host{};
  if (::getnameinfo(get(), size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "?";
  return hostPortText(host.data(), port());
}

SocketAddress hostAddress(std::span<const std::byte> host, std::uint16_t port) {
  const bool v4 = host.size() == sizeof(in_addr);
  SocketAddress out;
  out.size = v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  out.storage.ss_family = v4 ? AF_INET : AF_INET6;
  void* const to = v4 ? static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&out.storage)->sin_addr)
                      : &reinterpret_cast<sockaddr_in6*>(&out.storage)->sin6_addr;
  std::memcpy(to, host.data(), host.size());
  out.setPort(port);
  return out;
}

Result<SocketAddress> unixAddress(std::string_view name) {
  SocketAddress out;
  if (name.empty() || kNameAt + name.size() > sizeof(sockaddr_un))
    return Error{.operation = "parse address",
                 .detail = fmt::format("\"unix:@{}\": an abstract name has 1 to {} bytes", name,
                                       sizeof(sockaddr_un) - kNameAt)};
  out.storage.ss_family = AF_UNIX;
  std::memcpy(reinterpret_cast<char*>(&out.storage) + kNameAt, name.data(), name.size());
  out.size = static_cast<socklen_t>(kNameAt + name.size());
  return out;
}

Result<SocketAddress> localAddress(int socket) {
  SocketAddress out{.size = sizeof(sockaddr_storage)};
  if (::getsockname(socket, out.get(), &out.size) != 0)
    return systemError(Code::kDevice, "getsockname", errno);
  return out;
}

Result<SocketAddress> remoteAddress(int socket) {
  SocketAddress out{.size = sizeof(sockaddr_storage)};
  if (::getpeername(socket, out.get(), &out.size) != 0)
    return systemError(Code::kPeerLost, "getpeername", errno);
  return out;
}

bool isLiteral(const HostPort& where) { return where.v6 || where.host == "*" || isV4(where.host); }

Result<std::vector<SocketAddress>> resolve(const HostPort& where) {
  addrinfo hints{};
  hints.ai_family = where.v6 ? AF_INET6 : isLiteral(where) ? AF_INET : AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = isLiteral(where) ? AI_NUMERICHOST : 0;
  addrinfo* found = nullptr;
  const std::string host = where.host == "*" ? "0.0.0.0" : where.host;
  if (const int rc = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); rc != 0)
    return resolveError(where, rc);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<SocketAddress> out;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress& address = out.emplace_back();
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.size = one->ai_addrlen;
    address.setPort(where.port);
  }
  return out;
}

Result<Fd> streamSocket(int family) {
  Fd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) return fd;
  const int why = errno;
  Error error = systemError(why == EMFILE || why == ENFILE ? Code::kExhausted : Code::kUnsupported,
                            "socket", why);
  if (error.code == Code::kExhausted) error.remedy = "raise the limit of open files (ulimit -n)";
  if (why == EAFNOSUPPORT) error.cause = "this system has no IPv6";
  return error;
}

Status tuneSocket(int socket) {
  VIADUCT_TRY(const SocketAddress local, localAddress(socket));
  if (local.family() == AF_UNIX) return Ok{};
  const int on = 1;
  if (::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0)
    return systemError(Code::kDevice, "setsockopt(TCP_NODELAY)", errno);
  // Keepalive is a second safeguard beside the heartbeats, for a socket whose agent is busy
  // elsewhere.
  if (::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0)
    return systemError(Code::kDevice, "setsockopt(SO_KEEPALIVE)", errno);
  return Ok{};
}

}  // namespace viaduct::base
