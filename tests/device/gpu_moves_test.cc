// Moves blocks through memory of a GPU and compares them with the bytes that were sent. The same
// test runs over the fake driver, and over NVIDIA's where there is a GPU (./dev test --device).
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/bytes.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kLibrary = VIADUCT_CUDA_UNDER_TEST;

// The setting for the size of blocks below which a kernel copies, and the size of a block.
using Case = std::tuple<std::string, std::uint64_t>;

class GpuMoves : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (kLibrary == "libcuda.so.1" && !std::filesystem::exists("/dev/nvidia0"))
      GTEST_SKIP() << "no /dev/nvidia0: this host has no NVIDIA GPU";
    auto opened =
        Agent::open(Settings{.name = "gpu",
                             .listen = {},
                             .backends = {"cuda"},
                             .others = {{"VIADUCT_CUDA_LIBRARY", std::string(kLibrary)},
                                        {"VIADUCT_CUDA_KERNEL_BELOW", std::get<0>(GetParam())}}});
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
    auto self = agent_->self();
    ASSERT_TRUE(self) << self.error().text();
    self_.emplace(*std::move(self));
    ASSERT_TRUE(self_->ready(30s));
  }
  Pin allocated(const char* label, std::optional<std::uint32_t> gpu = {}) {
    auto pin = agent_->allocate(kBlocks * block_, {.label = label, .device = gpu});
    EXPECT_TRUE(pin) << pin.error().text();
    EXPECT_TRUE(self_->waitPin(label, 30s));
    return *std::move(pin);
  }
  // Writes block i of `from` to block order[i] of `to`.
  void move(const Pin& from, const Pin& to, std::vector<std::uint32_t> order) {
    const auto blocks = [&](const Pin& pin) {
      return *Blocks::strided({.base = pin.info().address, .bytes = block_, .count = kBlocks});
    };
    auto transfer = agent_->plan(OpKind::kWrite, *self_, {blocks(from)},
                                 {blocks(to), std::move(order)}, {.require = "gpu-direct"});
    ASSERT_TRUE(transfer) << transfer.error().text();
    for (int post = 0; post < 2; ++post) {
      ASSERT_TRUE(transfer->post());
      const Status ended = transfer->wait(60s);
      ASSERT_TRUE(ended) << ended.error().text();
    }
    EXPECT_EQ(transfer->path().text().substr(0, 11), "cuda/direct") << transfer->path().text();
  }

  static constexpr std::uint32_t kBlocks = 509;
  const std::uint64_t block_ = std::get<1>(GetParam());
  std::optional<Agent> agent_;
  std::optional<Peer> self_;
};

TEST_P(GpuMoves, EachBlockArrivesAtItsPlace) {
  const Pin sent = allocated("sent"), arrived = allocated("arrived");
  const Pin first = allocated("first", 0), second = allocated("second", 0);
  fillRandom(sent.bytes(), 7);
  std::vector<std::uint32_t> order(kBlocks);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(11));
  move(sent, first, order);
  move(first, second, {});
  move(second, arrived, {});
  for (std::uint32_t i = 0; i < kBlocks; ++i)
    ASSERT_TRUE(same(sent.bytes().subspan(i * block_, block_),
                     arrived.bytes().subspan(order[i] * block_, block_)))
        << "block " << i;
}

const std::string kKernelBelow[] = {"auto", "0", "1GiB"};
constexpr std::uint64_t kBlockSizes[] = {1, 48, 1000, 4096, 16 << 10, 100'000};

INSTANTIATE_TEST_SUITE_P(VIADUCT_DRIVER_UNDER_TEST, GpuMoves,
                         ::testing::Combine(::testing::ValuesIn(kKernelBelow),
                                            ::testing::ValuesIn(kBlockSizes)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + "_" +
                                  std::to_string(std::get<1>(one.param));
                         });

}  // namespace
}  // namespace viaduct::testing
