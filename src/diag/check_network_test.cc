#include <gtest/gtest.h>

#include <string>

#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/topics.h"

namespace viaduct::diag {
namespace {

using testing::codesAboveInfo;
using testing::findingOf;
using testing::roceNode;

using Codes = std::vector<std::string>;

// Puts rail2 and rail3 into one subnet, 10.0.102.0/24.
void shareSubnet(testing::Fixture& folder) {
  for (auto& one : folder.live.addresses)
    if (one.interface == "rail3") one.address = "10.0.102.22";
}

TEST(CheckNetwork, NamesRailsOfOneSubnet) {
  auto folder = roceNode();
  shareSubnet(folder);
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.same-subnet"});
  folder.write("/proc/sys/net/ipv4/conf/rail3/rp_filter", "1");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.rp-filter"});
  EXPECT_EQ(findingOf(folder, "network.rp-filter").what,
            "rail2, rail3 are in the same subnet 10.0.102.0/24, and rp_filter is 1.");
  folder.write("/proc/sys/net/ipv4/conf/all/rp_filter", "2");
  folder.write("/proc/sys/net/ipv4/conf/all/arp_ignore", "1");
  EXPECT_EQ(codesAboveInfo(folder), Codes{}) << "the greater one counts";
  folder.remove("/proc/sys/net/ipv4/conf/all/arp_ignore");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.arp-unknown"});
}

TEST(CheckNetwork, AllowsStrictFilteringOfSeparateSubnets) {
  const auto folder = roceNode();
  folder.write("/proc/sys/net/ipv4/conf/all/rp_filter", "1");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckNetwork, NamesLinksThatComeAndGo) {
  auto folder = roceNode();
  folder.rewrite("/sys/class/net/rail3/carrier_changes", "41");
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.carrier-changes"});
  EXPECT_EQ(findingOf(folder, "network.carrier-changes").what,
            "These links go up and down often: rail3 (41 changes of the carrier).");
  folder.rewrite("/sys/class/net/rail3/carrier_changes", "18");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.live.grown["/sys/class/net/rail3/carrier_changes"] = 2;
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.carrier-changes"});
}

TEST(CheckNetwork, AllowsManyChangesOfAllRailsAlike) {
  const auto folder = roceNode();
  for (int i = 0; i < 8; ++i)
    folder.rewrite("/sys/class/net/rail" + std::to_string(i) + "/carrier_changes", "44");
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

TEST(CheckNetwork, NamesANodeWithoutAddress) {
  auto folder = testing::smallVm();
  folder.live.addresses = {{"lo", "127.0.0.1", 8}, {"eth0", "169.254.3.4", 16}};
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.no-ipv4"});
  folder.live.addresses.push_back({"eth0", "fd00::2", 64});
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
  folder.live.addresses.clear();
  EXPECT_EQ(codesAboveInfo(folder), Codes{"network.addresses-unknown"});
}

TEST(CheckNetwork, IgnoresTextsThatAreNoAddresses) {
  auto folder = roceNode();
  for (const char* address : {"", "10.0.102", "10.0.102.21.5", "\x1b[2J", "999.1.1.1"})
    folder.live.addresses.push_back({"rail4", address, 24});
  folder.live.addresses.push_back({"rail4", "10.0.102.9", 4000});
  folder.write("/proc/net/route", std::string("Iface\trail\x01\n\n\t\trail3\n"));
  EXPECT_EQ(codesAboveInfo(folder), Codes{});
}

}  // namespace
}  // namespace viaduct::diag
