// What a link carries when only the user knows: behind a traffic shaper, or in the cloud. Threads:
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

// "eth0=500Mbit", "rail0=100G" (bits), "eth0=12.5GB" (10^9 bytes a second). The value of
// --link-rate.
Result<LinkRate> parseLinkRate(std::string_view text);

}  // namespace viaduct::measure
