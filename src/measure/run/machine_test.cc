#include "measure/run/machine.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace viaduct::measure {
namespace {

TEST(DevicesExist, InterfacesAddressesAndRdmaDevicesAreDevices) {
  const testing::TemporaryFolder folder;
  const std::string& root = folder.path();
  EXPECT_FALSE(devicesExist({"mlx5_0"}, root));
  std::filesystem::create_directories(root + "/sys/class/infiniband/mlx5_0/ports/1");
  for (const char* one : {"lo", "127.0.0.1", "mlx5_0", "mlx5_0:1"})
    EXPECT_TRUE(devicesExist({one}, root)) << one;
  const auto none = devicesExist({"lo", "mlx5_1"}, root);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().detail, "there is no device \"mlx5_1\"");
  EXPECT_NE(none.error().remedy.find("mlx5_0"), std::string::npos) << none.error().remedy;
}

}  // namespace
}  // namespace viaduct::measure
