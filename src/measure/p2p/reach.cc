#include "measure/p2p/reach.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/net/address.h"

namespace viaduct::measure::p2p {
namespace {

struct Reason {
  int os_errno;
  const char* name;
  const char* look;
};

constexpr Reason kSilence{
    ETIMEDOUT, "nothing answers: filtered, or the host is down",
    "firewalls and security groups between the two hosts have to let the port through, and the "
    "data's own port behind it; nc -vz HOST PORT tries it by hand"};
constexpr std::array kReach{
    Reason{ECONNREFUSED, "nobody listens there",
           "is the target running, and with this port? On its host: ss -ltn"},
    kSilence,
    Reason{EHOSTUNREACH, "no route",
           "the address may be wrong, or the host or a link is down: ip route get ADDRESS, ping"},
    Reason{ENETUNREACH, "no route",
           "this host has no network that leads there: ip route get ADDRESS"},
    Reason{EADDRNOTAVAIL, "no address that can be reached", "is the address written right?"},
    Reason{EINVAL, "no address that can be reached",
           "is the address written right? A link-local one needs %INTERFACE"},
    Reason{EACCES, "forbidden by this host", "its own firewall or sandbox refuses connections"},
    Reason{EPERM, "forbidden by this host", "its own firewall or sandbox refuses connections"},
};

constexpr std::array kListen{
    Reason{EADDRINUSE, "the port is in use",
           "another target may be running already: ss -ltnp; or take another --port"},
    Reason{EADDRNOTAVAIL, "the address is not one of this host's",
           "the target gives its own address, not the initiator's: ip -brief address"},
    Reason{EACCES, "this port is not for everyone", "take a --port of 1024 or more"},
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

Error unreachable(const Error& error, const Where& where, bool with_secret) {
  const std::string operation = "connect to " + where.text();
  if (error.code == Code::kDenied && error.os_errno == 0)
    return told(error, operation, "wrong secret",
                with_secret ? "give both ends the same --secret; the target may have none"
                            : "the target was started with a --secret: give the same one here");
  if (const Reason* reason = find(kReach, error.os_errno))
    return told(error, operation, reason->name, reason->look);
  // Still at the first try.
  if (error.detail.find("not connected yet") != std::string::npos)
    return told(error, operation, kSilence.name, kSilence.look);
  if (error.detail.find("resolve") != std::string::npos)
    return told(error, operation, "the name is not known",
                "give an address, or look at /etc/resolv.conf and getent hosts NAME");
  return told(error, operation, "it does not answer as a `viaduct p2p` target does",
              "is something else listening on that port? On its host: ss -ltnp");
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
