// The driver's facts about memory, and memory of our own, over the fake driver and over NVIDIA's.
#include <gtest/gtest.h>

#include "cuda/memory.h"
#include "device/driver_memory.h"
#include "device/driver_under_test.h"
#include "device/fake_cuda.h"

namespace viaduct::testing {
namespace {

using cuda::CUdeviceptr;
using cuda::CUmemHandleType;
using cuda::CUresult;
using cuda::MemoryClass;

constexpr std::uint64_t kChunk = DriverMemory::kChunk;

class GpuMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    VIADUCT_SKIP_WITHOUT_A_GPU();
    ::setenv("FAKE_CUDA_FABRIC", "1", 1);
    const auto driver = cuda::driver(kDriverUnderTest);
    ASSERT_TRUE(driver) << driver.error().text();
    auto context = cuda::Context::retain(**driver, 0);
    ASSERT_TRUE(context) << context.error().text();
    context_ = *std::move(context);
  }
  void TearDown() override {
    context_.reset();
    if (kDriverIsFake) expectNothingHeld({"contexts", "memory", "reservations", "handles"});
  }

  static void expectNothingHeld(const std::vector<const char*>& things) {
    for (const char* what : things) EXPECT_EQ(fakeCudaHeld(what), 0U) << what;
  }
  static std::unique_ptr<DriverMemory> make(MemoryClass kind, std::uint64_t bytes) {
    auto memory = DriverMemory::make(kDriverUnderTest, kind, bytes);
    EXPECT_TRUE(memory) << memory.error().text();
    return memory ? *std::move(memory) : nullptr;
  }
  void expectClass(CUdeviceptr address, std::size_t bytes, MemoryClass wanted,
                   std::size_t ranges = 1) const {
    const auto facts = cuda::classify(*context_, address, bytes);
    ASSERT_TRUE(facts) << facts.error().text();
    EXPECT_EQ(facts->memory_class, wanted) << cuda::memoryClassName(facts->memory_class);
    EXPECT_EQ(facts->ranges.size(), ranges);
  }
  void expectRefused(CUdeviceptr address, std::size_t bytes) const {
    const auto facts = cuda::classify(*context_, address, bytes);
    ASSERT_FALSE(facts);
    EXPECT_EQ(facts.error().code, Code::kInvalid) << facts.error().text();
  }

  std::shared_ptr<const cuda::Context> context_;
};

TEST_F(GpuMemory, EachClassIsRecognised) {
  for (const MemoryClass kind :
       {MemoryClass::kLegacy, MemoryClass::kShareable, MemoryClass::kPrivate, MemoryClass::kPool,
        MemoryClass::kManaged}) {
    const auto memory = make(kind, 1000);
    ASSERT_TRUE(memory) << cuda::memoryClassName(kind);
    expectClass(memory->address(), 1000, kind);
    expectClass(memory->address() + 10, 990, kind);
    expectRefused(memory->address(), 0);
  }
  const auto legacy = make(MemoryClass::kLegacy, kChunk);
  ASSERT_TRUE(legacy);
  expectRefused(legacy->address() + 10, kChunk - 9);
}

TEST_F(GpuMemory, HostMemoryIsRecognisedAlsoIfItIsRegistered) {
  std::vector<char> memory(8192);
  const auto address = reinterpret_cast<CUdeviceptr>(memory.data());
  expectClass(address, memory.size(), MemoryClass::kHost, 0);
  const auto current = cuda::Current::of(*context_);
  ASSERT_EQ(context_->api().memHostRegister(memory.data(), memory.size(), 0), CUresult::kSuccess);
  expectClass(address, memory.size(), MemoryClass::kHost, 0);
  EXPECT_EQ(context_->api().memHostUnregister(memory.data()), CUresult::kSuccess);
}

// Few hosts with a GPU have fabric handles.
TEST_F(GpuMemory, VirtualMemoryWithFabricHandlesIsRecognised) {
  const auto memory = DriverMemory::make(kDriverUnderTest, MemoryClass::kFabric, kChunk);
  if (!memory) GTEST_SKIP() << "no fabric handles here: " << memory.error().text();
  expectClass((*memory)->address(), kChunk, MemoryClass::kFabric);
}

