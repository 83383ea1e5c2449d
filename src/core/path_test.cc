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
  EXPECT_EQ((Path{{{"ofi", "tcp", "eth0", 1024, 16, 15, 2}}}.text()),
            "ofi/tcp 1.0 KiB in 16 ops and 2 batches (15 injected)");
}

TEST(Path, CountsAreAddedAndSubtracted) {
  const Path before{{{"ofi", "tcp", "eth0", 1024, 16, 15, 2}}};
  Path path = before;
  path.add({"ofi", "tcp", "eth0", 64, 2, 1, 1});
  EXPECT_EQ(path, (Path{{{"ofi", "tcp", "eth0", 1088, 18, 16, 3}}}));
  EXPECT_EQ(path.since(before), (Path{{{"ofi", "tcp", "eth0", 64, 2, 1, 1}}}));
}

}  // namespace
}  // namespace viaduct
