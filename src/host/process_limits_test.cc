#include "host/process_limits.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

TEST(ProcessLimits, AreReadFromFiles) {
  const testing::TemporaryFolder root;
  EXPECT_EQ(processLimits(Tree(root.path())), ProcessLimits{});
  root.write("/proc/self/status",
             "Name:\tviaduct\nTracerPid:\t42\nTHP_enabled:\t1\nCpus_allowed_list:\t1-2,5\n");
  root.write("/sys/devices/system/cpu/online", "0-7\n");
  root.write("/proc/self/cgroup", "0::/pods/one\n");
  root.write("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n");
  root.write("/sys/fs/cgroup/pods/cpu.max", "150000 100000\n");
  root.write("/proc/sys/net/ipv4/tcp_wmem", "4096\t16384\t4194304\n");
  root.write("/proc/sys/net/ipv4/tcp_rmem", "4096\t8192\t8192\n");
  root.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.write("/sys/kernel/mm/transparent_hugepage/shmem_enabled",
             "always within_size advise [never] deny force\n");
  const ProcessLimits found = processLimits(Tree(root.path()));
  EXPECT_EQ(found, (ProcessLimits{.processors = 8,
                                  .allowed = {1, 2, 5},
                                  .quota = 1.5,
                                  .send_buffer = 4194304,
                                  .receive_buffer = 8192,
                                  .huge_pages = "madvise",
                                  .huge_shared_pages = "never",
                                  .tracer = 42}));
  EXPECT_TRUE(found.pinned());
}

TEST(ProcessLimits, AQuotaOfVersion1IsRead) {
  const testing::TemporaryFolder root;
  root.write("/proc/self/cgroup", "4:cpu:/job\n");
  root.write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  root.write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(processLimits(Tree(root.path())).quota, 0.5);
}

TEST(ProcessLimits, DamagedFilesAreUnknown) {
  const testing::TemporaryFolder root;
  for (const char* list : {"3-", "-", "0-999999999", "x", "1,,2", ""}) {
    root.write("/proc/self/status",
               std::string("Cpus_allowed_list:\t") + list + "\nTracerPid:\tx\n");
    const ProcessLimits found = processLimits(Tree(root.path()));
    EXPECT_FALSE(found.pinned()) << list;
    EXPECT_EQ(found.tracer, 0U);
  }
}

TEST(ProcessTimes, AddUpThreadsAndAllowedProcessors) {
  const testing::TemporaryFolder root;
  root.write("/proc/self/task/1/schedstat", "2000000000 500000000 7\n");
  root.write("/proc/self/task/2/schedstat", "1000000000 1000000000 7\n");
  root.write("/proc/self/task/3/schedstat", "damaged\n");
  root.write("/proc/self/status", "Cpus_allowed_list:\t1\n");
  root.write("/proc/stat",
             "cpu  300 0 0 0 0 0 0 0 0 0\ncpu0 200 0 0 0 0 0 0 0 0 0\n"
             "cpu1 100 0 0 0 0 0 0 0 0 0\n");
  root.write("/proc/self/cgroup", "0::/\n");
  root.write("/sys/fs/cgroup/cpu.stat", "usage_usec 5\nthrottled_usec 250000\n");
  const ProcessTimes times = processTimes(Tree(root.path()));
  EXPECT_DOUBLE_EQ(times.ran, 3);
  EXPECT_DOUBLE_EQ(times.waited, 1.5);
  EXPECT_DOUBLE_EQ(times.throttled, 0.25);
  EXPECT_DOUBLE_EQ(times.busy, 1);  // 100 ticks of 10 ms
}

TEST(TcpSegments, AreFoundByName) {
  const testing::TemporaryFolder root;
  root.write("/proc/net/snmp",
             "Ip: A B\nIp: 1 2\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 700 9\n");
  const TcpSegments found = tcpSegments(Tree(root.path()));
  EXPECT_EQ(found.sent, 700U);
  EXPECT_EQ(found.repeated, 9U);
  root.write("/proc/net/netstat", "TcpExt: A TCPDSACKRecvSegs\nTcpExt: 1 4\n");
  EXPECT_EQ(tcpSegments(Tree(root.path())).repeated, 5U);
  root.write("/proc/net/snmp", "Tcp: OutSegs\n");
  EXPECT_EQ(tcpSegments(Tree(root.path())).sent, 0U);
}

}  // namespace
}  // namespace viaduct::host
