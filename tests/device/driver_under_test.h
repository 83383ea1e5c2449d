// The driver that a test runs over: the fake one, or NVIDIA's. The build compiles such a test for
// each. Threads: any.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "device/real_gpu.h"
#include "support/paths.h"

namespace viaduct::testing {

// The library's file, or its name for the loader.
inline const std::string kDriverUnderTest = kCudaUnderTest;
inline const bool kDriverIsFake = kCudaUnderTest != kRealDriver;

#define VIADUCT_SKIP_WITHOUT_A_GPU()                                                       \
  if (const auto why = ::viaduct::testing::whyNoGpu(::viaduct::testing::kDriverUnderTest); \
      !why.empty())                                                                        \
  GTEST_SKIP() << why

// Skips a test whose calls have to fail on command, unless the driver is the fake one.
#define VIADUCT_SKIP_OVER_A_REAL_DRIVER() \
  if (!::viaduct::testing::kDriverIsFake) GTEST_SKIP() << "only the fake driver fails on command"

}  // namespace viaduct::testing
