#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

constexpr auto kScope = "/proc/sys/kernel/yama/ptrace_scope";

TEST(CheckCopy, NamesYamaAsTheCause) {
  auto folder = testing::roceNode();
  folder.live.copy = Tried{.ok = false, .text = "Operation not permitted"};
  folder.write("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0\n");
  for (const char* scope : {"2", "3"}) {
    folder.write(kScope, scope);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"copy.cma-denied"});
    EXPECT_NE(findingOf(folder, "copy.cma-denied").cause.find("ptrace_scope"), std::string::npos);
  }
}

TEST(CheckCopy, NamesSeccompAndNamespacesAsTheCause) {
  auto folder = testing::roceNode();
  folder.live.copy = Tried{.ok = false, .text = "Operation not permitted"};
  folder.write("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\nSeccomp:\t2\n");
  EXPECT_NE(findingOf(folder, "copy.cma-denied").cause.find("seccomp"), std::string::npos);
  folder.write("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\nSeccomp:\t0\n");
  EXPECT_NE(findingOf(folder, "copy.cma-denied").cause.find("namespaces"), std::string::npos);
}

TEST(CheckCopy, WithoutATestTellsOnlyThatItIsForbidden) {
  auto folder = testing::roceNode();
  folder.live.copy.reset();
  EXPECT_EQ(codesAboveInfo(folder), Codes{"copy.not-tried"});
  folder.write(kScope, "3");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"copy.cma-denied"});
}

TEST(CheckCopy, SaysWhenOnlyRelativesMayCopy) {
  const auto folder = testing::laptop();
  EXPECT_EQ(findingOf(folder, "copy.relatives-only").severity, Severity::kInfo);
}

TEST(CheckCopy, SaysWhyIoUringIsDenied) {
  auto folder = testing::roceNode();
  folder.live.io_uring = Tried{.ok = false, .text = "Operation not permitted"};
  folder.write("/proc/sys/kernel/io_uring_disabled", "2");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  EXPECT_EQ(findingOf(folder, "copy.io-uring-denied").fix, "sysctl kernel.io_uring_disabled=0");
  folder.write("/proc/sys/kernel/io_uring_disabled", "0");
  folder.write("/proc/self/status", "Uid:\t0\t0\t0\t0\nSeccomp:\t2\n");
  EXPECT_NE(findingOf(folder, "copy.io-uring-denied").cause.find("seccomp"), std::string::npos);
}

}  // namespace
}  // namespace viaduct::diag
