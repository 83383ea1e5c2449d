// The fake driver's memory behaves as the real one's.
#include <sys/mman.h>

#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(FakeMemory, TheCpuCannotTouchIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        const OnDevice device;
        *reinterpret_cast<volatile char*>(allocate(100)) = 1;
      },
      "");
}

TEST(FakeMemory, ACopyMovesBytesInAnyDirection) {
  const OnDevice device;
  const CUdeviceptr one = allocate(100);
  const CUdeviceptr two = allocate(100);
  const std::string text = "some text";
  std::string back(text.size(), ' ');
  EXPECT_EQ(fakeApi().memcpySync(one + 3, hostAddress(text.data()), text.size()),
            CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memcpySync(two + 7, one + 3, text.size()), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memcpySync(hostAddress(back.data()), two + 7, text.size()),
            CUresult::kSuccess);
  EXPECT_EQ(back, text);
  EXPECT_EQ(bytesAt(two + 7, 4), "some");
  fakeApi().memFree(one);
  fakeApi().memFree(two);
  EXPECT_EQ(fakeCudaHeld("memory"), 0U);
}

TEST(FakeMemory, ACopyStaysInsideOneAllocation) {
  const OnDevice device;
  const CUdeviceptr one = allocate(2 * kMiB);
  const CUdeviceptr two = allocate(2 * kMiB);
  ASSERT_EQ(two, one + 2 * kMiB);
  const CUdeviceptr other = allocate(4 * kMiB);
  EXPECT_EQ(fakeApi().memcpySync(other, one, 2 * kMiB), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memcpySync(other, one + 1, 2 * kMiB), CUresult::kInvalidValue);
  fakeApi().memFree(one);
  EXPECT_EQ(fakeApi().memcpySync(other, one, 1), CUresult::kInvalidValue);
}

TEST(FakeMemory, AnAddressComesAgainWithAnotherNumber) {
  const OnDevice device;
  const CUdeviceptr first = allocate(100);
  const auto id = attributeOf<std::uint64_t>(first, 7);
  fakeApi().memFree(first);
  std::uint64_t none = 0;
  EXPECT_EQ(fakeApi().pointerGetAttribute(&none, CUpointerAttribute::kBufferId, first),
            CUresult::kInvalidValue);
  const CUdeviceptr second = allocate(100);
  EXPECT_EQ(first, second);
  EXPECT_NE(attributeOf<std::uint64_t>(second, 7), id);
}

TEST(FakeMemory, EndsAsTheRealOneDoes) {
  const OnDevice device;
  CUdeviceptr much = 0;
  EXPECT_EQ(fakeApi().memAlloc(&much, std::size_t{9} << 30), CUresult::kOutOfMemory);
  EXPECT_EQ(fakeApi().memAlloc(&much, std::size_t{7} << 30), CUresult::kSuccess);
  CUdeviceptr more = 0;
  EXPECT_EQ(fakeApi().memAlloc(&more, std::size_t{2} << 30), CUresult::kOutOfMemory);
  EXPECT_EQ(fakeApi().memFree(much), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memFree(much), CUresult::kInvalidValue);
}

TEST(FakeMemory, CallsNeedAContext) {
  fakeApi();
  CUdeviceptr address = 0;
  EXPECT_EQ(fakeApi().memAlloc(&address, 1), CUresult::kInvalidContext);
  EXPECT_EQ(fakeApi().memcpySync(1, 2, 3), CUresult::kInvalidContext);
  CUcontext popped = nullptr;
  EXPECT_EQ(fakeApi().ctxPopCurrent(&popped), CUresult::kInvalidContext);
}

TEST(FakeMemory, TheLastReleaseEndsAContextAndItsMemory) {
  CUcontext context = nullptr;
  {
    const OnDevice device(1);
    context = device.handle();
    allocate(100);
    EXPECT_EQ(fakeCudaHeld("contexts"), 1U);
  }
  EXPECT_EQ(fakeCudaHeld("memory"), 0U);
  EXPECT_EQ(fakeCudaHeld("contexts"), 0U);
  EXPECT_NE(fakeApi().ctxPushCurrent(context), CUresult::kSuccess);
  EXPECT_NE(fakeApi().primaryCtxRelease(1), CUresult::kSuccess);
}

