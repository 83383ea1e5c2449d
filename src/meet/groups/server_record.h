// The value of a group's key at a meeting place. Threads: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/net/crypto.h"
#include "meet/records.h"

namespace viaduct::meet::groups {

inline constexpr std::size_t kMaxAddresses = 64;  // of one server

// The elected member's server.
struct ServerRecord {
  static constexpr std::uint8_t kKind = 2;
  base::Key secret = {};  // random: only readers of the key can prove themselves to the server
  std::string name = {};  // the name of that member, for people
  std::vector<std::string> addresses = {};
};
auto fields(base::Is<ServerRecord> auto& r) {
  return base::list(r.secret, r.name, base::atMost(kMaxAddresses, r.addresses));
}

}  // namespace viaduct::meet::groups
