#include <fmt/format.h>
#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "host/control_groups.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

std::string limitsText(const char* memlock, const char* files) {
  return fmt::format(
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max open files            {}\nMax locked memory         {}",
      files, memlock);
}

std::string statusText(unsigned uid, const char* effective, const char* bounding) {
  return fmt::format("Name:\tviaduct\nUid:\t{0}\t{0}\t{0}\t{0}\nCapEff:\t{1}\nCapBnd:\t{2}\n", uid,
                     effective, bounding);
}

constexpr auto kNone = "0000000000000000";
constexpr auto kAll = "000001ffffffffff";
constexpr auto kDocker = "00000000a80425fb";
constexpr auto kDockerAndIpcLock = "00000000a80465fb";
constexpr auto kEightMebibytes = "8388608              8388608              bytes";
constexpr auto kManyFiles = "1048576              1048576              files";

TEST(CheckLimits, NamesASmallMemlock) {
  const auto folder = testing::p5();
  folder.write("/proc/self/limits", limitsText(kEightMebibytes, kManyFiles));
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "root has IPC_LOCK";
  folder.write("/proc/self/status", statusText(0, kDocker, kDocker));
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.memlock"});
  const Finding finding = findingOf(folder, "limits.memlock");
  EXPECT_EQ(finding.severity, Severity::kFailure);
  EXPECT_EQ(finding.evidence.at(0).value, "Max locked memory: soft 8MiB, hard 8MiB");
  EXPECT_NE(finding.fix.find("LimitMEMLOCK=infinity"), std::string::npos);
  EXPECT_NE(findingOf(testing::laptop(), "limits.memlock").fix.find("limits.d"), std::string::npos);
}

TEST(CheckLimits, SaysWhyIpcLockIsInert) {
  const auto folder = testing::p5();
  folder.write("/proc/self/limits", limitsText(kEightMebibytes, kManyFiles));
  folder.write("/proc/self/status", statusText(1000, kNone, kDockerAndIpcLock));
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.ipc-lock-inert"});
  EXPECT_NE(findingOf(folder, "limits.ipc-lock-inert")
                .cause.find("uid 0 only; this process runs as uid 1000"),
            std::string::npos);
  folder.write("/proc/self/status", statusText(1000, kNone, kDocker));
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.memlock"}) << "it was not added";
  folder.write("/proc/self/status", statusText(0, kAll, kAll));
  folder.write("/proc/self/uid_map", "         0     100000      65536");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.ipc-lock-inert"}) << "a user namespace";
}

TEST(CheckLimits, TakesTheHardLimitWhereItSuffices) {
  const auto folder = testing::roceNode();
  folder.write("/proc/self/limits", limitsText("65536 unlimited bytes", "1024 524288 files"));
  folder.write("/proc/self/status", statusText(1000, kNone, kAll));
  EXPECT_EQ(codesAboveInfo(folder), (Codes{"limits.memlock", "limits.open-files"}));
  EXPECT_EQ(findingOf(folder, "limits.open-files").fix, "ulimit -n 524288");
  EXPECT_TRUE(findingOf(folder, "limits.memlock").fix.starts_with("ulimit -l unlimited"));
}

TEST(CheckLimits, DoesNotTakeADamagedFileForFine) {
  const auto folder = testing::roceNode();
  for (const char* text : {"", "Max locked memory", "Max locked memory x y\nMax open files -1 2"}) {
    folder.write("/proc/self/limits", text);
    EXPECT_EQ(codesAboveInfo(folder), (Codes{"limits.unknown", "limits.unknown"})) << text;
  }
}

TEST(CheckLimits, NamesTooLittleMemory) {
  const auto folder = testing::p5();
  folder.write("/sys/fs/cgroup/memory.max", "137438953472");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "128 GiB suffice for 32 devices";
  folder.write("/sys/fs/cgroup/memory.max", "17179869184");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.memory"});
  EXPECT_NE(findingOf(folder, "limits.memory").fix.find("memory: 128Gi"), std::string::npos);
}

TEST(CheckLimits, NamesALimitOfRdmaObjects) {
  const auto folder = testing::roceNode();
  folder.write("/sys/fs/cgroup/rdma.max", "mlx5_0 hca_handle=max hca_object=max");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.write("/sys/fs/cgroup/rdma.max", "mlx5_0 hca_handle=2 hca_object=2000");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.rdma"});
  EXPECT_EQ(findingOf(folder, "limits.rdma").fix,
            "On the node, as root:\n"
            "echo 'mlx5_0 hca_handle=max hca_object=max' > /sys/fs/cgroup/rdma.max");
}

TEST(CheckLimits, DoesNotTakeDamagedGroupsForNoLimit) {
  const auto folder = testing::roceNode();
  for (const char* text : {"", "garbage", "12x"}) {
    folder.write("/sys/fs/cgroup/memory.max", text);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.groups-unknown"}) << text;
  }
  folder.write("/sys/fs/cgroup/memory.max", "max");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.remove("/proc/self/cgroup");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"limits.groups-unknown"});
}

TEST(ControlGroups, TakeTheLeastOfAllGroupsAbove) {
  const testing::NodeFolder folder;
  folder.write("/proc/self/cgroup", "0::/a/b");
  folder.write("/sys/fs/cgroup/a/memory.max", "100");
  folder.write("/sys/fs/cgroup/a/b/memory.max", "200");
  const auto limit = [&] {
    const Node node = folder.node();
    return groupLimit(node.tree, "memory", "memory.max", "memory.limit_in_bytes");
  };
  ASSERT_TRUE(limit());
  EXPECT_EQ(limit()->path, "/sys/fs/cgroup/a/memory.max");
  folder.write("/sys/fs/cgroup/a/memory.max", "max");
  EXPECT_EQ(limit()->value, 200U);
}

TEST(ControlGroups, ReadVersionOneAndItsNumberForNoLimit) {
  const testing::NodeFolder folder;
  const auto limit = [&] {
    const Node node = folder.node();
    return groupLimit(node.tree, "memory", "memory.max", "memory.limit_in_bytes");
  };
  for (const char* text : {"4:cpu,memory:/x\n0::/", "4:memory:/x", "memory", "4:memory:/../..",
                           "\x01\x02", "4:memory:"}) {
    folder.write("/proc/self/cgroup", text);
    folder.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    EXPECT_FALSE(limit()) << text;
  }
  folder.write("/proc/self/cgroup", "4:memory:/x");
  folder.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000");
  ASSERT_TRUE(limit()) << "a container sees its own group at the top";
  EXPECT_EQ(limit()->value, 1000U);
}

}  // namespace
}  // namespace viaduct::diag
