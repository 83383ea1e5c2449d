// Helpers that shorten tests of the fake driver.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "device/fake_cuda.h"

namespace viaduct::testing {

// NOLINTNEXTLINE(google-build-using-namespace): the driver's names
using namespace viaduct::cuda;

inline const Api& fakeApi() {
  const auto loaded = cuda::driver(kFakeCuda);
  if (!loaded) {
    std::fprintf(stderr, "%s\n", loaded.error().text().c_str());
    std::abort();
  }
  return (*loaded)->api();
}

// Keeps the primary context of a device, and makes it current.
class OnDevice {
 public:
  explicit OnDevice(CUdevice device = 0) : device_(device) {
    if (fakeApi().primaryCtxRetain(&handle_, device) != CUresult::kSuccess ||
        fakeApi().ctxPushCurrent(handle_) != CUresult::kSuccess)
      std::abort();
  }
  ~OnDevice() {
    CUcontext popped = nullptr;
    fakeApi().ctxPopCurrent(&popped);
    fakeApi().primaryCtxRelease(device_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  CUcontext handle() const { return handle_; }

 private:
  CUdevice device_;
  CUcontext handle_ = nullptr;
};

template <class Value>
Value attributeOf(CUdeviceptr address, int attribute) {
  Value value{};
  const auto which = static_cast<CUpointerAttribute>(attribute);
  EXPECT_EQ(fakeApi().pointerGetAttribute(&value, which, address), CUresult::kSuccess);
  return value;
}

inline std::string bytesAt(CUdeviceptr address, std::size_t bytes) {
  return std::string(reinterpret_cast<const char*>(fakeCudaAlias(address)), bytes);
}

inline CUdeviceptr hostAddress(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

inline CUdeviceptr allocate(std::size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_EQ(fakeApi().memAlloc(&address, bytes), CUresult::kSuccess);
  return address;
}

inline CUresult launchHostFunc(CUstream stream, void (*function)(void*), void* data) {
  return fakeCudaFunction<CUresult(CUstream, void (*)(void*), void*)>("cuLaunchHostFunc")(
      stream, function, data);
}

inline CUstream newStream() {
  CUstream stream = nullptr;
  EXPECT_EQ(fakeApi().streamCreateWithPriority(&stream, kStreamNonBlocking, 0), CUresult::kSuccess);
  return stream;
}

// Stops the GPUs while one has a copy of the program between these two places in its memory. Calls
// of the driver that wait for the GPUs wait for the copy.
inline void hangProgram(CUdeviceptr to, CUdeviceptr from) {
  const OnDevice current;
  fakeCudaPause(true);
  EXPECT_EQ(fakeApi().memcpyAsync(to, from, 1, nullptr), CUresult::kSuccess);
}

}  // namespace viaduct::testing
