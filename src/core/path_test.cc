#include <gtest/gtest.h>
#include <viaduct/path.h>

namespace viaduct {
namespace {

TEST(Path, ReadsAsOneLine) {
  EXPECT_EQ(Path{}.text(), "nothing moved");
  EXPECT_EQ((Path{{{"local", "mapped", "copy", 1U << 20U, 16}}}.text()),
            "local/mapped 1.0 MiB in 16 ops");
  EXPECT_EQ((Path{{{"tcp", "socket", "eth0", 1536, 1}, {"tcp", "socket", "eth1", 100, 2}}}.text()),
            "tcp/socket eth0 1.5 KiB in 1 op, tcp/socket eth1 100 B in 2 ops");
}

}  // namespace
}  // namespace viaduct
