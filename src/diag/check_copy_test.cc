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

struct UringCase {
  const char *error, *disabled, *kernel, *status;
  const char *cause, *fix;
};
const UringCase kUringCases[] = {
    {"Operation not permitted", "2", "6.8.0", "Seccomp:\t0", "switched off for all",
     "sysctl kernel.io_uring_disabled=0"},
    {"Operation not permitted", "1", "6.8.0", "Seccomp:\t0", "one group", "kernel.io_uring_group"},
    {"Operation not permitted", "0", "6.8.0", "Seccomp:\t2", "seccomp profile", "io_uring_setup"},
    {"Operation not permitted", "0", "6.8.0", "Seccomp:\t0", "security module", "ausearch"},
    {"Function not implemented", "0", "6.8.0", "Seccomp:\t0", "without io_uring",
     "CONFIG_IO_URING"},
    {"Function not implemented", "0", "4.18.0", "Seccomp:\t0", "older than 5.5", "newer kernel"},
    {"Function not implemented", "0", "5.4.0", "Seccomp:\t2", "older than 5.5", "newer kernel"},
    {"Cannot allocate memory", "0", "5.10.0", "Seccomp:\t2", "locked memory", "ulimit -l"},
    {"Too many open files", "0", "6.8.0", "Seccomp:\t0", "file descriptors", "ulimit -n"},
};

TEST(CheckCopy, NamesEachReasonAgainstIoUring) {
  auto folder = testing::roceNode();
  for (const UringCase& one : kUringCases) {
    folder.live.io_uring = Tried{.ok = false, .text = one.error};
    folder.live.kernel = one.kernel;
    folder.write("/proc/sys/kernel/io_uring_disabled", one.disabled);
    folder.write("/proc/sys/kernel/io_uring_group", "1001");
    folder.write("/proc/self/status", std::string("Uid:\t0\t0\t0\t0\nCapEff:\t0\n") + one.status);
    const Finding finding = findingOf(folder, "copy.io-uring-denied");
    EXPECT_NE(finding.cause.find(one.cause), std::string::npos) << finding.cause;
    EXPECT_NE(finding.fix.find(one.fix), std::string::npos) << finding.fix;
    EXPECT_EQ(finding.evidence[0].value, one.error);
    EXPECT_EQ(finding.evidence.back().value == "1001", std::string(one.disabled) == "1");
  }
}

TEST(CheckCopy, SaysHowMuchMemoryIoUringRegisters) {
  auto folder = testing::roceNode();
  folder.live.io_uring_buffers = Tried{.ok = true};
  EXPECT_FALSE(diagnose(folder.node()).has("copy.io-uring-buffers"));
  folder.live.io_uring_buffers = Tried{.text = "Invalid argument"};
  EXPECT_NE(findingOf(folder, "copy.io-uring-buffers").cause.find("5.19"), std::string::npos);
  folder.live.io_uring_buffers = Tried{.text = "Cannot allocate memory"};
  EXPECT_NE(findingOf(folder, "copy.io-uring-buffers").fix.find("ulimit -l"), std::string::npos);
  folder.live.io_uring_buffers = Tried{.ok = true};
  folder.write("/proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0\n");
  folder.write("/proc/self/limits", "Max locked memory 8388608 8388608 bytes\n");
  const Finding small = findingOf(folder, "copy.io-uring-buffers");
  EXPECT_NE(small.what.find("at most 8MiB"), std::string::npos) << small.what;
  EXPECT_EQ(small.severity, Severity::kInfo);
}

}  // namespace
}  // namespace viaduct::diag
