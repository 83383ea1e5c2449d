#include "host/process_limits.h"

#include <gtest/gtest.h>

namespace viaduct::host {
namespace {

TEST(ProcessLimits, ThisProcessMayRunSomewhere) { EXPECT_FALSE(processLimits().allowed.empty()); }

}  // namespace
}  // namespace viaduct::host
