// The driver that a test runs over: the fake one, or NVIDIA's. The build compiles such a test for
// each. Threads: any.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace viaduct::testing {

// The library's file, or its name for the loader.
inline const std::string kDriverUnderTest = VIADUCT_CUDA_UNDER_TEST;
inline constexpr bool kDriverIsFake = std::string_view(VIADUCT_CUDA_UNDER_TEST) != "libcuda.so.1";

// Skips a test over NVIDIA's driver where there is no GPU.
#define VIADUCT_SKIP_WITHOUT_A_GPU()                                                  \
  if (!::viaduct::testing::kDriverIsFake && !std::filesystem::exists("/dev/nvidia0")) \
  GTEST_SKIP() << "no /dev/nvidia0: this host has no NVIDIA GPU"

// Skips a test of calls that fail on command.
#define VIADUCT_SKIP_OVER_A_REAL_DRIVER() \
  if (!::viaduct::testing::kDriverIsFake) GTEST_SKIP() << "only the fake driver fails on command"

}  // namespace viaduct::testing