TEST(FakeMemory, RegisteredHostMemoryIsKnownOnce) {
  const OnDevice device;
  std::vector<char> memory(100'000);
  CUdeviceptr address = 0;
  EXPECT_EQ(fakeApi().memHostGetDevicePointer(&address, memory.data(), 0), CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().memHostRegister(memory.data(), 50'000, 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memHostRegister(memory.data() + 40'000, 50'000, 0),
            CUresult::kHostMemoryAlreadyRegistered);
  EXPECT_EQ(fakeApi().memHostGetDevicePointer(&address, memory.data() + 9, 0), CUresult::kSuccess);
  EXPECT_EQ(attributeOf<unsigned>(hostAddress(memory.data()), 2), 1U);
  EXPECT_EQ(fakeApi().memHostUnregister(memory.data() + 1), CUresult::kHostMemoryNotRegistered);
  EXPECT_EQ(fakeApi().memHostUnregister(memory.data()), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memHostUnregister(memory.data()), CUresult::kHostMemoryNotRegistered);
  void* unmapped = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(fakeApi().memHostRegister(unmapped, 4096, 0), CUresult::kInvalidValue);
  ::munmap(unmapped, 4096);
}

TEST(FakeMemory, APartlyRegisteredCopyIsRefused) {
  const OnDevice device;
  std::vector<char> memory(1000);
  const CUdeviceptr there = allocate(1000);
  EXPECT_EQ(fakeApi().memHostRegister(memory.data(), 500, 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memcpySync(there, hostAddress(memory.data()), 501), CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().memcpySync(there, hostAddress(memory.data()), 500), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memHostUnregister(memory.data()), CUresult::kSuccess);
}

TEST(FakeMemory, EachKindSaysWhatItIs) {
  const OnDevice device(1);
  const auto allocateManaged =
      fakeCudaFunction<CUresult(CUdeviceptr*, std::size_t, unsigned)>("cuMemAllocManaged");
  const auto allocatePooled =
      fakeCudaFunction<CUresult(CUdeviceptr*, std::size_t, CUstream)>("cuMemAllocAsync");
  const CUdeviceptr legacy = allocate(100);
  CUdeviceptr managed = 0;
  CUdeviceptr pooled = 0;
  EXPECT_EQ(allocateManaged(&managed, 100, 1), CUresult::kSuccess);
  EXPECT_EQ(allocatePooled(&pooled, 100, nullptr), CUresult::kSuccess);
  std::memset(reinterpret_cast<void*>(managed), 7, 100);  // the CPU may touch it
  EXPECT_EQ(bytesAt(managed, 2), "\7\7");
  for (const CUdeviceptr one : {legacy, managed, pooled}) {
    EXPECT_EQ(attributeOf<unsigned>(one + 9, 2), 2U);
    EXPECT_EQ(attributeOf<int>(one + 9, 9), 1);
    EXPECT_EQ(attributeOf<CUdeviceptr>(one + 9, 11), one);
    EXPECT_EQ(attributeOf<std::size_t>(one + 9, 12), 100U);
    EXPECT_EQ(attributeOf<int>(one, 10), one == legacy ? 1 : 0);
    EXPECT_EQ(attributeOf<int>(one, 8), one == managed ? 1 : 0);
    EXPECT_EQ(attributeOf<CUcontext>(one, 1), one == pooled ? nullptr : device.handle());
    EXPECT_EQ(attributeOf<std::uint64_t>(one, 17) != 0, one == pooled);
  }
  CUipcMemHandle handle;
  EXPECT_EQ(fakeApi().ipcGetMemHandle(&handle, pooled), CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().ipcGetMemHandle(&handle, legacy + 9), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().ipcOpenMemHandle(&managed, handle, kIpcLazyPeerAccess),
            CUresult::kInvalidContext);
  fakeApi().memFree(pooled);
}

TEST(FakeMemory, AnUnknownAddressHasNoAttributes) {
  fakeApi();
  int here = 0;
  unsigned type = 77;
  int ordinal = 77;
  CUpointerAttribute attributes[] = {CUpointerAttribute::kMemoryType,
                                     CUpointerAttribute::kDeviceOrdinal};
  void* values[] = {&type, &ordinal};
  EXPECT_EQ(fakeApi().pointerGetAttributes(2, attributes, values, hostAddress(&here)),
            CUresult::kSuccess);
  EXPECT_EQ(type, 0U);
  EXPECT_EQ(ordinal, -2);
  EXPECT_EQ(fakeApi().pointerGetAttribute(&type, attributes[0], hostAddress(&here)),
            CUresult::kInvalidValue);
}

TEST(FakeMemory, ACallFailsOnDemand) {
  const OnDevice device;
  const std::uint64_t before = fakeCudaCount("cuMemAlloc");
  fakeCudaFail("cuMemAlloc", 2, 2);
  CUdeviceptr one = 0;
  EXPECT_EQ(fakeApi().memAlloc(&one, 1), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memAlloc(&one, 1), CUresult::kOutOfMemory);
  EXPECT_EQ(fakeApi().memAlloc(&one, 1), CUresult::kSuccess);
  EXPECT_EQ(fakeCudaCount("cuMemAlloc"), before + 3);
}

}  // namespace
}  // namespace viaduct::testing
