// Transfers of two agents between memory of GPUs, host memory and files. Over a network backend
// they go through host memory of both agents.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "device/fake_cuda_testing.h"
#include "support/bytes.h"
#include "support/ofi.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<std::byte> noise(std::uint64_t bytes, std::uint64_t seed) {
  std::vector<std::byte> out(bytes);
  fillRandom(out, seed);
  return out;
}

// The bytes of pinned memory, also of a GPU's.
std::span<std::byte> bytesOf(const Pin& pin) {
  if (pin.info().kind == MemoryKind::kHost) return pin.bytes();
  return {reinterpret_cast<std::byte*>(fakeCudaAlias(pin.info().address)), pin.size()};
}

Selection all(const PinInfo& pin, std::uint64_t block = 0) {
  if (block == 0) block = pin.bytes;
  return {*Blocks::strided({.base = pin.address, .bytes = block, .count = pin.bytes / block})};
}

class DeviceAgents : public ::testing::Test {
 protected:
  void open(const std::string& network) {
    for (auto [agent, name] : {std::pair(&a_, "gpu-a"), std::pair(&b_, "gpu-b")}) {
      auto opened = Agent::open(Settings{
          .name = name,
          .backends = {network, "cuda", "file"},
          .ofi_provider = ofiProvider(),
          .detect = 8h,  // no test here loses a peer by its silence
          .others = {{"VIADUCT_CUDA_LIBRARY", kFakeCuda}, {"VIADUCT_CUDA_KERNEL_BELOW", "32KiB"}}});
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    auto peer = a_->connect(b_->card());
    ASSERT_TRUE(peer) << peer.error().text();
    b_peer_.emplace(*std::move(peer));
    ASSERT_TRUE(b_peer_->ready(20s));
  }
  void TearDown() override {
    fakeCudaPause(false);
    b_peer_.reset();
    a_.reset();
    b_.reset();
  }

  static Pin gpu(Agent& agent, std::uint64_t bytes, const char* label, std::uint32_t device) {
    auto pin = agent.allocate(bytes, {.label = label, .device = device});
    EXPECT_TRUE(pin) << pin.error().text();
    return *std::move(pin);
  }
  static Pin host(Agent& agent, std::uint64_t bytes, const char* label) {
    auto pin = agent.allocate(bytes, {.label = label});
    EXPECT_TRUE(pin) << pin.error().text();
    return *std::move(pin);
  }
  PinInfo atB(const char* label) {
    auto info = b_peer_->waitPin(label, 20s);
    EXPECT_TRUE(info) << info.error().text();
    return *info;
  }
  Result<Path> move(OpKind kind, Selection here, Selection there, const std::string& require = "") {
    VIADUCT_TRY(auto transfer, a_->plan(kind, *b_peer_, {std::move(here)}, {std::move(there)},
                                        {.require = require}));
    VIADUCT_CHECK(transfer.post());
    VIADUCT_CHECK(transfer.wait(60s));
    return transfer.path();
  }

  std::optional<Agent> a_, b_;
  std::optional<Peer> b_peer_;
};

// Transfers in stages over one network backend.
class DeviceStages : public DeviceAgents, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { open(GetParam()); }
  Result<Path> staged(OpKind kind, Selection here, Selection there) {
    return move(kind, std::move(here), std::move(there), "backend:" + GetParam());
  }
  // The shares of a path with these stages, each with all bytes.
  void expectStages(const Result<Path>& path, const std::vector<std::string>& stages,
                    std::uint64_t bytes) const {
    ASSERT_TRUE(path) << path.error().text();
    ASSERT_EQ(path->shares.size(), stages.size()) << path->text();
    for (std::size_t i = 0; i < stages.size(); ++i) {
      EXPECT_EQ(path->shares[i].backend, stages[i]) << path->text();
      EXPECT_EQ(path->shares[i].bytes, bytes) << path->text();
    }
  }
};

