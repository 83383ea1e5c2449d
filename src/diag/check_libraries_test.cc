#include <gtest/gtest.h>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using Codes = std::vector<std::string>;

TEST(CheckLibraries, NamesTwoCopies) {
  auto folder = testing::p5();
  folder.live.libraries.push_back({"libfabric.so.1", "/usr/lib64/libfabric.so.1", "1.22.0"});
  EXPECT_EQ(codesAboveInfo(folder), Codes{"libraries.two-libfabric"});
  EXPECT_EQ(findingOf(folder, "libraries.two-libfabric").evidence.size(), 2U);
  folder.live.libraries.push_back({"libucp.so.0", "/usr/lib/libucp.so.0", "1.17.0"});
  folder.live.libraries.push_back({"libucp.so.0", "/venv/nixl_cu12.libs/libucp.so.0", "1.20.0"});
  EXPECT_EQ(codesAboveInfo(folder), (Codes{"libraries.two-libfabric", "libraries.two-ucx"}));
}

TEST(CheckLibraries, TakesOneFileUnderTwoNamesForOne) {
  auto folder = testing::roceNode();
  folder.live.libraries.push_back({"libfabric.so.1", "/lib64/libfabric.so.1", "1.22.0"});
  folder.live.libraries.push_back({"libfabric.so.1", "/usr/lib64/libfabric.so.1", "1.22.0"});
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckLibraries, NamesMissingVerbs) {
  auto folder = testing::roceNode();
  std::erase_if(folder.live.libraries,
                [](const auto& one) { return one.name == "libibverbs.so.1"; });
  EXPECT_EQ(codesAboveInfo(folder), Codes{"libraries.no-verbs"});
  folder.live.libraries.clear();
  EXPECT_EQ(codesAboveInfo(folder), (Codes{"gpu-access.library-unknown", "libraries.unknown"}))
      << "nobody looked";
}

void setVersion(testing::Fixture& folder, const char* name, const char* version) {
  for (auto& one : folder.live.libraries)
    if (one.name == name) one.version = version;
}

TEST(CheckLibraries, NamesOldOnes) {
  auto folder = testing::roceNode();
  folder.remove("/sys/module/nvidia_peermem");
  setVersion(folder, "libibverbs.so.1", "1.11.32.0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"libraries.old"});
  setVersion(folder, "libibverbs.so.1", "32.0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"libraries.old"});
  for (const char* good : {"1.14.39.0", "39.0", "", "unknown", "99999999999999999999"}) {
    setVersion(folder, "libibverbs.so.1", good);
    EXPECT_EQ(codesAboveInfo(folder), Codes{}) << good;
  }
}

TEST(CheckLibraries, AStaticDoctorSaysWhatItCannotSee) {
  auto folder = testing::p6b200();
  EXPECT_FALSE(diagnose(folder.node()).has("libraries.one-file"));
  folder.live.one_file = true;
  folder.live.machine = "aarch64";
  for (const char* name : {"libfabric.so.1", "libucp.so.0"}) setVersion(folder, name, "");
  EXPECT_EQ(findingOf(folder, "libraries.one-file").severity, Severity::kInfo);
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "an unknown version is no old one";
}

TEST(CheckLibraries, NamesALibfabricThatFailsOnGraceWithEfa) {
  auto folder = testing::p6b200();
  folder.live.machine = "aarch64";
  setVersion(folder, "libfabric.so.1", "2.4.0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"libraries.old"});
  EXPECT_EQ(findingOf(folder, "libraries.old").severity, Severity::kFailure);
}

}  // namespace
}  // namespace viaduct::diag
