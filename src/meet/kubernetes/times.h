// Points in time as the API server writes them. Threads: pure functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::meet::kubernetes {

using WallTime = std::chrono::sys_time<std::chrono::microseconds>;

// A MicroTime of Kubernetes: "2026-11-29T06:03:25.000001Z".
std::string microTime(WallTime when);
// Reads a MicroTime with any number of decimals of a second, or none. Nothing for other texts.
std::optional<WallTime> parseMicroTime(std::string_view text);
// Reads the header Date: "Sun, 29 Nov 2026 06:03:25 GMT".
std::optional<WallTime> parseHttpDate(std::string_view text);

}  // namespace viaduct::meet::kubernetes
