// The fake driver loads the shipped PTX, and runs the kernel's source on device memory.
#include "backends/cuda/kernel/copy_rows_ptx.h"
#include "backends/cuda/row.h"
#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

// The copy kernel on device 0.
class FakeKernel : public ::testing::Test {
 protected:
  FakeKernel() {
    EXPECT_EQ(fakeApi().moduleLoadDataEx(&module_, cuda::kCopyRowsPtx, 0, nullptr, nullptr),
              CUresult::kSuccess);
    EXPECT_EQ(fakeApi().moduleGetFunction(&function_, module_, "viaduct_copy_rows"),
              CUresult::kSuccess);
  }

  // Launches, and returns the result of the stream.
  CUresult run(const cuda::Row& row, CUdeviceptr table) {
    std::memcpy(fakeCudaAlias(table), &row, sizeof row);
    return launch(table, 1, 64);
  }
  CUresult launch(CUdeviceptr table, std::uint32_t count, unsigned threads) {
    void* arguments[] = {&table, &count};
    const CUresult launched =
        fakeApi().launchKernel(function_, 2, 1, 1, threads, 1, 1, 0, nullptr, arguments, nullptr);
    return launched != CUresult::kSuccess ? launched : fakeApi().streamSynchronize(nullptr);
  }

  OnDevice device_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

cuda::Row row(CUdeviceptr from, CUdeviceptr to, std::uint32_t width) {
  return {.from = from,
          .to = to,
          .bytes = 16,
          .from_step = 64,
          .to_step = 16,
          .count = 4,
          .width = width};
}

TEST_F(FakeKernel, CopiesBetweenDeviceAndRegisteredMemory) {
  const CUdeviceptr table = allocate(4096);
  const CUdeviceptr there = allocate(4096);
  alignas(16) char memory[256];
  for (int i = 0; i < 256; ++i) memory[i] = static_cast<char>(i / 64 + 'a');
  EXPECT_EQ(fakeApi().memHostRegister(memory, sizeof memory, 0), CUresult::kSuccess);
  const std::uint64_t before = fakeCudaBytesByKernels();
  EXPECT_EQ(run(row(hostAddress(memory), there, 16), table), CUresult::kSuccess);
  EXPECT_EQ(fakeCudaBytesByKernels(), before + 64);
  EXPECT_EQ(bytesAt(there, 64), std::string(16, 'a') + std::string(16, 'b') + std::string(16, 'c') +
                                    std::string(16, 'd'));
  EXPECT_EQ(fakeApi().memHostUnregister(memory), CUresult::kSuccess);
}

TEST_F(FakeKernel, AnAddressOutsideMemoryFailsTheContext) {
  const CUdeviceptr table = allocate(4096);
  EXPECT_EQ(run(row(table, table + 4096 - 63, 1), table), CUresult::kIllegalAddress);
  CUdeviceptr more = 0;
  EXPECT_EQ(fakeApi().memAlloc(&more, 1), CUresult::kIllegalAddress);
}

TEST_F(FakeKernel, HostMemoryHasToBeRegistered) {
  const CUdeviceptr table = allocate(4096);
  alignas(16) char memory[256];
  EXPECT_EQ(run(row(hostAddress(memory), table + 64, 16), table), CUresult::kIllegalAddress);
}

TEST_F(FakeKernel, AMisalignedAccessFails) {
  const CUdeviceptr table = allocate(4096);
  EXPECT_EQ(static_cast<int>(run(row(table + 8, table + 1024, 16), table)), 716);
}

TEST_F(FakeKernel, MemoryOfAnotherDeviceNeedsAccess) {
  const CUdeviceptr table = allocate(4096);
  const OnDevice other(1);
  const CUdeviceptr there = allocate(4096);
  EXPECT_EQ(fakeApi().ctxPushCurrent(device_.handle()), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().ctxEnablePeerAccess(other.handle(), 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().ctxEnablePeerAccess(other.handle(), 0), CUresult::kPeerAccessAlreadyEnabled);
  EXPECT_EQ(run(row(table, there, 16), table), CUresult::kSuccess);
  const auto disable = fakeCudaFunction<CUresult(CUcontext)>("cuCtxDisablePeerAccess");
  EXPECT_EQ(disable(other.handle()), CUresult::kSuccess);
  EXPECT_EQ(run(row(table, there, 16), table), CUresult::kIllegalAddress);
  CUcontext popped = nullptr;
  EXPECT_EQ(fakeApi().ctxPopCurrent(&popped), CUresult::kSuccess);
}

TEST_F(FakeKernel, AGroupHasAtMostTheThreadsOfThePtx) {
  const CUdeviceptr table = allocate(4096);
  EXPECT_EQ(launch(table, 0, 512), CUresult::kSuccess);
  EXPECT_EQ(launch(table, 0, 544), CUresult::kInvalidValue);
}

TEST_F(FakeKernel, OtherTextIsRefused) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const auto load = [&](const char* text) {
    return fakeApi().moduleLoadDataEx(&module, text, 0, nullptr, nullptr);
  };
  EXPECT_EQ(static_cast<int>(load("no PTX")), 200);
  EXPECT_EQ(load(".version 7.0"), CUresult::kInvalidPtx);
  EXPECT_EQ(load(".version 9.9\n.target sm_80"), CUresult::kUnsupportedPtxVersion);
  EXPECT_EQ(static_cast<int>(load(".version 7.0\n.target sm_100")), 209);
  EXPECT_EQ(load(".version 7.0\n.target sm_80\n.entry other("), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().moduleGetFunction(&function, module, "viaduct_copy_rows"),
            CUresult::kNotFound);
}

}  // namespace
}  // namespace viaduct::testing
