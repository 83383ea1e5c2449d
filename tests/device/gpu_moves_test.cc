// Moves blocks through memory of a GPU and compares them with the bytes that were sent, and digests
// of blocks there with those of the host. The same test runs over the fake driver, and over
// NVIDIA's where there is a GPU (./dev test --device).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "device/driver_memory.h"
#include "device/driver_under_test.h"
#include "device/fake_cuda.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

// The setting for the size of blocks below which a kernel copies, and the size of a block.
using Case = std::tuple<std::string, std::uint64_t>;

// An agent that moves blocks within itself.
class OneGpuAgent : public ::testing::Test {
 protected:
  void open(const std::string& kernel_below) {
    auto opened = Agent::open(Settings{.name = "gpu",
                                       .listen = {},
                                       .backends = {"cuda"},
                                       .others = {{"VIADUCT_CUDA_LIBRARY", kDriverUnderTest},
                                                  {"VIADUCT_CUDA_KERNEL_BELOW", kernel_below}}});
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
    auto self = agent_->self();
    ASSERT_TRUE(self) << self.error().text();
    self_.emplace(*std::move(self));
    ASSERT_TRUE(self_->ready(30s));
  }

  std::optional<Agent> agent_;
  std::optional<Peer> self_;
};

class GpuMoves : public OneGpuAgent, public ::testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_WITHOUT_A_GPU();
    open(std::get<0>(GetParam()));
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

INSTANTIATE_TEST_SUITE_P(Blocks, GpuMoves,
                         ::testing::Combine(::testing::ValuesIn(kKernelBelow),
                                            ::testing::ValuesIn(kBlockSizes)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + "_" +
                                  std::to_string(std::get<1>(one.param));
                         });

class GpuAgent : public OneGpuAgent {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_WITHOUT_A_GPU();
    open("32KiB");
    auto host = agent_->allocate(kBytes, {.label = "host"});
    ASSERT_TRUE(host) << host.error().text();
    host_.emplace(*std::move(host));
  }
  static std::unique_ptr<DriverMemory> make(cuda::MemoryClass kind) {
    auto memory = DriverMemory::make(kDriverUnderTest, kind, kBytes);
    EXPECT_TRUE(memory) << memory.error().text();
    return *std::move(memory);
  }
  // Pins memory of the driver, and writes all of the host memory to it.
  Pin pinned(const DriverMemory& memory, const std::string& label) {
    auto pin = agent_->pin(Segment::gpu(0, memory.address(), kBytes), label);
    EXPECT_TRUE(pin) << pin.error().text();
    EXPECT_TRUE(self_->waitPin(label, 30s));
    return *std::move(pin);
  }
  Status write(const Pin& to, std::uint64_t block = 4096) {
    const auto blocks = [&](const Pin& pin) {
      return Selection{
          *Blocks::strided({.base = pin.info().address, .bytes = block, .count = kBytes / block})};
    };
    VIADUCT_TRY(auto transfer, agent_->plan(OpKind::kWrite, *self_, blocks(*host_), blocks(to)));
    VIADUCT_CHECK(transfer.post());
    return transfer.wait(60s);
  }

  static constexpr std::uint64_t kBytes = 4 << 20;
  std::optional<Pin> host_;
};

TEST_F(GpuAgent, MemoryOfEachPinnedKindIsMoved) {
  for (const auto kind : {cuda::MemoryClass::kLegacy, cuda::MemoryClass::kShareable,
                          cuda::MemoryClass::kPrivate, cuda::MemoryClass::kPool}) {
    const auto memory = make(kind);
    const Pin pin = pinned(*memory, std::string(cuda::memoryClassName(kind)));
    for (const std::uint64_t block : {std::uint64_t{4096}, kBytes}) {
      fillRandom(host_->bytes(), block);
      const Status ended = write(pin, block);
      ASSERT_TRUE(ended) << cuda::memoryClassName(kind) << block << ended.error().text();
      std::vector<std::byte> arrived(kBytes);
      ASSERT_TRUE(cuda::copyToHost(memory->context(), arrived, memory->address()));
      EXPECT_TRUE(same(arrived, host_->bytes())) << cuda::memoryClassName(kind) << block;
    }
  }
}

TEST_F(GpuAgent, MemoryThatWasFreedIsDenied) {
  for (const auto kind : {cuda::MemoryClass::kLegacy, cuda::MemoryClass::kShareable}) {
    const auto memory = make(kind);
    const Pin pin = pinned(*memory, std::string(cuda::memoryClassName(kind)));
    ASSERT_TRUE(write(pin));
    ASSERT_TRUE(memory->free());
    std::unique_ptr<DriverMemory> again;  // mostly at the same address
    for (int round = 0; round < 2; ++round) {
      const Status denied = write(pin);
      ASSERT_FALSE(denied);
      EXPECT_EQ(denied.error().code, Code::kDenied) << denied.error().text();
      EXPECT_NE(denied.error().text().find("freed since it was pinned"), std::string::npos)
          << denied.error().text();
      again = make(kind);
    }
    const Pin new_pin = pinned(*again, "again");
    const Status works = write(new_pin);
    EXPECT_TRUE(works) << works.error().text();
  }
}

