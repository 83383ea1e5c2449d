// Memory of a GPU over a NIC, without stages: docs/design/0033-gpu-memory-over-fabrics.md. This is
// not built yet, so the test fails where it finds the hardware to build it on.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <filesystem>
#include <optional>
#include <string>

#include "device/driver_under_test.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

bool hasRdmaDevice() {
  std::error_code absent;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", absent);
  return !absent && devices != std::filesystem::directory_iterator();
}

class GpuOverAFabric : public ::testing::TestWithParam<std::string> {};

TEST_P(GpuOverAFabric, IsReachedWithoutStages) {
  VIADUCT_SKIP_WITHOUT_A_GPU();
  if (!hasRdmaDevice()) GTEST_SKIP() << "no RDMA device: this host has no NIC beside its GPU";
  std::optional<Agent> agents[2];
  std::optional<Pin> pins[2];
  for (int i = 0; i < 2; ++i) {
    auto opened = Agent::open({.name = "gpu-" + std::to_string(i),
                               .backends = {GetParam(), "cuda"},
                               .others = {{"VIADUCT_CUDA_LIBRARY", kDriverUnderTest}}});
    ASSERT_TRUE(opened) << opened.error().text();
    agents[i].emplace(*std::move(opened));
    auto pin = agents[i]->allocate(1 << 20, {.label = "gpu", .device = 0});
    ASSERT_TRUE(pin) << pin.error().text();
    pins[i].emplace(*std::move(pin));
  }
  auto peer = agents[0]->connect(agents[1]->card());
  ASSERT_TRUE(peer && peer->ready(30s));
  const auto there = peer->waitPin("gpu", 30s);
  ASSERT_TRUE(there) << there.error().text();
  const auto whole = [](const PinInfo& pin) {
    return Selection{*Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1}), {}};
  };
  auto transfer = agents[0]->plan(OpKind::kWrite, *peer, whole(pins[0]->info()), whole(*there),
                                  {.require = "gpu-direct,backend:" + GetParam()});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const Status ended = transfer->wait(30s);
  EXPECT_TRUE(ended) << ended.error().text();
}

INSTANTIATE_TEST_SUITE_P(Backends, GpuOverAFabric, ::testing::Values("ofi", "ucx"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace viaduct::testing
