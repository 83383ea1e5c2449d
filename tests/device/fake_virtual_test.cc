// The fake driver's virtual memory management behaves as the real one's.
#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

constexpr std::size_t kChunk = std::size_t{2} << 20;

CUmemAllocationProp properties(CUdevice device, CUmemHandleType types) {
  return {.requested_handle_types = types, .location = {CUmemLocationType::kDevice, device}};
}

CUmemGenericAllocationHandle create(CUdevice device, CUmemHandleType types) {
  const CUmemAllocationProp wanted = properties(device, types);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(fakeApi().memCreate(&handle, kChunk, &wanted, 0), CUresult::kSuccess);
  return handle;
}

CUdeviceptr reserve(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(fakeApi().memAddressReserve(&address, bytes, 0, 0, 0), CUresult::kSuccess);
  return address;
}

CUresult access(CUdeviceptr address, std::size_t bytes, CUdevice device) {
  const CUmemAccessDesc wanted{{CUmemLocationType::kDevice, device}, CUmemAccessFlags::kReadWrite};
  return fakeApi().memSetAccess(address, bytes, &wanted, 1);
}

// A reservation of four chunks, of which the first two have memory.
struct Segment {
  CUdeviceptr address = reserve(4 * kChunk);
  Segment() {
    for (int i = 0; i < 2; ++i) {
      const auto handle = create(0, CUmemHandleType::kPosixFd);
      EXPECT_EQ(
          fakeApi().memMap(address + static_cast<std::size_t>(i) * kChunk, kChunk, 0, handle, 0),
          CUresult::kSuccess);
      EXPECT_EQ(fakeApi().memRelease(handle), CUresult::kSuccess);
    }
  }
  ~Segment() {
    EXPECT_EQ(fakeApi().memUnmap(address, 2 * kChunk), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().memAddressFree(address, 4 * kChunk), CUresult::kSuccess);
    EXPECT_EQ(fakeCudaHeld("memory") + fakeCudaHeld("reservations") + fakeCudaHeld("handles"), 0U);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;
};

TEST(FakeVirtual, MemoryIsUsableWithAccessOnly) {
  const OnDevice device;
  const Segment segment;
  const std::string text(100, 'x');
  const CUdeviceptr across = segment.address + kChunk - 50;
  EXPECT_EQ(fakeApi().memcpySync(across, hostAddress(text.data()), 100), CUresult::kInvalidValue);
  EXPECT_EQ(access(segment.address, 2 * kChunk, 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memcpySync(across, hostAddress(text.data()), 100), CUresult::kSuccess);
  EXPECT_EQ(bytesAt(across, 50), text.substr(50));
  EXPECT_EQ(fakeApi().memcpySync(segment.address + 2 * kChunk - 50, hostAddress(text.data()), 100),
            CUresult::kInvalidValue);
}

TEST(FakeVirtual, ARangeIsTheReservationAndAMappingIsItsChunk) {
  const OnDevice device;
  const Segment segment;
  const CUdeviceptr second = segment.address + kChunk + 9;
  EXPECT_EQ(attributeOf<CUdeviceptr>(second, 11), segment.address);
  EXPECT_EQ(attributeOf<std::size_t>(second, 12), 4 * kChunk);
  EXPECT_EQ(attributeOf<std::size_t>(second, 18), kChunk);
  EXPECT_EQ(attributeOf<CUdeviceptr>(second, 19), segment.address + kChunk);
  EXPECT_NE(attributeOf<std::uint64_t>(second, 7), attributeOf<std::uint64_t>(second - kChunk, 7));
  EXPECT_EQ(attributeOf<int>(second, 10), 0);
  EXPECT_EQ(attributeOf<std::uint64_t>(second, 14), 1U);
  EXPECT_EQ(attributeOf<CUcontext>(second, 1), nullptr);
  EXPECT_EQ(attributeOf<int>(second, 13), 1);
  EXPECT_EQ(attributeOf<int>(second + 2 * kChunk, 13), 0);
  const auto range = fakeCudaFunction<CUresult(CUdeviceptr*, std::size_t*, CUdeviceptr)>(
      "cuMemGetAddressRange_v2");
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  EXPECT_EQ(range(&start, &bytes, second), CUresult::kSuccess);
  EXPECT_EQ(start, segment.address + kChunk);
  EXPECT_EQ(bytes, kChunk);
  EXPECT_EQ(range(&start, &bytes, second + kChunk), CUresult::kNotFound);
}

TEST(FakeVirtual, LegacyHandlesDoNotOpenIt) {
  const OnDevice device;
  const Segment segment;
  CUipcMemHandle handle;
  EXPECT_EQ(fakeApi().ipcGetMemHandle(&handle, segment.address), CUresult::kInvalidValue);
}

TEST(FakeVirtual, MemoryCanBeMappedTwice) {
  const OnDevice device;
  const Segment segment;
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(fakeApi().memRetainAllocationHandle(&handle,
                                                reinterpret_cast<void*>(segment.address + kChunk)),
            CUresult::kSuccess);
  const CUdeviceptr again = reserve(kChunk);
  EXPECT_EQ(fakeApi().memMap(again, kChunk, 0, handle, 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memMap(again, kChunk, 0, handle, 0), CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().memAddressFree(again, kChunk), CUresult::kInvalidValue);
  std::memset(fakeCudaAlias(segment.address + kChunk), 'y', 3);
  EXPECT_EQ(bytesAt(again, 3), "yyy");
  EXPECT_EQ(fakeApi().memUnmap(again, kChunk), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memAddressFree(again, kChunk), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memRelease(handle), CUresult::kSuccess);
}

TEST(FakeVirtual, OnlyTheRequestedHandlesCanBeExported) {
  const OnDevice device;
  const auto none = create(0, CUmemHandleType::kNone);
  int file = -1;
  EXPECT_EQ(fakeApi().memExportToShareableHandle(&file, none, CUmemHandleType::kPosixFd, 0),
            CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().memRelease(none), CUresult::kSuccess);
  const CUmemAllocationProp fabric = properties(0, CUmemHandleType::kFabric);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(fakeApi().memCreate(&handle, kChunk, &fabric, 0), CUresult::kNotPermitted);
  const CUmemAllocationProp odd = properties(0, CUmemHandleType::kNone);
  EXPECT_EQ(fakeApi().memCreate(&handle, kChunk + 1, &odd, 0), CUresult::kInvalidValue);
  EXPECT_EQ(fakeApi().memImportFromShareableHandle(&handle, reinterpret_cast<void*>(1),
                                                   CUmemHandleType::kPosixFd),
            CUresult::kInvalidValue);
}

}  // namespace
}  // namespace viaduct::testing