TEST_P(DeviceStages, MoveBetweenGpusBothWays) {
  const auto content = noise(9 * kMiB + 77, 1);
  const Pin here = gpu(*a_, content.size(), "", 0);
  const Pin there = gpu(*b_, content.size(), "there", 1);
  std::ranges::copy(content, bytesOf(here).begin());
  const auto written = staged(OpKind::kWrite, all(here.info()), all(atB("there")));
  expectStages(written, {"cuda", GetParam(), "cuda"}, content.size());
  EXPECT_TRUE(same(bytesOf(there), content));
  std::ranges::fill(bytesOf(here), std::byte{0});
  const auto read = staged(OpKind::kRead, all(here.info()), all(atB("there")));
  expectStages(read, {"cuda", GetParam(), "cuda"}, content.size());
  EXPECT_TRUE(same(bytesOf(here), content));
}

TEST_P(DeviceStages, MoveManySmallBlocksInAnyOrder) {
  constexpr std::uint64_t kBlock = 4096, kBlocks = 2000;
  const auto content = noise(kBlock * kBlocks, 2);
  const Pin here = gpu(*a_, content.size(), "", 0);
  const Pin there = gpu(*b_, content.size(), "there", 1);
  std::ranges::copy(content, bytesOf(there).begin());
  std::vector<std::uint32_t> order(kBlocks);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  Selection from = all(atB("there"), kBlock);
  from.indices = Indices(order);
  const std::uint64_t kernels = fakeCudaBytesByKernels();
  const auto path = staged(OpKind::kRead, all(here.info(), kBlock), std::move(from));
  ASSERT_TRUE(path) << path.error().text();
  for (std::size_t i = 0; i < kBlocks; ++i)
    ASSERT_TRUE(same(bytesOf(here).subspan(i * kBlock, kBlock),
                     std::span(content).subspan(order[i] * kBlock, kBlock)));
  EXPECT_GT(fakeCudaBytesByKernels(), kernels) << "small blocks go by the kernel";
}

TEST_P(DeviceStages, MoveBetweenGpuAndHostMemory) {
  const auto content = noise(5 * kMiB, 4);
  const Pin here = host(*a_, content.size(), "");
  const Pin there = gpu(*b_, content.size(), "there", 1);
  std::ranges::copy(content, bytesOf(here).begin());
  const auto written = staged(OpKind::kWrite, all(here.info()), all(atB("there")));
  expectStages(written, {GetParam(), "cuda"}, content.size());
  EXPECT_TRUE(same(bytesOf(there), content));
  const Pin back = host(*a_, content.size(), "");
  const auto read = staged(OpKind::kRead, all(back.info()), all(atB("there")));
  expectStages(read, {"cuda", GetParam()}, content.size());
  EXPECT_TRUE(same(bytesOf(back), content));
}

TEST_P(DeviceStages, MoveAFileIntoAGpuAndBack) {
  const TemporaryFolder folder;
  const auto content = noise(6 * kMiB, 5);
  std::ofstream(folder.path() + "/f", std::ios::binary)
      .write(reinterpret_cast<const char*>(content.data()),
             static_cast<std::streamsize>(content.size()));
  const auto file = b_->pin(Segment::file(folder.path() + "/f"), "file");
  ASSERT_TRUE(file) << file.error().text();
  const Pin here = gpu(*a_, content.size(), "", 0);
  const auto read = staged(OpKind::kRead, all(here.info()), all(atB("file")));
  expectStages(read, {"file", GetParam(), "cuda"}, content.size());
  EXPECT_TRUE(same(bytesOf(here), content));
  std::ranges::fill(bytesOf(here), std::byte{9});
  const auto written = staged(OpKind::kWrite, all(here.info()), all(atB("file")));
  expectStages(written, {"cuda", GetParam(), "file"}, content.size());
  std::vector<std::byte> stored(content.size());
  std::ifstream(folder.path() + "/f", std::ios::binary)
      .read(reinterpret_cast<char*>(stored.data()), static_cast<std::streamsize>(stored.size()));
  EXPECT_EQ(countOther(stored, std::byte{9}), 0U);
}

TEST_P(DeviceStages, HostMemoryOfTheStagesIsRegistered) {
  const Pin here = gpu(*a_, 8 * kMiB, "", 0);
  const Pin there = gpu(*b_, 8 * kMiB, "there", 1);
  ASSERT_TRUE(staged(OpKind::kWrite, all(here.info()), all(atB("there"))));
  const std::uint64_t pageable = fakeCudaBytesPageable();
  ASSERT_TRUE(staged(OpKind::kWrite, all(here.info()), all(atB("there"))));
  EXPECT_EQ(fakeCudaBytesPageable(), pageable);
}

