#include "meet/groups/serve.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/net/address.h"
#include "meet/place.h"

namespace viaduct::meet {
namespace {

// Whether the address belongs to this host, which is so if a socket can be bound to it.
bool isOwn(base::SocketAddress address) {
  address.setPort(0);
  const auto socket = base::streamSocket(address.family());
  return socket && ::bind(socket->get(), address.get(), address.size) == 0;
}

// Returns the addresses to listen on for `address`, or none if the name belongs to another host. A
// literal address or localhost is used unchanged. This host's own name means all interfaces,
// because other hosts may resolve it differently (Debian maps a host's own name to 127.0.1.1). So
// does a name that does not resolve yet, if a token or `insecure` is set. If neither is set,
// returns none for it.
Result<std::vector<std::string>> whereToListen(const std::string& address,
                                               const PlaceOptions& options) {
  VIADUCT_TRY(const auto where, base::parseHostPort(address));
  if (base::isLiteral(where) || where.host == "localhost") return std::vector{address};
  const auto known = base::resolve(where);
  if (known && std::none_of(known->begin(), known->end(), &isOwn))
    return std::vector<std::string>{};
  // An unresolved name may turn out to be another host's. So without a token, this host does not
  // listen, instead of an error that asks for a token.
  if (!known && options.token.empty() && !options.insecure) return std::vector<std::string>{};
  return everyInterface(where.port);
}

}  // namespace

std::vector<std::string> everyInterface(std::uint16_t port) {
  std::vector<std::string> out;
  for (const auto* any : {"0.0.0.0", "::"}) {
    const std::string text = base::hostPortText(any, port);
    const auto where = base::parseHostPort(text);
    const auto addresses = where ? base::resolve(*where) : where.error();
    // isOwn() is false for "::" if the host lacks IPv6.
    if (addresses && isOwn(addresses->front())) out.push_back(text);
  }
  return out;
}

std::optional<std::string> embeddedAddress(const PlaceOptions& options) {
  auto chosen = choosePlace(options.where);
  if (!chosen || chosen->entry->name != "embedded") return std::nullopt;
  return std::move(chosen->where);
}

Result<std::unique_ptr<EmbeddedServer>> serveIfHere(const PlaceOptions& options) {
  const auto address = embeddedAddress(options);
  if (!address) return std::unique_ptr<EmbeddedServer>();
  VIADUCT_TRY(auto listen, whereToListen(*address, options));
  if (listen.empty()) return std::unique_ptr<EmbeddedServer>();
  auto server = EmbeddedServer::start({.listen = std::move(listen),
                                       .token = options.token,
                                       .insecure = options.insecure,
                                       .detect = options.detect});
  if (server) return server;
  Error why = std::move(server).error();
  if (why.os_errno == EADDRNOTAVAIL || why.os_errno == EADDRINUSE)
    return std::unique_ptr<EmbeddedServer>();
  why.operation = fmt::format("serve meeting place {}: {}", options.where, why.operation);
  return why;
}

}  // namespace viaduct::meet
