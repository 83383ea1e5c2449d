// Why the other end cannot be reached, or this one cannot listen, in the words of somebody who has
// two hosts in front of him. Threads: pure functions.
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

// `error`: of Peer::ready(). Says which it is: nobody listening, filtered, no route, no such
// address, wrong secret; and what to look at.
Error unreachable(const Error& error, const Where& where, bool with_secret);
// `error`: of Agent::open(). A port in use, an address that is not this host's, no permission.
Error cannotListen(const Error& error, const Where& where);

}  // namespace viaduct::measure::p2p