// The owner frees its memory under the pin. The error says so, and other transfers of the pair
// work.
TEST_P(DeviceStages, MemoryThatWasFreedIsDenied) {
  const OnDevice device(1);
  CUdeviceptr address = allocate(2 * kMiB);
  const auto pinned = b_->pin(Segment::gpu(1, address, 2 * kMiB), "freed");
  ASSERT_TRUE(pinned) << pinned.error().text();
  const Pin other = gpu(*b_, 2 * kMiB, "other", 1);
  const Pin here = gpu(*a_, 2 * kMiB, "", 0);
  ASSERT_TRUE(staged(OpKind::kWrite, all(here.info()), all(atB("freed"))));
  ASSERT_EQ(fakeApi().memFree(address), CUresult::kSuccess);
  for (int round = 0; round < 2; ++round) {
    const auto denied = staged(OpKind::kWrite, all(here.info()), all(atB("freed")));
    ASSERT_FALSE(denied);
    EXPECT_EQ(denied.error().code, Code::kDenied) << denied.error().text();
    EXPECT_EQ(denied.error().peer, "gpu-b") << denied.error().text();
    if (round == 0) address = allocate(2 * kMiB);  // often the same address
  }
  const auto works = staged(OpKind::kWrite, all(here.info()), all(atB("other")));
  EXPECT_TRUE(works) << works.error().text();
  EXPECT_EQ(fakeApi().memFree(address), CUresult::kSuccess);
}

// One failed call of the driver ends one transfer, whose error names the call.
TEST_P(DeviceStages, AFailedCallEndsOneTransfer) {
  const Pin here = gpu(*a_, 2 * kMiB, "", 0);
  const Pin there = gpu(*b_, 2 * kMiB, "there", 1);
  const auto small = [&] {
    return staged(OpKind::kWrite, all(here.info(), 4096), all(atB("there"), 4096));
  };
  const auto large = [&] { return staged(OpKind::kWrite, all(here.info()), all(atB("there"))); };
  ASSERT_TRUE(large());
  for (const char* call : {"cuMemcpyAsync", "cuEventRecord", "cuCtxPushCurrent"}) {
    fakeCudaFail(call, 1, 1);
    const auto failed = large();
    ASSERT_FALSE(failed) << call;
    EXPECT_NE(failed.error().text().find(call), std::string::npos) << failed.error().text();
    const auto works = large();
    EXPECT_TRUE(works) << call << works.error().text();
  }
  const auto works = small();
  EXPECT_TRUE(works) << works.error().text();
}

INSTANTIATE_TEST_SUITE_P(Over, DeviceStages,
                         ::testing::Values("local", "tcp"
#ifdef VIADUCT_WITH_OFI
                                           ,
                                           "ofi"
#endif
#ifdef VIADUCT_WITH_UCX
                                           ,
                                           "ucx"
#endif
                                           ),
                         [](const auto& network) { return network.param; });

class DeviceDirect : public DeviceAgents {
 protected:
  void SetUp() override { open("tcp"); }
};

TEST_F(DeviceDirect, GpusOfOneProcessUseNoNetwork) {
  const auto content = noise(3 * kMiB, 6);
  const Pin here = gpu(*a_, content.size(), "", 0);
  const Pin there = gpu(*b_, content.size(), "there", 1);
  std::ranges::copy(content, bytesOf(here).begin());
  const auto path = move(OpKind::kWrite, all(here.info()), all(atB("there")));
  ASSERT_TRUE(path) << path.error().text();
  ASSERT_EQ(path->shares.size(), 1U) << path->text();
  EXPECT_EQ(path->shares[0].backend, "cuda");
  EXPECT_TRUE(same(bytesOf(there), content));
}

TEST_F(DeviceDirect, HostMemoryNeverLoadsTheDriver) {
  const bool loaded_before = ::dlopen(kFakeCuda, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  const Pin here = host(*a_, kMiB, "");
  const Pin there = host(*b_, kMiB, "there");
  ASSERT_TRUE(move(OpKind::kWrite, all(here.info()), all(atB("there"))));
  EXPECT_EQ(::dlopen(kFakeCuda, RTLD_NOW | RTLD_NOLOAD) != nullptr, loaded_before);
}

TEST_F(DeviceDirect, ADeviceWithoutMemoryIsExhausted) {
  const auto none = a_->allocate(std::uint64_t{9} << 30, {.device = 0});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kExhausted) << none.error().text();
  EXPECT_TRUE(a_->allocate(kMiB, {.device = 0}));
}

