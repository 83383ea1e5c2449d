// UCX 1.13 crashes under the thread sanitizer as soon as it is opened: docs/gotchas/ucx.md.
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

// In SetUp(): skips a test over ucx where that cannot work.
#define VIADUCT_SKIP_IF_UCX_CRASHES(backend)                                                   \
  if (::viaduct::testing::kUcxCrashes && std::string_view(backend) == std::string_view("ucx")) \
  GTEST_SKIP() << "skipped: UCX crashes under the thread sanitizer"
