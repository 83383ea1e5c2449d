#include "move/auto_open.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace viaduct::move {
namespace {

TEST(AutoOpen, OnlyTheWholeNameNamesABackend) {
  EXPECT_FALSE(namedIn({}, "ofi"));
  EXPECT_FALSE(namedIn({.backends = {"tcp", "ofi2"}}, "ofi"));
  EXPECT_TRUE(namedIn({.backends = {"tcp", "ofi"}}, "ofi"));
}

TEST(AutoOpen, TheErrorNamesTheBackendAndTheRemedy) {
  const Error why = notOpenedUnasked("ofi", "this host has no RDMA device");
  EXPECT_EQ(why.code, Code::kUnsupported);
  EXPECT_EQ(why.operation, "open ofi");
  EXPECT_EQ(why.detail, "this host has no RDMA device");
  EXPECT_EQ(why.device, "ofi");
  EXPECT_EQ(why.remedy, "name ofi among the backends to use it over TCP anyway");
}

TEST(AutoOpen, TheDescriptionNamesUnusedDevices) {
  EXPECT_EQ(notNear({}), "");
  const std::vector<std::string> far{"mlx5_2", "mlx5_3"};
  EXPECT_EQ(notNear(far), " (not mlx5_2, mlx5_3: farther from this process's CPUs, or slower)");
}

TEST(AutoOpen, TheDescriptionSaysWhyGpuMemoryIsStagedOnAHostWithAGpu) {
  const testing::TemporaryFolder folder;
  const auto text = [&] {
    return gpuIsStaged([] { return "no CUDA"; }, host::Tree(folder.path()));
  };
  EXPECT_EQ(text(), "");
  folder.write("/sys/bus/pci/devices/0000:18:00.0/class", "0x030200\n");
  folder.write("/sys/bus/pci/devices/0000:18:00.0/vendor", "0x10de\n");
  EXPECT_EQ(text(), "; GPU memory is staged: no CUDA");
}

}  // namespace
}  // namespace viaduct::move