// A child of fork() drops its copies of the agent. It calls nothing of the driver.
TEST_F(GpuAgent, AChildOfForkIsRefused) {
  const auto memory = make(cuda::MemoryClass::kLegacy);
  const Pin pin = pinned(*memory, "gpu");
  ASSERT_TRUE(write(pin));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto refused = agent_->allocate(4096, {.device = 0});
    const bool right = !refused && refused.error().text().find("fork()") != std::string::npos &&
                       (!kDriverIsFake || fakeCudaCount("after fork") == 0);
    self_.reset();
    agent_.reset();
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Status works = write(pin);
  EXPECT_TRUE(works) << works.error().text();
}

// Digests that a GPU computes, of blocks at any address and of any size.
class GpuDigests : public OneGpuAgent {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_WITHOUT_A_GPU();
    open("32KiB");
  }
  // Memory of the GPU with random bytes, of which content_ is a copy.
  void fill(std::uint64_t bytes) {
    auto host = agent_->allocate(bytes, {.label = "host"});
    auto gpu = agent_->allocate(bytes, {.label = "gpu", .device = 0});
    ASSERT_TRUE(host && gpu);
    ASSERT_TRUE(self_->waitPin("gpu", 30s));
    fillRandom(host->bytes(), 9);
    auto copy = agent_->plan(OpKind::kWrite, *self_, whole(*host), whole(*gpu));
    ASSERT_TRUE(copy) << copy.error().text();
    ASSERT_TRUE(copy->post());
    ASSERT_TRUE(copy->wait(60s));
    content_.emplace(*std::move(host));
    gpu_.emplace(*std::move(gpu));
  }
  static Selection whole(const Pin& pin) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = pin.size(), .count = 1})};
  }
  void expectRight(const std::vector<Extent>& blocks) const {
    std::vector<Extent> there = blocks;
    for (Extent& block : there) block.address += gpu_->info().address;
    const auto digests = agent_->digestBlocks({*Blocks::list(there)});
    ASSERT_TRUE(digests) << digests.error().text();
    ASSERT_EQ(digests->size(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i)
      ASSERT_EQ((*digests)[i],
                digestOf(content_->bytes().subspan(blocks[i].address, blocks[i].bytes)))
          << blocks[i].bytes << " bytes at " << blocks[i].address;
  }

  std::optional<Pin> content_, gpu_;
};

TEST_F(GpuDigests, OfBlocksOfAnySizeAtAnyAddressAreThoseOfTheHost) {
  fill(3 << 20);
  for (const std::uint64_t at : {0, 1, 4, 8, 16, 24, 500, 512, 4096, 5001})
    for (const std::uint64_t bytes : {1, 7, 8, 15, 511, 512, 513, 4096, 5000, 16391, 1'000'003})
      expectRight({{.address = at, .bytes = bytes}});
  std::vector<Extent> blocks;
  std::mt19937 random(12);
  for (std::uint64_t at = 0; at + 21'000 < gpu_->size(); at += blocks.back().bytes + random() % 20)
    blocks.push_back({.address = at, .bytes = 1 + random() % 20'000});
  expectRight(blocks);
}

// The blocks exceed the bytes and the number of blocks that the GPU gets at once.
TEST_F(GpuDigests, OfManyBlocksAndOfLargeOnesAreThoseOfTheHost) {
  fill(200 << 20);
  expectRight({{.address = 24, .bytes = gpu_->size() - 31}});
  std::vector<Extent> blocks;
  for (std::uint64_t i = 0; i < 20'000; ++i) blocks.push_back({.address = i * 1000, .bytes = 1000});
  blocks.push_back({.address = 20 << 20, .bytes = 180 << 20});
  expectRight(blocks);
}

// A kernel that reads freed memory would break the GPU for the whole process.
TEST_F(GpuDigests, OfMemoryThatWasFreedAreDenied) {
  {
    const auto memory = DriverMemory::make(kDriverUnderTest, cuda::MemoryClass::kLegacy, 4 << 20);
    ASSERT_TRUE(memory) << memory.error().text();
    const auto pin = agent_->pin(Segment::gpu(0, (*memory)->address(), 4 << 20), "freed");
    ASSERT_TRUE(pin) << pin.error().text();
    EXPECT_TRUE(agent_->digestBlocks(whole(*pin)));
    ASSERT_TRUE((*memory)->free());
    const auto denied = agent_->digestBlocks(whole(*pin));
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().code, Code::kDenied) << denied.error().text();
  }
  fill(1 << 20);
  expectRight({{.address = 0, .bytes = 1 << 20}});
}

}  // namespace
}  // namespace viaduct::testing