// Each chunk is exported by itself, and the reservation behind the last has no memory.
TEST_F(GpuMemory, AnExpandableSegmentHasARangeForEachChunk) {
  const auto segment = make(MemoryClass::kShareable, 3 * kChunk);
  ASSERT_TRUE(segment);
  const auto facts = cuda::classify(*context_, segment->address() + 5, 3 * kChunk - 5);
  ASSERT_TRUE(facts) << facts.error().text();
  ASSERT_EQ(facts->ranges.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(facts->ranges[i].base, segment->address() + i * kChunk);
    EXPECT_EQ(facts->ranges[i].bytes, kChunk);
  }
  EXPECT_NE(facts->ranges[0].buffer_id, facts->ranges[1].buffer_id);
  expectRefused(segment->address(), 3 * kChunk + 1);
}

TEST_F(GpuMemory, MemoryOfTwoKindsIsRefused) {
  const auto mixed =
      DriverMemory::chunks(kDriverUnderTest, {CUmemHandleType::kPosixFd, CUmemHandleType::kNone});
  ASSERT_TRUE(mixed) << mixed.error().text();
  expectClass((*mixed)->address(), kChunk, MemoryClass::kShareable);
  expectClass((*mixed)->address() + kChunk, kChunk, MemoryClass::kPrivate);
  expectRefused((*mixed)->address(), 2 * kChunk);
}

TEST_F(GpuMemory, AFreedAddressHasAnotherNumberOrNone) {
  for (const MemoryClass kind : {MemoryClass::kLegacy, MemoryClass::kShareable}) {
    const auto memory = make(kind, kChunk);
    ASSERT_TRUE(memory);
    const CUdeviceptr address = memory->address();
    const auto first = cuda::bufferId(*context_, address);
    ASSERT_TRUE(first) << first.error().text();
    const Status freed = memory->free();
    ASSERT_TRUE(freed) << freed.error().text();
    const auto none = cuda::bufferId(*context_, address);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, Code::kDenied) << none.error().text();
    const auto again = make(kind, kChunk);  // mostly at the same address
    ASSERT_TRUE(again);
    const auto second = cuda::bufferId(*context_, again->address());
    ASSERT_TRUE(second) << second.error().text();
    EXPECT_NE(*first, *second);
  }
}

TEST_F(GpuMemory, AllocatedMemoryCanBeSharedAndCopied) {
  auto made = cuda::Allocation::make(context_, 3 * kChunk + 100);
  ASSERT_TRUE(made) << made.error().text();
  const cuda::Allocation& memory = **made;
  EXPECT_EQ(memory.bytes(), 3 * kChunk + 100);
  expectClass(memory.address(), memory.bytes(), MemoryClass::kShareable);
  std::vector<std::byte> from(memory.bytes(), std::byte{7});
  std::vector<std::byte> to(memory.bytes());
  ASSERT_TRUE(cuda::copyToDevice(*context_, memory.address(), from));
  ASSERT_TRUE(cuda::copyToHost(*context_, to, memory.address()));
  EXPECT_EQ(from, to);
  cuda::CUcontext current = nullptr;
  EXPECT_NE(context_->api().ctxPopCurrent(&current), CUresult::kSuccess)
      << "a context is left current";
}

TEST_F(GpuMemory, AFailedCallLeavesNothingBehind) {
  VIADUCT_SKIP_OVER_A_REAL_DRIVER();
  const char* const calls[] = {"cuCtxPushCurrent",
                               "cuMemGetAllocationGranularity",
                               "cuMemAddressReserve",
                               "cuMemCreate",
                               "cuMemMap",
                               "cuMemSetAccess"};
  for (const char* call : calls) {
    fakeCudaFail(call, 1, 2);
    const auto made = cuda::Allocation::make(context_, 100);
    ASSERT_FALSE(made) << call;
    EXPECT_EQ(made.error().code, Code::kExhausted);
    EXPECT_EQ(made.error().operation, call);
    EXPECT_EQ(made.error().device.substr(0, 6), "GPU 0 ") << made.error().text();
    expectNothingHeld({"memory", "reservations", "handles"});
  }
}

TEST_F(GpuMemory, ADeviceWithoutMemoryNamesTheCall) {
  const auto made = cuda::Allocation::make(context_, std::uint64_t{1} << 40U);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kExhausted);
  EXPECT_NE(made.error().text().find("CUDA_ERROR_OUT_OF_MEMORY (2)"), std::string::npos)
      << made.error().text();
}

}  // namespace
}  // namespace viaduct::testing