// After a GPU breaks, no later transfer of that GPU works, and all other transfers do.
TEST_F(DeviceDirect, ABrokenGpuBreaksNothingElse) {
  const Pin here = gpu(*a_, kMiB, "", 0);
  const Pin there = gpu(*b_, kMiB, "there", 0);
  const Pin plain = host(*a_, kMiB, "");
  const Pin plain_there = host(*b_, kMiB, "plain");
  ASSERT_TRUE(move(OpKind::kWrite, all(here.info()), all(atB("there"))));
  fakeCudaFail("copy", 1, 700);
  fakeCudaFail("kernel", 1, 700);
  for (int i = 0; i < 2; ++i) {
    const auto failed = move(OpKind::kWrite, all(here.info()), all(atB("there")));
    ASSERT_FALSE(failed);
    EXPECT_NE(failed.error().text().find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos)
        << failed.error().text();
  }
  const auto works = move(OpKind::kWrite, all(plain.info()), all(atB("plain")));
  EXPECT_TRUE(works) << works.error().text();
  fakeCudaFail("copy", 1, 0);
  fakeCudaFail("kernel", 1, 0);
}

TEST_F(DeviceDirect, APinThatIsReleasedMeanwhileWaitsForTheGpu) {
  const Pin here = gpu(*a_, kMiB, "", 0);
  std::optional<Pin> there(gpu(*b_, kMiB, "there", 1));
  auto transfer = a_->plan(OpKind::kWrite, *b_peer_, {all(here.info())}, {all(atB("there"))});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(transfer->post() && transfer->wait(60s));
  ASSERT_TRUE(transfer->post());
  const Status released = there->release();
  EXPECT_TRUE(released) << released.error().text();
  const auto ended = transfer->wait(60s);
  EXPECT_TRUE(ended || ended.error().code == Code::kDenied) << ended.error().text();
  there.reset();
}

TEST_F(DeviceAgents, MemoryThatTheDriverHasAfterTheEndIsNotFreeYet) {
  open("tcp");
  const Pin card = gpu(*a_, kMiB, "", 0);
  Pin memory = host(*a_, kMiB, "");
  std::optional<Pin> other = host(*a_, kMiB, "");
  std::byte* const bytes_of_other = other->data();
  const Peer self = *a_->self();
  for (const Pin* pin : {&memory, &*other}) {
    auto transfer = a_->plan(OpKind::kWrite, self, {all(pin->info())}, {all(card.info())});
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    ASSERT_TRUE(transfer->wait(60s));
  }
  ASSERT_GE(fakeCudaCount("cuMemHostRegister"), 2U);
  hangProgram(card.info().address, card.info().address + 1);
  a_->close();
  EXPECT_FALSE(self.settled());
  const Status left = memory.release();
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kPeerLost) << left.error().text();
  other.reset();
  EXPECT_EQ(::msync(bytes_of_other, kMiB, MS_ASYNC), 0) << "it is unmapped";
  fakeCudaPause(false);
  while (!self.settled()) std::this_thread::yield();
}

// No link is left that could tell what the GPU does.
TEST_F(DeviceDirect, MemoryThatTheDriverHasStaysThoughThePeerHasGone) {
  const Pin card = gpu(*a_, kMiB, "", 0);
  std::optional<Pin> memory = host(*a_, kMiB, "");
  std::byte* const bytes = memory->data();
  {
    const Pin there = gpu(*b_, kMiB, "there", 0);
    ASSERT_TRUE(move(OpKind::kWrite, all(memory->info()), all(atB("there"))));
  }
  ASSERT_GE(fakeCudaCount("cuMemHostRegister"), 1U);
  b_peer_.reset();
  b_.reset();
  hangProgram(card.info().address, card.info().address + 1);
  memory.reset();
  EXPECT_EQ(::msync(bytes, kMiB, MS_ASYNC), 0) << "it is unmapped";
}

}  // namespace
}  // namespace viaduct::testing
