// Dates with a time of day, as tables write them. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::measure {

// Reads "2023-11-16 18:17:03", with up to 9 digits of a fraction, and with a zone: Z, +02, +0200 or
// +02:00. A text without a zone is UTC. Returns the microseconds since 1970, or nothing for
// other texts and for dates before 1970.
std::optional<std::uint64_t> microsecondsIn(std::string_view text);
// Writes "2023-11-16 18:17:03.979960".
std::string dateTimeText(std::uint64_t microseconds);

}  // namespace viaduct::measure
