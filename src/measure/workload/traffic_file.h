// A file that says which member of a run sends how many bytes to which. docs/patterns.md defines
// its format. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::measure {

// The most members of a matrix, so that each member can send the sizes to all others.
inline constexpr std::uint32_t kMostMatrixMembers = 128;

// `bytes[i * members + j]` is the number of bytes that member i sends to member j.
struct TrafficMatrix {
  std::uint32_t members = 0;
  std::vector<std::uint64_t> bytes = {};
  friend bool operator==(const TrafficMatrix&, const TrafficMatrix&) = default;
};

Result<TrafficMatrix> readTraffic(const std::string& file);
// `name` names the file in errors, which have the line and column.
Result<TrafficMatrix> parseTraffic(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
