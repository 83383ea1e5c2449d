// Which driver a test runs over: the fake one, or NVIDIA's. Threads: any.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace viaduct::testing {

inline constexpr std::string_view kRealDriver = "libcuda.so.1";  // its name for the loader

// Why no test can run over the driver of that library here; empty: one can.
inline std::string whyNoGpu(std::string_view library) {
  if (library != kRealDriver || std::filesystem::exists("/dev/nvidia0")) return {};
  return "no /dev/nvidia0: this host has no NVIDIA GPU";
}

}  // namespace viaduct::testing
