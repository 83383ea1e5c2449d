// Skips tests with UCX 1.13 under TSan, which crashes when it is opened: docs/gotchas/ucx.md.
// Threads: any.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace viaduct::testing {

#ifdef __SANITIZE_THREAD__
inline constexpr bool kUcxCrashes = true;
#else
inline constexpr bool kUcxCrashes = false;
#endif

}  // namespace viaduct::testing

// For SetUp(): skips a test of the backend ucx if UCX would crash.
#define VIADUCT_SKIP_IF_UCX_CRASHES(backend)                                                   \
  if (::viaduct::testing::kUcxCrashes && std::string_view(backend) == std::string_view("ucx")) \
  GTEST_SKIP() << "skipped: UCX crashes under the thread sanitizer"
