#include "host/gpu.h"

#include <gtest/gtest.h>

namespace viaduct::host {
namespace {

TEST(Gpu, AMissingDriverIsNamed) {
  const auto gpu = findGpu(0, "libno-such-driver.so.1");
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.error().detail.find("libno-such-driver.so.1"), std::string::npos);
  EXPECT_FALSE(gpu.error().remedy.empty());
}

TEST(Gpu, ALibraryThatIsNoDriverIsRefused) {
  const auto gpu = findGpu(0, "libm.so.6");
  ASSERT_FALSE(gpu);
  EXPECT_NE(gpu.error().detail.find("lacks"), std::string::npos);
}

TEST(Gpu, TheFirstOneHasANameAndMemory) {
  const auto gpu = findGpu(0);
  if (!gpu) GTEST_SKIP() << "skipped: no GPU: " << gpu.error().text();
  EXPECT_FALSE(gpu->name.empty());
  EXPECT_GT(gpu->memory, 0U);
  const auto none = findGpu(4096);
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().detail.find("this host has"), std::string::npos) << none.error().text();
}

}  // namespace
}  // namespace viaduct::host
