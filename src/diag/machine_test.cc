// The library's view of a machine, on the nodes of the doctor's tests.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/lists.h"
#include "diag/findings_testing.h"
#include "diag/fixtures_testing.h"
#include "diag/hardware.h"
#include "host/devices.h"
#include "host/memory.h"
#include "host/nearness.h"

namespace viaduct::diag {
namespace {

std::vector<std::string> namesOfPorts(const Tree& tree) {
  return base::mapped(host::rdmaPorts(tree), &RdmaPort::name);
}

// The link of a device's slot: a virtual function has none and shares its physical function's.
PciLink slotOf(const Tree& tree, const RdmaDevice& device) {
  const auto physical = pciFunction(tree, device.physical);
  return physical ? physical->link : device.function->link;
}

TEST(Machine, TheLibraryAndTheDoctorSeeTheSameDevices) {
  for (const auto& [name, make] : testing::healthyNodes()) {
    SCOPED_TRACE(name);
    const auto folder = make();
    const Node node = folder.node();
    const auto devices = host::devices(node.tree);
    const std::vector<std::string> ports = namesOfPorts(node.tree);
    const auto nics = host::nicsNamed(ports, node.tree);
    EXPECT_EQ(rdmaDevices(node.tree).size(), ports.size()) << "each has one port";
    for (const RdmaDevice& device : rdmaDevices(node.tree)) {
      const auto* const found = base::firstWith(devices, &host::Device::name, device.name);
      const auto* const nic = base::firstWith(nics, &host::Nic::name, device.name);
      ASSERT_TRUE(found != nullptr && nic != nullptr) << device.name;
      EXPECT_EQ(found->link_bytes_per_s, device.ports.front().bytesPerSecond());
      EXPECT_EQ(static_cast<double>(found->pcie_bytes_per_s),
                std::floor(slotOf(node.tree, device).bytesPerSecond()));
      EXPECT_EQ(found->numa, device.function->place.node);
      EXPECT_EQ(nic->place, device.function->place);
      EXPECT_EQ(nic->physical, device.physical);
      EXPECT_EQ(nic->bytes_per_s, found->link_bytes_per_s);
      EXPECT_EQ(host::notReady(device.name, node.tree), "");
    }
    EXPECT_EQ(host::gpuAddresses(node.tree),
              base::mapped(nvidiaGpus(node.tree), &PciFunction::address));
    EXPECT_EQ(host::nearOwnCpus(ports, node.tree).near.empty(), ports.empty());
    EXPECT_GT(host::availableMemory(node.tree), 0U);
    EXPECT_TRUE(node.tree.unread().empty());
  }
}

TEST(Machine, ItsRecordNamesAFileThatTheLibraryCouldNotRead) {
  const auto folder = testing::roceNode();
  Node node = folder.node();
  const std::string rate = "/sys/class/infiniband/mlx5_3/ports/1/rate";
  node.tree.markUnread(node.tree.resolve(rate), "Input/output error", false);
  const auto devices = host::devices(node.tree);
  EXPECT_EQ(base::firstWith(devices, &host::Device::name, "mlx5_3")->link_bytes_per_s, 0U);
  ASSERT_EQ(node.tree.unread().size(), 1U);
  EXPECT_EQ(node.tree.unread()[0].path, rate);
  EXPECT_EQ(node.tree.unread()[0].reason, "Input/output error");
}

TEST(Machine, OfADamagedNodeHasNoImpossibleRates) {
  constexpr std::uint64_t kMost = 100'000'000'000'000 / 8;  // bytes a second
  const auto folder = testing::roceNode();
  for (const std::string& garbage : testing::garbageTexts()) {
    testing::fillAll(folder, garbage);
    const Tree tree = folder.node().tree;
    const std::vector<std::string> names = namesOfPorts(tree);
    EXPECT_EQ(names.size(), 8U);
    for (const host::Device& device : host::devices(tree)) {
      EXPECT_LE(device.link_bytes_per_s, kMost);
      EXPECT_LE(device.pcie_bytes_per_s, kMost);
    }
    EXPECT_EQ(
        host::nearOwnCpus(names, tree).near.size() + host::nearOwnCpus(names, tree).rest.size(),
        names.size());
    EXPECT_LE(host::largestCache(tree), std::uint64_t{1} << 40U);
    EXPECT_TRUE(host::gpuAddresses(tree).empty());
  }
}

}  // namespace
}  // namespace viaduct::diag
