#include "measure/p2p/reach.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/net/address.h"
#include "base/net/listener.h"

namespace viaduct::measure::p2p {
namespace {

struct Reason {
  int os_errno;
  const char* name;
  const char* look;
};

constexpr Reason kSilence{ETIMEDOUT, "no answer: a firewall drops the packets, or the host is down",
                          "open this port and the data ports in firewalls and security groups; "
                          "test with nc -vz HOST PORT"};
constexpr std::array kReach{
    Reason{ECONNREFUSED, "no process listens there",
           "start the target with this port; ss -ltn on its host lists the open ports"},
    kSilence,
    Reason{EHOSTUNREACH, "no route",
           "check the address, the host and the links: ip route get ADDRESS, ping ADDRESS"},
    Reason{ENETUNREACH, "no route", "check this host's routes: ip route get ADDRESS"},
    Reason{EADDRNOTAVAIL, "the address is not reachable", "check the spelling of the address"},
    Reason{EINVAL, "the address is not reachable",
           "check the spelling of the address; a link-local address needs %INTERFACE"},
    Reason{EACCES, "this host forbids the connection", "check this host's firewall and sandbox"},
    Reason{EPERM, "this host forbids the connection", "check this host's firewall and sandbox"},
};

constexpr std::array kListen{
    Reason{EADDRINUSE, "the port is in use",
           "stop the other target (ss -ltnp lists it), or choose another --port"},
    Reason{EADDRNOTAVAIL, "this host does not have the address",
           "give --ip an address of the target's host; ip -brief address lists them"},
    Reason{EACCES, "ordinary users may not open this port", "choose a --port of 1024 or more"},
};

template <std::size_t N>
const Reason* find(const std::array<Reason, N>& all, int os_errno) {
  for (const Reason& reason : all)
    if (reason.os_errno == os_errno) return &reason;
  return nullptr;
}

Error told(const Error& error, std::string operation, const char* name, std::string look) {
  Error out = error;
  out.operation = std::move(operation);
  out.detail = fmt::format("{} ({})", name, error.detail);
  out.cause.clear();
  out.peer.clear();
  out.remedy = std::move(look);
  return out;
}

}  // namespace

std::string Where::text() const { return base::hostPortText(ip, port); }

Where seenByOthers(const Where& bound) {
  const auto where = base::parseHostPort(bound.text());
  if (!where || !base::isLiteral(*where)) return bound;
  const auto addresses = base::resolve(*where);
  if (!addresses || addresses->empty() || !addresses->front().isAny()) return bound;
  const auto reached = base::reachableAt(addresses->front());
  if (!reached || reached->empty()) return bound;
  const auto first = base::parseHostPort(reached->front());
  return first ? Where{first->host, bound.port} : bound;
}

Error unreachable(const Error& error, const Where& where, bool with_secret) {
  const std::string operation = "connect to " + where.text();
  if (error.code == Code::kDenied && error.os_errno == 0)
    return told(error, operation, "wrong secret",
                with_secret ? "give both ends the same --secret; the target may have none"
                            : "give the --secret of the target here, too");
  if (const Reason* reason = find(kReach, error.os_errno))
    return told(error, operation, reason->name, reason->look);
  // The agent's first attempt to connect has not ended, so the other end is silent.
  if (error.detail.find("not connected yet") != std::string::npos)
    return told(error, operation, kSilence.name, kSilence.look);
  if (error.detail.find("resolve") != std::string::npos)
    return told(error, operation, "the name does not resolve",
                "give an IP address, or check /etc/resolv.conf and getent hosts NAME");
  return told(error, operation, "the listener is not a `viaduct p2p` target",
              "check on its host which process listens: ss -ltnp");
}

Error cannotListen(const Error& error, const Where& where) {
  const std::string operation = "listen on " + where.text();
  if (const Reason* reason = find(kListen, error.os_errno))
    return told(error, operation, reason->name, reason->look);
  Error out = error;
  out.operation = operation;
  return out;
}

}  // namespace viaduct::measure::p2p
