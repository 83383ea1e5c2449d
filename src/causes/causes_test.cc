#include "causes/causes.h"

#include <gtest/gtest.h>

namespace viaduct::causes {
namespace {

TEST(Causes, NothingIsNamedWhereNothingIsKnown) { EXPECT_TRUE(causesOf({}).empty()); }

}  // namespace
}  // namespace viaduct::causes
