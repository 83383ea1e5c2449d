// Sizes and durations in text form. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace viaduct::base {

inline constexpr std::uint64_t kKiB = 1024, kMiB = kKiB << 10U, kGiB = kMiB << 10U;

// "4096", "4K" = "4KiB" = 4096, "1MB" = 10^6, "1.5GiB"; K M G T, in either case.
Result<std::uint64_t> parseSize(std::string_view text);
// The exact size in the unit, binary or decimal, that fits it best: "64MiB", "1MB", "1001".
// parseSize reads it.
std::string formatSize(std::uint64_t bytes);
// Like formatSize(), for display: "64 MiB", "1 MB", "1001 B". A size of more than seven digits is
// rounded, because no user has chosen it.
std::string showSize(std::uint64_t bytes);
// Rounded, in binary units: "1.0 MiB", "100 B". For amounts, such as free memory.
std::string roundedSize(std::uint64_t bytes);

// "2s", "500ms", "20us", "1.5s", "3m"; "0" needs no unit.
Result<std::chrono::nanoseconds> parseDuration(std::string_view text);
// Exact, in the largest unit up to seconds that divides it: "500ms", "180s". parseDuration reads
// it.
std::string formatDuration(std::chrono::nanoseconds time);

// A whole number without a unit.
Result<std::uint64_t> parseCount(std::string_view text);

}  // namespace viaduct::base
