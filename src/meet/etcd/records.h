// The values of Viaduct's keys in etcd. Any program with access may have written a key, so
// malformed bytes decode to nothing. Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/crypto.h"

namespace viaduct::meet::etcd {

// The value of every key: the process that owns it, and bytes for the key's purpose.
struct Entry {
  std::string identity = {};  // the owner's, see identity.h; empty: unknown
  std::string value = {};
};
std::string encode(const Entry& entry);
std::optional<Entry> decodeEntry(std::string_view bytes);

inline constexpr std::size_t kMaxAddresses = 64;  // of one server
// The value of a group's key: the addresses and the secret of the elected member's server.
struct ServerRecord {
  base::Key secret = {};  // random: only readers of the key can prove themselves to the server
  std::string name = {};  // the name of that member, for people
  std::vector<std::string> addresses = {};
};
std::string encode(const ServerRecord& record);
std::optional<ServerRecord> decodeServer(std::string_view bytes);

// Escapes a name, "a/b" as "a%2fb", because it is one part of a key.
std::string escaped(std::string_view name);

}  // namespace viaduct::meet::etcd
