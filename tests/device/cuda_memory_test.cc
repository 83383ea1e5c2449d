// The driver's facts about memory, and memory of our own, over the fake driver.
#include "cuda/memory.h"
#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

constexpr std::size_t kChunk = std::size_t{2} << 20;

using cuda::MemoryClass;

std::shared_ptr<const Context> contextOf(std::uint32_t device) {
  auto context = Context::retain(**cuda::driver(kFakeCuda), device);
  EXPECT_TRUE(context) << context.error().text();
  return *std::move(context);
}

class CudaMemory : public ::testing::Test {
 protected:
  void TearDown() override {
    context_.reset();
    for (const char* what : {"contexts", "memory", "reservations", "handles"})
      EXPECT_EQ(fakeCudaHeld(what), 0U) << what;
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

  std::shared_ptr<const Context> context_ = contextOf(0);
};

// Memory of cuMemCreate behind a reservation that has room for two chunks more.
class Segment {
 public:
  Segment(CUmemHandleType types, std::size_t chunks) : bytes_(chunks * kChunk) {
    const CUmemAllocationProp properties{.requested_handle_types = types,
                                         .location = {CUmemLocationType::kDevice, 0}};
    EXPECT_EQ(fakeApi().memAddressReserve(&address, bytes_ + 2 * kChunk, 0, 0, 0),
              CUresult::kSuccess);
    for (std::size_t i = 0; i < chunks; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      EXPECT_EQ(fakeApi().memCreate(&handle, kChunk, &properties, 0), CUresult::kSuccess);
      EXPECT_EQ(fakeApi().memMap(address + i * kChunk, kChunk, 0, handle, 0), CUresult::kSuccess);
      EXPECT_EQ(fakeApi().memRelease(handle), CUresult::kSuccess);
    }
  }
  ~Segment() {
    EXPECT_EQ(fakeApi().memUnmap(address, bytes_), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().memAddressFree(address, bytes_ + 2 * kChunk), CUresult::kSuccess);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  CUdeviceptr address = 0;

 private:
  std::size_t bytes_;
};

TEST_F(CudaMemory, EachClassIsRecognised) {
  const OnDevice device;
  const auto allocateManaged =
      fakeCudaFunction<CUresult(CUdeviceptr*, std::size_t, unsigned)>("cuMemAllocManaged");
  const auto allocatePooled =
      fakeCudaFunction<CUresult(CUdeviceptr*, std::size_t, CUstream)>("cuMemAllocAsync");
  const CUdeviceptr legacy = allocate(1000);
  CUdeviceptr managed = 0;
  CUdeviceptr pooled = 0;
  ASSERT_EQ(allocateManaged(&managed, 1000, 1), CUresult::kSuccess);
  ASSERT_EQ(allocatePooled(&pooled, 1000, nullptr), CUresult::kSuccess);
  std::vector<char> plain(1000);
  std::vector<char> registered(1000);
  ASSERT_EQ(fakeApi().memHostRegister(registered.data(), 1000, 0), CUresult::kSuccess);
  expectClass(legacy + 10, 990, MemoryClass::kLegacy);
  expectClass(managed + 10, 990, MemoryClass::kManaged);
  expectClass(pooled + 10, 990, MemoryClass::kPool);
  expectClass(hostAddress(plain.data()), 1000, MemoryClass::kHost, 0);
  expectClass(hostAddress(registered.data()), 1000, MemoryClass::kHost, 0);
  expectRefused(legacy + 10, 991);
  expectRefused(legacy, 0);
  for (const CUdeviceptr one : {legacy, managed, pooled})
    EXPECT_EQ(fakeApi().memFree(one), CUresult::kSuccess);
  ASSERT_EQ(fakeApi().memHostUnregister(registered.data()), CUresult::kSuccess);
}

TEST_F(CudaMemory, VirtualMemoryIsSharedByTheHandlesThatItWasMadeWith) {
  const Segment shareable(CUmemHandleType::kPosixFd, 1);
  const Segment alone(CUmemHandleType::kNone, 1);
  expectClass(shareable.address, kChunk, MemoryClass::kShareable);
  expectClass(alone.address, kChunk, MemoryClass::kPrivate);
}

// Each chunk is exported by itself, and the reservation behind the last has no memory.
TEST_F(CudaMemory, AnExpandableSegmentHasARangeForEachChunk) {
  const Segment segment(CUmemHandleType::kPosixFd, 3);
  const auto facts = cuda::classify(*context_, segment.address + 5, 3 * kChunk - 5);
  ASSERT_TRUE(facts) << facts.error().text();
  ASSERT_EQ(facts->ranges.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(facts->ranges[i].base, segment.address + i * kChunk);
    EXPECT_EQ(facts->ranges[i].bytes, kChunk);
  }
  EXPECT_NE(facts->ranges[0].buffer_id, facts->ranges[1].buffer_id);
  expectRefused(segment.address, 3 * kChunk + 1);
}

TEST_F(CudaMemory, MemoryOfTwoKindsIsRefused) {
  const OnDevice device;
  const CUdeviceptr first = allocate(kChunk);
  const Segment second(CUmemHandleType::kPosixFd, 1);
  ASSERT_EQ(second.address, first + kChunk);
  expectRefused(first, 2 * kChunk);
  EXPECT_EQ(fakeApi().memFree(first), CUresult::kSuccess);
}

TEST_F(CudaMemory, AFreedAddressHasAnotherNumberOrNone) {
  const OnDevice device;
  const CUdeviceptr address = allocate(1000);
  const auto first = cuda::bufferId(*context_, address);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(fakeApi().memFree(address), CUresult::kSuccess);
  const auto none = cuda::bufferId(*context_, address);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kDenied);
  ASSERT_EQ(allocate(1000), address);
  const auto second = cuda::bufferId(*context_, address);
  ASSERT_TRUE(second);
  EXPECT_NE(*first, *second);
  EXPECT_EQ(fakeApi().memFree(address), CUresult::kSuccess);
}

TEST_F(CudaMemory, AllocatedMemoryCanBeSharedAndCopied) {
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
  CUcontext current = nullptr;
  EXPECT_EQ(fakeCudaFunction<CUresult(CUcontext*)>("cuCtxGetCurrent")(&current),
            CUresult::kSuccess);
  EXPECT_EQ(current, nullptr) << "the caller's context is as before";
}

TEST_F(CudaMemory, AFailedCallLeavesNothingBehind) {
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
    EXPECT_EQ(fakeCudaHeld("memory") + fakeCudaHeld("reservations") + fakeCudaHeld("handles"), 0U)
        << call;
  }
}

TEST_F(CudaMemory, ADeviceWithoutMemoryNamesTheCall) {
  const auto made = cuda::Allocation::make(context_, std::uint64_t{9} << 30);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kExhausted);
  EXPECT_NE(made.error().text().find("CUDA_ERROR_OUT_OF_MEMORY (2)"), std::string::npos)
      << made.error().text();
}

}  // namespace
}  // namespace viaduct::testing
