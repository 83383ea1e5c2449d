// Tests of devices and counters, with trees of files as drivers lay them out.
#include "host/devices.h"

#include <gtest/gtest.h>

#include "base/lists.h"
#include "host/counters.h"
#include "support/temporary_folder.h"

namespace viaduct::host {
namespace {

constexpr std::uint64_t kGbit = 1'000'000'000 / 8;

class Devices : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    root_.write("/" + path, text + "\n");
  }
  // Writes /proc/net/dev: interfaces with the bytes that they have received and sent.
  void carried(const std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>& all) {
    std::string text = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes packets\n";
    for (const auto& [name, in, out] : all)
      text += "  " + name + ": " + std::to_string(in) + " 9 0 0 0 0 0 0 " + std::to_string(out) +
              " 8 0 0 0 0 0 0\n";
    put("proc/net/dev", text);
  }
  void ethernet(const std::string& name, const std::string& mbit) {
    put("sys/class/net/" + name + "/speed", mbit);
    put("sys/class/net/" + name + "/device/current_link_speed", "8.0 GT/s PCIe");
    put("sys/class/net/" + name + "/device/current_link_width", "8");
    put("sys/class/net/" + name + "/device/numa_node", "1");
  }
  void efa(const std::string& name) {
    const std::string at = "sys/class/infiniband/" + name;
    put(at + "/ports/1/rate", "100 Gb/sec (4X EDR)");
    put(at + "/ports/1/hw_counters/tx_bytes", "5000");
    put(at + "/ports/1/hw_counters/rx_bytes", "7000");
    put(at + "/device/current_link_speed", "Unknown");
    put(at + "/device/current_link_width", "0");
    put(at + "/device/physfn/current_link_speed", "16.0 GT/s PCIe");
    put(at + "/device/physfn/current_link_width", "16");
  }
  Device device(const std::string& name) const {
    const auto all = devices(Tree(root_.path()));
    const Device* const found = base::firstWith(all, &Device::name, name);
    return found == nullptr ? Device{} : *found;
  }
  Counter counter(const std::string& name) const {
    const auto all = readCounters(Tree(root_.path()));
    const Counter* const found = base::firstWith(all, &Counter::device, name);
    return found == nullptr ? Counter{} : *found;
  }
  testing::TemporaryFolder root_;
};

TEST_F(Devices, TheKernelCountsTheBytesOfAProcessAtBlockDevices) {
  EXPECT_FALSE(ownDiskBytes(Tree(root_.path())));
  put("proc/self/io", "rchar: 7\nwchar: 9\nread_bytes: 4096\nwrite_bytes: 12288");
  EXPECT_EQ(ownDiskBytes(Tree(root_.path())), (DiskBytes{4096, 12288}));
}

TEST_F(Devices, AnEthernetCardHasARateASlotAndANode) {
  carried({{"lo", 10, 10}, {"eth0", 123, 456}});
  put("sys/class/net/lo/mtu", "65536");
  ethernet("eth0", "100000");
  const Device eth = device("eth0");
  EXPECT_EQ(eth.kind, DeviceKind::kEthernet);
  EXPECT_EQ(eth.link_bytes_per_s, 100 * kGbit);
  EXPECT_EQ(eth.pcie, "8.0 GT/s x8");
  EXPECT_NEAR(static_cast<double>(eth.pcie_bytes_per_s), 7.88e9, 0.01e9);
  EXPECT_EQ(eth.numa, 1);
  EXPECT_EQ(device("lo").kind, DeviceKind::kLoopback);
  EXPECT_EQ(device("lo").link_bytes_per_s, 0U);
  EXPECT_EQ(counter("eth0"), (Counter{"eth0", 456, 123, 1}));
}

TEST_F(Devices, TheRateThatAVirtualLinkReportsIsIgnored) {
  carried({{"veth1", 1, 2}, {"eth0", 1, 2}});
  put("sys/class/net/veth1/speed", "10000");
  ethernet("eth0", "-1");
  EXPECT_EQ(device("veth1").kind, DeviceKind::kVirtual);
  EXPECT_EQ(device("veth1").link_bytes_per_s, 0U);
  EXPECT_EQ(device("eth0").link_bytes_per_s, 0U);
}

TEST_F(Devices, ABondHasTheRateOfItsLowerDevices) {
  carried({{"bond0", 1, 2}, {"eth0", 1, 2}, {"eth1", 1, 2}, {"br0", 1, 2}});
  ethernet("eth0", "25000");
  ethernet("eth1", "25000");
  for (const char* bond : {"bond0", "br0"})
    for (const char* part : {"lower_eth0", "lower_eth1"})
      put(std::string("sys/class/net/") + bond + "/" + part, "");
  put("sys/class/net/bond0/bonding/mode", "802.3ad 4");
  put("sys/class/net/br0/bridge/bridge_id", "8000");
  put("sys/class/net/bonding_masters", "bond0");
  EXPECT_EQ(device("bond0").link_bytes_per_s, 50 * kGbit);
  EXPECT_EQ(device("bond0").lower, (std::vector<std::string>{"eth0", "eth1"}));
  EXPECT_EQ(device("br0").link_bytes_per_s, 0U);
  put("sys/class/net/bond0/bonding/mode", "active-backup 1");
  EXPECT_EQ(device("bond0").link_bytes_per_s, 25 * kGbit);
}

