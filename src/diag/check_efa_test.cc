#include <gtest/gtest.h>

#include <string>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using testing::p5;
using testing::p5en;
using testing::p6b200;

using Codes = std::vector<std::string>;

TEST(CheckEfa, NamesAnInstanceWithFewerDevicesThanItsType) {
  const auto folder = p5en();
  folder.erase("/sys/class/infiniband/rdmap85s0");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"efa.fewer-devices"});
  const Finding bound = findingOf(folder, "efa.fewer-devices");
  EXPECT_EQ(bound.what, "This p5en.48xlarge has 15 of 16 EFA devices.");
  EXPECT_EQ(bound.gain, "3200 Gb/s instead of 3000.");
  EXPECT_NE(bound.fix.find("modprobe efa"), std::string::npos) << "the function is there";
  folder.erase("/sys/bus/pci/devices/0000:55:00.0");
  EXPECT_NE(findingOf(folder, "efa.fewer-devices").fix.find("efaEnabled"), std::string::npos);
}

TEST(CheckEfa, NamesAnInstanceWithoutDevices) {
  testing::NodeFolder folder;
  folder.write("/sys/devices/virtual/dmi/id/product_name", "p5.48xlarge");
  EXPECT_EQ(findingOf(folder, "efa.fewer-devices").severity, Severity::kFailure);
  folder.write("/sys/devices/virtual/dmi/id/product_name", "m7i.large");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckEfa, NamesOldDrivers) {
  const auto folder = p6b200();
  for (const char* version : {"2.5.0g", "1.16.0"}) {
    folder.rewrite("/sys/module/efa/version", version);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"efa.driver-old"}) << version;
  }
  for (const char* version : {"2.6.0g", "2.17.3", "3.1.0"}) {
    folder.rewrite("/sys/module/efa/version", version);
    EXPECT_EQ(codesAboveInfo(folder), Codes{}) << version;
  }
  for (const char* version : {"", "g", "-1.2", "2.-5", "2", "99999999999.1", "\x1b[31m"}) {
    folder.rewrite("/sys/module/efa/version", version);
    EXPECT_EQ(codesAboveInfo(folder), Codes{"efa.driver-unknown"}) << version;
  }
  folder.erase("/sys/module/efa/version");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckEfa, NamesFailedCommands) {
  const auto folder = p6b200();
  folder.rewrite("/sys/class/infiniband/rdmap79s0/hw_counters/reg_mr_err", "17");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"efa.errors"});
  EXPECT_EQ(findingOf(folder, "efa.errors").what,
            "Registering memory failed since the node booted: 17 times on rdmap79s0.");
  folder.rewrite("/sys/class/infiniband/rdmap79s0/hw_counters/create_ah_err", "2");
  EXPECT_EQ(codesAboveInfo(folder), (Codes{"efa.errors", "efa.errors"}));
}

TEST(CheckEfa, NamesOtherDevicesInTheSameContainer) {
  auto folder = p6b200();
  folder.write("/dev/infiniband/uverbs8", "");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"efa.mellanox-beside"});
  folder.variables.erase("KUBERNETES_SERVICE_HOST");
  folder.erase("/var/run/secrets/kubernetes.io/serviceaccount");
  EXPECT_EQ(findingOf(folder, "efa.mellanox-beside").severity, Severity::kInfo) << "on a host";
}

TEST(CheckEfa, CountsDevicesOfAllP5) {
  const auto folder = p5();
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.rewrite("/sys/devices/virtual/dmi/id/product_name", "\x1b]0;p5.48xlarge");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "an unknown type";
}

}  // namespace
}  // namespace viaduct::diag
