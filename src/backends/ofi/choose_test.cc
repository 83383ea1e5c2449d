#include "backends/ofi/choose.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <array>

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

TEST(Choose, ADeviceIsNamedByInterfaceOrAddressAndIpv4ComesFirst) {
  EXPECT_EQ(addressFor("eth0"), "10.0.0.1");
  EXPECT_EQ(addressFor("eth1"), "10.0.1.1");
  EXPECT_EQ(addressFor("10.0.0.2"), "10.0.0.2");
  EXPECT_EQ(addressFor("fe80::1"), "fe80::1");
  EXPECT_EQ(addressFor(""), "10.0.0.1");
}

TEST(Choose, ANicIsFoundWhateverItsDomainIsCalled) {
  const std::vector<Offer> efa{{.provider = "efa", .device = "rdmap0s31-rdm", .nic = "rdmap0s31"}};
  for (const char* rail : {"rdmap0s31", "rdmap0s31-rdm", ""})
    EXPECT_TRUE(deviceFor(rail, "efa", efa)) << rail;
}

TEST(Choose, ATypoIsAnsweredWithWhatIsNearItAndWhatThereIs) {
  const std::string text = addressFor("eht1");
  EXPECT_NE(text.find("did you mean eth1"), std::string::npos) << text;
  EXPECT_NE(text.find("eth0, eth1, 10.0.0.1"), std::string::npos) << text;
  EXPECT_EQ(addressFor("wlan0").find("did you mean"), std::string::npos);
}

std::string providerOf(const std::string& wanted, std::span<const Offer> offers) {
  const auto provider = providerFor(wanted, offers);
  return provider ? *provider : provider.error().text();
}

TEST(Choose, TheBestProviderIsTakenAndOthersOnlyWhereTheyAreNamed) {
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
}

TEST(Choose, AProviderWhoseKeysWeCannotCarryIsPassedOver) {
  const std::vector<Offer> offers{{.provider = "cxi", .device = "cxi0", .usable = false},
                                  {.provider = "tcp;ofi_rxm", .device = "hsn0"}};
  EXPECT_EQ(providerOf("", offers), "tcp;ofi_rxm");
  EXPECT_NE(refusedModes(FI_MR_ENDPOINT), "");
  EXPECT_NE(refusedModes(FI_MR_RAW), "");
  EXPECT_EQ(refusedModes(FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY), "");
}

TEST(Choose, AProviderThatIsNotThereIsAnsweredWithThoseThatAre) {
  const std::string text = providerOf("nett", kTwoHosts);
  EXPECT_NE(text.find("there is: shm, tcp;ofi_rxm, net"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean net"), std::string::npos) << text;
}

TEST(Choose, NobodyTakesForRdmaWhatNobodyHasHeardOf) {
  for (const char* one : {"efa", "verbs;ofi_rxm", "cxi"}) EXPECT_TRUE(isRdma(one)) << one;
  for (const char* one : {"tcp;ofi_rxm", "psm3", "carrier_pigeon"}) EXPECT_FALSE(isRdma(one));
}

class ChooseHere : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
  }
};

TEST_F(ChooseHere, TheLoopbackIsARailWithItsNameAndItsText) {
  const auto chosen =
      choose({.backends = {"ofi"}, .rails = {"127.0.0.1"}, .ofi_provider = "tcp;ofi_rxm"});
  ASSERT_TRUE(chosen) << chosen.error().text();
  EXPECT_EQ(chosen->names, std::vector<std::string>{"lo"});
  EXPECT_EQ(chosen->kind, "tcp;ofi_rxm");
  EXPECT_FALSE(chosen->can.rdma);
  EXPECT_TRUE(chosen->can.tcp);
  EXPECT_NE(chosen->description.find("tcp;ofi_rxm over lo; inject "), std::string::npos)
      << chosen->description;
}

TEST_F(ChooseHere, EachRailThatIsNamedIsOne) {
  const auto chosen = choose({.backends = {"ofi"}, .rails = {"lo", "127.0.0.1"}});
  ASSERT_TRUE(chosen) << chosen.error().text();
  EXPECT_EQ(chosen->grounds.size(), 2U);
  EXPECT_NE(chosen->names[0], chosen->names[1]);
}

TEST_F(ChooseHere, WithoutRdmaItIsNotOpenedUnasked) {
  const auto chosen = choose({});
  if (chosen) GTEST_SKIP() << "there is RDMA here: " << chosen->description;
  EXPECT_EQ(chosen.error().code, Code::kUnsupported);
  EXPECT_NE(chosen.error().remedy.find("name ofi"), std::string::npos);
}

// Seen where this is the process's first test, as under ctest: later it is loaded already.
TEST(Library, LeavesTheProgramItsSignals) {
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
