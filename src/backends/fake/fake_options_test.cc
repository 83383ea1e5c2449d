#include "backends/fake/fake_options.h"

#include <gtest/gtest.h>

namespace viaduct::fake {
namespace {

TEST(FakeOptions, AreRead) {
  FakeOptions options;
  ASSERT_TRUE(parseOptions("rails=4,nodes=2,exhaust=30,far=1,pose=1,lie=swap", options));
  EXPECT_EQ(options.rails, 4U);
  EXPECT_EQ(options.nodes, 2U);
  EXPECT_EQ(options.exhaust, 30U);
  EXPECT_EQ(options.far + options.pose, 2U);
  EXPECT_EQ(options.lie, Lie::kSwap);
  EXPECT_TRUE(parseOptions("lie=stale", options));
  EXPECT_EQ(options.lie, Lie::kStale);
}

TEST(FakeOptions, ThatAreWrongAreRefusedWithTheForm) {
  for (const char* text :
       {"rain", "rain=1", "far", "far=2", "rails=9", "rails=x", "nodes=0", "lie=big", "lie"}) {
    FakeOptions options;
    const Status read = parseOptions(text, options);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().remedy.find("rails=N"), std::string::npos) << read.error().text();
  }
}

}  // namespace
}  // namespace viaduct::fake
