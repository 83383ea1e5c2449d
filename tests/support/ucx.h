// UCX over TCP can abort the process that uses it, and does in about one of twenty runs of these
// tests: docs/gotchas/ucx.md. So they run where they are asked for. Threads: any.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace viaduct::testing {

inline bool mayAbort(std::string_view backend) {
  return backend == "ucx" && std::getenv("VIADUCT_TEST_UCX") == nullptr;
}

}  // namespace viaduct::testing

// In SetUp(): skips a test over a backend that may abort it.
#define VIADUCT_SKIP_IF_IT_MAY_ABORT(backend) \
  if (::viaduct::testing::mayAbort(backend))  \
  GTEST_SKIP() << "skipped: UCX over TCP may abort a process; VIADUCT_TEST_UCX=1 runs it"
