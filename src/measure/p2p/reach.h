// Explains why an agent cannot reach the other end, or cannot listen, for a user at two terminals.
// Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>

namespace viaduct::measure::p2p {

struct Where {
  std::string ip = {};
  std::uint16_t port = 0;
  std::string text() const;  // "10.0.0.1:5555", "[fd00::1]:5555"
};
// Returns the address by which the other end reaches `bound`. For a wildcard such as 0.0.0.0, that
// is an address of this host, if there is one.
Where seenByOthers(const Where& bound);

// `error` comes from Peer::ready(). The result tells apart: no listener, a filtered port, no route,
// an unknown address, and a wrong secret. It says what to check.
Error unreachable(const Error& error, const Where& where, bool with_secret);
// `error` comes from Agent::open(). The result tells apart: a port in use, an address of another
// host, and missing permission.
Error cannotListen(const Error& error, const Where& where);

}  // namespace viaduct::measure::p2p
