// The rate of a link if only the user knows it: behind a traffic shaper, or in a cloud. Threads:
// pure functions and values.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace viaduct::measure {

struct LinkRate {
  std::string device = {};
  std::uint64_t bytes_per_s = 0;
  friend bool operator==(const LinkRate&, const LinkRate&) = default;
};

// Parses a value of --link-rate: "eth0=500Mbit", "rail0=100G" (bits), "eth0=12.5GB" (10^9 bytes a
// second).
Result<LinkRate> parseLinkRate(std::string_view text);

}  // namespace viaduct::measure
