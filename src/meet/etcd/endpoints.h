// Parses the endpoints of an etcd, as users write them. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::meet::etcd {

inline constexpr std::uint16_t kDefaultPort = 2379;

struct EtcdEndpoint {
  bool tls = false;
  std::string host = {};  // without brackets; a name need not resolve yet
  std::uint16_t port = kDefaultPort;

  std::string url() const;  // "http://etcd.default:2379", "https://[fd00::1]:2379"
  friend bool operator==(const EtcdEndpoint&, const EtcdEndpoint&) = default;
};

// "http://host:port", "https://host", "host:port", "host", "[v6]:port", each with or without a
// final slash, joined by commas. An error has the wrong character and its position in `text`,
// counted from 1.
Result<std::vector<EtcdEndpoint>> parseEndpoints(std::string_view text);

}  // namespace viaduct::meet::etcd