TEST_F(Devices, ASysOfAnotherNetworkNamespaceIsIgnored) {
  carried({{"lo", 1, 1}, {"eth0", 1, 2}});
  ethernet("eth0", "25000");
  ethernet("eth1", "25000");
  EXPECT_EQ(device("eth0").link_bytes_per_s, 0U);
  EXPECT_EQ(counter("eth0").sent, 2U);
}

TEST_F(Devices, AnEfaDeviceCountsBytesAndBorrowsItsParentsSlot) {
  efa("rdmap16s27");
  const Device found = device("rdmap16s27");
  EXPECT_EQ(found.kind, DeviceKind::kRdma);
  EXPECT_EQ(found.link_bytes_per_s, 12'500'000'000U);
  EXPECT_EQ(found.pcie, "16.0 GT/s x16");
  EXPECT_EQ(counter("rdmap16s27"), (Counter{"rdmap16s27", 5000, 7000, 1}));
}

TEST_F(Devices, AnInfinibandPortCountsWords) {
  for (const char* port : {"1", "2"}) {
    const std::string at = std::string("sys/class/infiniband/mlx5_0/ports/") + port;
    put(at + "/rate", "200 Gb/sec (4X HDR)");
    put(at + "/counters/port_xmit_data", "1000");
    put(at + "/counters/port_rcv_data", "2000");
  }
  EXPECT_EQ(counter("mlx5_0"), (Counter{"mlx5_0", 1000, 2000, 4}));
  EXPECT_EQ(counter("mlx5_0:2").received, 2000U);
  EXPECT_EQ(device("mlx5_0:2").link_bytes_per_s, 25'000'000'000U);
}

TEST_F(Devices, ADeviceWithoutCountersIsLeftOut) {
  put("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)");
  put("sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "N/A (no PMA)");
  put("sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "2000");
  EXPECT_EQ(counter("mlx5_0").device, "");
  EXPECT_EQ(device("mlx5_0").name, "mlx5_0");
}

TEST(FindDevice, ByNameAndByAddress) {
  for (const char* word : {"lo", "127.0.0.1"}) {
    const auto found = findDevice(word);
    ASSERT_TRUE(found) << word;
    EXPECT_EQ(found->name, "lo");
    EXPECT_EQ(found->kind, DeviceKind::kLoopback);
  }
  for (const char* word : {"", "lo0", "127.0.0"}) EXPECT_FALSE(findDevice(word)) << word;
}

TEST(NotReady, NamesAMissingDevice) {
  EXPECT_EQ(notReady("lo"), "");
  EXPECT_EQ(notReady("127.0.0.1"), "");
  EXPECT_EQ(notReady("127.0.0.2"), "");
  EXPECT_EQ(notReady("viaduct9"), "this host has no device viaduct9");
}

TEST_F(Devices, AnRdmaPortIsReadyOnceItIsActive) {
  put("sys/class/infiniband/mlx5_0/ports/1/state", "2: INIT");
  EXPECT_EQ(notReady("mlx5_0:1", Tree(root_.path())), "the port of mlx5_0 is in state 2: INIT");
  put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
  EXPECT_EQ(notReady("mlx5_0", Tree(root_.path())), "");
}

TEST_F(Devices, EachRdmaPortHasItsOwnState) {
  put("sys/class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE");
  put("sys/class/infiniband/mlx5_1/ports/2/state", "1: DOWN");
  EXPECT_EQ(notReady("mlx5_1:1", Tree(root_.path())), "");
  EXPECT_EQ(notReady("mlx5_1:2", Tree(root_.path())), "the port of mlx5_1:2 is in state 1: DOWN");
}

TEST(Delta, TellsWrapsResetsAndStopsApart) {
  constexpr std::uint64_t kTurn = std::uint64_t{1} << 32U;
  EXPECT_EQ(deltaOf(100, 350, 4)->bytes, 1000U);
  const auto turned = deltaOf(kTurn - 10, 30, 1);
  ASSERT_TRUE(turned);
  EXPECT_EQ(turned->bytes, 40U);
  EXPECT_TRUE(turned->wrapped);
  EXPECT_FALSE(deltaOf(5000, 30, 1)) << "a reset";
  EXPECT_FALSE(deltaOf(2 * kTurn, 30, 1)) << "a reset";
  EXPECT_FALSE(deltaOf(100, kTurn - 1, 4)) << "an old port that stands at its end";
  EXPECT_EQ(deltaOf(100, kTurn - 1, 1)->bytes, kTurn - 101);
}

TEST_F(Devices, RatesAreReadAsTheKernelWritesThem) {
  const auto rdma = [&](const char* text) {
    put("sys/class/infiniband/mlx5_0/ports/1/rate", text);
    return device("mlx5_0").link_bytes_per_s;
  };
  EXPECT_EQ(rdma("12.5 Gb/sec (4X SDR)"), 1'562'500'000U);
  EXPECT_EQ(rdma("none"), 0U);
  const auto pcie = [&](const char* speed, const char* width) {
    put("sys/class/infiniband/mlx5_0/device/current_link_speed", speed);
    put("sys/class/infiniband/mlx5_0/device/current_link_width", width);
    return device("mlx5_0").pcie_bytes_per_s;
  };
  EXPECT_EQ(pcie("5.0 GT/s PCIe", "8"), 4'000'000'000U);
  EXPECT_EQ(pcie("64.0 GT/s PCIe", "16"), 121'000'000'000U);
  EXPECT_EQ(pcie("Unknown", "0"), 0U);
  EXPECT_EQ(pcie("16.0 GT/s PCIe", "255"), 0U) << "what a card says that is not there";
}

}  // namespace
}  // namespace viaduct::host
