#include "backends/ofi/choose.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace viaduct::ofi {
namespace {

const std::vector<Offer> kTwoHosts{
    {.provider = "shm", .device = "shm"},
    {.provider = "tcp;ofi_rxm", .device = "eth0", .address = "fe80::1", .ipv6 = true},
    {.provider = "tcp;ofi_rxm", .device = "eth0", .address = "10.0.0.1"},
    {.provider = "tcp;ofi_rxm", .device = "eth0", .address = "10.0.0.2"},
    {.provider = "tcp;ofi_rxm", .device = "eth1", .address = "10.0.1.1"},
    {.provider = "net", .device = "eth0", .address = "10.0.0.1"},
};

std::string addressFor(const std::string& rail, std::span<const Offer> offers = kTwoHosts) {
  const auto offer = deviceFor(rail, "tcp;ofi_rxm", offers);
  return offer ? offer->address : offer.error().text();
}

TEST(Choose, ARailNamesAnInterfaceOrAddressAndIpv4ComesFirst) {
  EXPECT_EQ(addressFor("eth0"), "10.0.0.1");
  EXPECT_EQ(addressFor("eth1"), "10.0.1.1");
  EXPECT_EQ(addressFor("10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(addressFor("fe80::1"), "fe80::1");
  EXPECT_EQ(addressFor(""), "10.0.0.1");
}

TEST(Choose, ARailNamesANicByItsNicOrDomain) {
  const std::vector<Offer> efa{{.provider = "efa", .device = "rdmap0s31-rdm", .nic = "rdmap0s31"}};
  for (const char* rail : {"rdmap0s31", "rdmap0s31-rdm", ""})
    EXPECT_TRUE(deviceFor(rail, "efa", efa)) << rail;
}

TEST(Choose, TheErrorForATypoProposesANameAndListsDevices) {
  const std::string text = addressFor("eht1");
  EXPECT_NE(text.find("did you mean eth1"), std::string::npos) << text;
  EXPECT_NE(text.find("eth0, eth1, 10.0.0.1"), std::string::npos) << text;
  EXPECT_EQ(addressFor("wlan0").find("did you mean"), std::string::npos);
}

std::string providerOf(const std::string& wanted, std::span<const Offer> offers) {
  const auto provider = providerFor(wanted, offers);
  return provider ? *provider : provider.error().text();
}

TEST(Choose, TheBestProviderIsUsedUnlessAnotherIsNamed) {
  EXPECT_EQ(providerOf("", kTwoHosts), "tcp;ofi_rxm");
  EXPECT_EQ(providerOf("shm", kTwoHosts), "shm");
  EXPECT_EQ(providerOf("tcp", kTwoHosts), "tcp;ofi_rxm");
  std::vector<Offer> more = kTwoHosts;
  more.push_back({.provider = "verbs;ofi_rxm", .device = "mlx5_0"});
  EXPECT_EQ(providerOf("", more), "verbs;ofi_rxm");
  more.push_back({.provider = "efa", .device = "rdmap0s31-rdm"});
  EXPECT_EQ(providerOf("", more), "efa");
  const std::vector<Offer> only_shm{{.provider = "shm", .device = "shm"}};
  EXPECT_NE(providerOf("", only_shm).find("there is: shm"), std::string::npos);
  EXPECT_NE(providerOf("", {}).find("there is none; what to do: see"), std::string::npos)
      << providerOf("", {});
}

TEST(Choose, AnUnusableProviderIsNotChosen) {
  const std::vector<Offer> offers{{.provider = "cxi", .device = "cxi0", .usable = false},
                                  {.provider = "tcp;ofi_rxm", .device = "hsn0"}};
  EXPECT_EQ(providerOf("", offers), "tcp;ofi_rxm");
}

TEST(Choose, TheRefusalNamesTheUnsupportedModes) {
  const auto names = [](int modes, const char* one) {
    return refusedModes(modes).find(one) != std::string::npos;
  };
  EXPECT_TRUE(names(FI_MR_RAW | FI_MR_PROV_KEY, "FI_MR_RAW"));
  EXPECT_TRUE(names(FI_MR_ENDPOINT | FI_MR_PROV_KEY, "FI_MR_ENDPOINT and FI_MR_PROV_KEY"));
  EXPECT_TRUE(names(FI_MR_ENDPOINT | FI_MR_LOCAL, "FI_MR_ENDPOINT and FI_MR_LOCAL"));
  EXPECT_EQ(refusedModes(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY), "");
  EXPECT_EQ(refusedModes(FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR), "");
}

TEST(Choose, TheErrorForAMissingProviderListsTheOthers) {
  const std::string text = providerOf("nett", kTwoHosts);
  EXPECT_NE(text.find("there is: shm, tcp;ofi_rxm, net"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean net"), std::string::npos) << text;
  EXPECT_EQ(text.find("device"), std::string::npos) << "a provider is none: " << text;
}

// A machine with two sockets, each with an EFA device. A further address is not a further device.
class TwoSockets : public ::testing::Test {
 protected:
  TwoSockets() {
    std::string pattern = ::testing::TempDir() + "ofi_choose_XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    put("proc/self/status", "Cpus_allowed_list:\t0-7");
    for (const std::string node : {"0", "1"}) {
      const std::string folder = "sys/devices/system/node/node" + node;
      put(folder + "/cpulist", node == "0" ? "0-3" : "4-7");
      put(folder + "/distance", node == "0" ? "10 21" : "21 10");
      const std::string function = "sys/devices/pci0000:0" + node + "/0000:0" + node + ":1c.0";
      put(function + "/numa_node", node);
      const std::string device = "sys/class/infiniband/rdmap" + node + "s28";
      std::filesystem::create_directories(root_ / device);
      std::filesystem::create_directory_symlink("/" + function, root_ / device / "device");
    }
  }
  ~TwoSockets() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  std::vector<std::string> rails(std::vector<std::string> named, const std::string& provider) {
    const auto found = railsFor(named, provider, offers_, host::Tree(root_));
    if (!found) return {found.error().text()};
    left_out_ = found->left_out;
    std::vector<std::string> out;
    for (const Offer& one : found->offers) out.push_back(one.device + one.address);
    return out;
  }

  const std::vector<Offer> offers_{
      {.provider = "efa", .device = "rdmap0s28-rdm", .nic = "rdmap0s28"},
      {.provider = "efa", .device = "rdmap1s28-rdm", .nic = "rdmap1s28"},
      {.provider = "efa", .device = "rdmap0s28-rdm", .nic = "rdmap0s28", .address = "10.0.0.1"},
      {.provider = "cxi", .device = "rdmap0s28", .usable = false},
      {.provider = "tcp", .device = "eth0", .address = "10.0.0.1"},
      {.provider = "tcp", .device = "eth1", .address = "10.0.1.1"}};
  std::vector<std::string> left_out_;
  std::filesystem::path root_;
};

TEST_F(TwoSockets, OverRdmaEachDeviceNearOurCpusIsARail) {
  const std::vector<std::string> both{"rdmap0s28-rdm", "rdmap1s28-rdm"};
  EXPECT_EQ(rails({}, "efa"), both);
  EXPECT_TRUE(left_out_.empty());
  put("proc/self/status", "Cpus_allowed_list:\t5");
  EXPECT_EQ(rails({}, "efa"), std::vector<std::string>{"rdmap1s28-rdm"});
  EXPECT_EQ(left_out_, std::vector<std::string>{"rdmap0s28-rdm"});
}

TEST_F(TwoSockets, MemoryHasTheRailOfItsOwnSocket) {
  const auto opened = railsFor({}, "efa", offers_, host::Tree(root_));
  ASSERT_TRUE(opened);
  const auto near = nearRails(opened->offers, host::Tree(root_));
  EXPECT_TRUE(near.differ());
  EXPECT_EQ(near.to({.node = 0}), 0b01U);
  EXPECT_EQ(near.to({.node = 1}), 0b10U);
}

TEST_F(TwoSockets, OnlyNamedRailsAreUsed) {
  put("proc/self/status", "Cpus_allowed_list:\t5");
  EXPECT_EQ(rails({"rdmap0s28"}, "efa"), std::vector<std::string>{"rdmap0s28-rdm"});
  EXPECT_TRUE(left_out_.empty());
  const std::string refusal = rails({"rdmap0s28", "rdmap2s28"}, "efa").at(0);
  EXPECT_NE(refusal.find("efa has no device rdmap2s28"), std::string::npos) << refusal;
}

TEST_F(TwoSockets, OverTcpOrWithoutUsableDevicesTheFirstIsTheRail) {
  EXPECT_EQ(rails({}, "tcp"), std::vector<std::string>{"eth010.0.0.1"});
  EXPECT_EQ(rails({}, "cxi"), std::vector<std::string>{"rdmap0s28"}) << "to be refused by name";
}

TEST(Choose, UnknownProvidersDoNotCountAsRdma) {
  for (const char* one : {"efa", "verbs;ofi_rxm", "cxi"}) EXPECT_TRUE(isRdma(one)) << one;
  for (const char* one : {"tcp;ofi_rxm", "psm3", "carrier_pigeon"}) EXPECT_FALSE(isRdma(one));
}

class ChooseHere : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
  }
};

TEST_F(ChooseHere, LoopbackIsARailNamedByItsInterface) {
  const auto chosen =
      choose({.backends = {"ofi"}, .rails = {"127.0.0.1"}, .ofi_provider = "tcp;ofi_rxm"});
  ASSERT_TRUE(chosen) << chosen.error().text();
  EXPECT_EQ(chosen->names, std::vector<std::string>{"lo"});
  EXPECT_EQ(chosen->kind, "tcp;ofi_rxm");
  EXPECT_FALSE(chosen->can.rdma);
  EXPECT_TRUE(chosen->can.tcp);
  EXPECT_NE(chosen->description.find("tcp;ofi_rxm over lo; inject "), std::string::npos)
      << chosen->description;
  EXPECT_NE(chosen->description.find("pieces below 16 KiB are packed"), std::string::npos)
      << chosen->description;
}

TEST_F(ChooseHere, AProviderOverMemoryIsNoNetwork) {
  const auto chosen = choose({.backends = {"ofi"}, .ofi_provider = "shm"});
  if (!chosen) GTEST_SKIP() << "skipped: " << chosen.error().text();
  EXPECT_TRUE(chosen->can.same_host);
  EXPECT_FALSE(chosen->can.tcp);
}

TEST_F(ChooseHere, TwoNamesOfOneInterfaceAreTwoRails) {
  const auto chosen = choose({.backends = {"ofi"}, .rails = {"lo", "127.0.0.1"}});
  ASSERT_TRUE(chosen) << chosen.error().text();
  EXPECT_EQ(chosen->domains.size(), 2U);
  EXPECT_NE(chosen->names[0], chosen->names[1]);
}

TEST(Choose, ItSaysWhyGpuMemoryIsStaged) {
  const std::vector<std::string> hmem{"efa"};
  constexpr std::uint32_t kOld = FI_VERSION(1, 17), kNew = FI_VERSION(2, 5);
  EXPECT_EQ(whyGpuIsStaged(kOld, "efa", hmem),
            "libfabric 1.17 has no FI_MR_DMABUF, which 1.20 has");
  EXPECT_EQ(whyGpuIsStaged(kNew, "verbs;ofi_rxm", hmem),
            "libfabric offers no FI_HMEM for verbs;ofi_rxm");
  EXPECT_EQ(whyGpuIsStaged(kNew, "efa", hmem), "this backend registers host memory only");
  EXPECT_EQ(whyGpuIsStaged(kOld, "tcp", {}), "this backend registers host memory only");
}

// libfabric reads FI_PROVIDER only once, so the test has to be the first in its process. Under
// ctest each test has its own process.
TEST_F(ChooseHere, TheErrorNamesAFilterThatHidesAllProviders) {
  ::setenv("FI_PROVIDER", "carrier_pigeon", 1);
  const auto chosen = choose({.backends = {"ofi"}});
  ::unsetenv("FI_PROVIDER");
  if (chosen) GTEST_SKIP() << "skipped: libfabric was asked before";
  const std::string text = chosen.error().text();
  EXPECT_NE(text.find("FI_PROVIDER=carrier_pigeon hides all others"), std::string::npos) << text;
  EXPECT_NE(text.find("what to do: unset FI_PROVIDER"), std::string::npos) << text;
}

TEST_F(ChooseHere, WithoutRdmaItOpensOnlyIfNamed) {
  const auto chosen = choose({});
  if (chosen) GTEST_SKIP() << "there is RDMA here: " << chosen->description;
  EXPECT_EQ(chosen.error().code, Code::kUnsupported);
  EXPECT_NE(chosen.error().remedy.find("name ofi"), std::string::npos);
}

// Effective only as the first test of a process, as under ctest. Later the library is loaded
// already.
TEST(OfiLibrary, LeavesTheProgramsSignalHandlersAlone) {
  constexpr std::array kTaken{SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGABRT};
  const auto handlers = [&] {
    std::vector<void (*)(int)> out;
    for (const int n : kTaken) {
      struct sigaction now{};
      ::sigaction(n, nullptr, &now);
      out.push_back(now.sa_handler);
    }
    return out;
  };
  const auto before = handlers();
  if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
  EXPECT_EQ(handlers(), before);
}

}  // namespace
}  // namespace viaduct::ofi
