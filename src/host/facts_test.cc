#include "host/facts.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

class FactsTest : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    root_.write("/" + path, text);
  }
  testing::TemporaryFolder root_;
};

TEST_F(FactsTest, ReadsFilesBelowTheRoot) {
  put("proc/sys/kernel/random/boot_id", "0f1e-77\n");
  put("proc/meminfo", "MemTotal:       16308788 kB\nMemFree: 1 kB\n");
  put("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.6 GHz\nmodel name : other\n");
  const Facts found = facts(Tree(root_.path()));
  EXPECT_EQ(found.boot_id, "0f1e-77");
  EXPECT_EQ(found.memory, 16308788ULL * 1024);
  EXPECT_EQ(found.cpu_model, "Some CPU @ 2.6 GHz");
}

TEST_F(FactsTest, UnknownFactsAreEmpty) {
  put("proc/meminfo", "nonsense\n");
  const Facts found = facts(Tree(root_.path()));
  EXPECT_EQ(found.boot_id, "");
  EXPECT_EQ(found.memory, 0U);
  EXPECT_EQ(found.cpu_model, "");
}

TEST_F(FactsTest, ALineMayBeLongAndTheLast) {
  const std::string id(5000, 'a');
  put("proc/sys/kernel/random/boot_id", " " + id + "\t");
  EXPECT_EQ(bootId(Tree(root_.path())), id);
  put("proc/sys/kernel/random/boot_id", id + "\nmore");
  EXPECT_EQ(bootId(Tree(root_.path())), id);
}

TEST_F(FactsTest, AnArm64CoreIsNamedByItsNumbers) {
  put("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  EXPECT_EQ(facts(Tree(root_.path())).cpu_model, "arm64, implementer 0x41, part 0xd4f");
}

TEST_F(FactsTest, ALinkHasARateWhenADeviceStandsBehindIt) {
  const auto rate = [&] {
    for (const Interface& i : facts(Tree(root_.path())).interfaces)
      if (i.name == "lo") return i.mbit_per_s;
    return std::uint64_t{1};
  };
  put("sys/class/net/lo/speed", "100000\n");
  EXPECT_EQ(rate(), 0U);
  put("sys/class/net/lo/device/vendor", "x");
  EXPECT_EQ(rate(), 100000U);
  put("sys/class/net/lo/speed", "-1\n");
  EXPECT_EQ(rate(), 0U);
}

TEST_F(FactsTest, CoresAreThoseThisThreadMayUse) {
  std::thread([] {
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(before), &before), 0);
    EXPECT_EQ(facts().cores, static_cast<unsigned>(CPU_COUNT(&before)));
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
    EXPECT_EQ(facts().cores, 1U);
  }).join();
}

TEST_F(FactsTest, LoopbackIsAmongTheInterfaces) {
  const Facts found = facts();
  EXPECT_FALSE(found.kernel.empty());
  EXPECT_FALSE(found.hostname.empty());
  const auto loop =
      std::ranges::find_if(found.interfaces, [](const Interface& i) { return i.name == "lo"; });
  ASSERT_NE(loop, found.interfaces.end());
  if (!loop->up) GTEST_SKIP() << "skipped: the loopback interface is down here";
  EXPECT_NE(std::find(loop->addresses.begin(), loop->addresses.end(), "127.0.0.1"),
            loop->addresses.end());
}

TEST_F(FactsTest, ATimeNamespacesOffsetIsRead) {
  EXPECT_EQ(uptimeOffset(Tree(root_.path())), 0);
  put("proc/self/timens_offsets",
      "monotonic           1         0\nboottime     -86400 500000000\n");
  EXPECT_DOUBLE_EQ(uptimeOffset(Tree(root_.path())), -86399.5);
}

TEST(KernelStartHere, BothSourcesAgree) {
  const KernelStart start = kernelStart();
  EXPECT_NEAR(start.by_clock, start.by_stat, 1.5);
  EXPECT_TRUE(startedTogether(start.by_clock, kernelStart().by_clock));
  EXPECT_FALSE(startedTogether(start.by_clock, start.by_clock + 0.01));
  EXPECT_FALSE(startedTogether(0, 0)) << "both are unknown";
}

}  // namespace
}  // namespace viaduct::host
