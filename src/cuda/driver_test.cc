#include "cuda/driver.h"

#include <gtest/gtest.h>

#include <string>

namespace viaduct::cuda {
namespace {

// A driver of CUDA 12.4 with one device, as far as starting it needs.
Api healthy() {
  Api api;
  api.init = [](unsigned) { return CUresult::kSuccess; };
  api.driverGetVersion = [](int* version) {
    *version = 12040;
    return CUresult::kSuccess;
  };
  api.deviceGetCount = [](int* count) {
    *count = 1;
    return CUresult::kSuccess;
  };
  api.getErrorName = [](CUresult error, const char** text) {
    *text = error == CUresult::kNoDevice ? "CUDA_ERROR_NO_DEVICE" : nullptr;
    return CUresult::kSuccess;
  };
  api.getErrorString = [](CUresult error, const char** text) {
    *text = error == CUresult::kNoDevice ? "no CUDA-capable device is detected" : nullptr;
    return CUresult::kSuccess;
  };
  return api;
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(CudaDriver, AnAbsentLibraryIsAnErrorWithTheLoadersText) {
  const auto none = driver("libnobody_has_this_cuda.so.1");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kUnsupported);
  EXPECT_EQ(none.error().operation, "load libnobody_has_this_cuda.so.1");
  EXPECT_TRUE(says(none.error().detail, "libnobody_has_this_cuda.so.1: ")) << none.error().text();
  EXPECT_FALSE(none.error().remedy.empty());
}

TEST(CudaDriver, ALibraryWithoutTheCallsIsTooOld) {
  const auto other = Driver::load("libm.so.6");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kUnsupported);
  EXPECT_EQ(other.error().detail, "it has no cuInit");
  EXPECT_TRUE(says(other.error().cause, "older than CUDA 11.0")) << other.error().text();
}

TEST(CudaDriver, AnOldDriverIsRefusedBeforeItStarts) {
  Api api = healthy();
  api.driverGetVersion = [](int* version) {
    *version = 10020;
    return CUresult::kSuccess;
  };
  api.init = nullptr;  // a call would crash
  const auto old = Driver::start("libcuda.so.1", api);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, Code::kUnsupported);
  EXPECT_EQ(old.error().detail, "this is CUDA 10.2");
}

TEST(CudaDriver, ADriverWithoutDevicesNamesTheFailedCall) {
  Api api = healthy();
  api.init = [](unsigned) { return CUresult::kNoDevice; };
  const auto started = Driver::start("libcuda.so.1", api);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, Code::kUnsupported);
  EXPECT_EQ(started.error().operation, "cuInit");
  EXPECT_EQ(started.error().detail,
            "CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected");

  api = healthy();
  api.deviceGetCount = [](int* count) {
    *count = 0;
    return CUresult::kSuccess;
  };
  const auto counted = Driver::start("libcuda.so.1", api);
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().operation, "cuDeviceGetCount");
  EXPECT_TRUE(says(counted.error().cause, "CUDA_VISIBLE_DEVICES")) << counted.error().text();
}

TEST(CudaDriver, AnErrorNamesCallCodeAndDevice) {
  const auto started = Driver::start("libcuda.so.1", healthy());
  ASSERT_TRUE(started) << started.error().text();
  EXPECT_EQ(started->version(), 12040);
  EXPECT_EQ(started->devices(), 1U);
  const Error unknown = started->error("cuMemcpyAsync", CUresult::kIllegalAddress, "GPU 3");
  EXPECT_EQ(unknown.operation, "cuMemcpyAsync");
  EXPECT_EQ(unknown.detail, "unknown error (700): no text");
  EXPECT_EQ(unknown.device, "GPU 3");
  EXPECT_EQ(unknown.code, Code::kDevice);
  EXPECT_EQ(started->error("cuMemAlloc", CUresult::kOutOfMemory).code, Code::kExhausted);
}

TEST(CudaDriver, ADeviceThatIsNotThereIsNotFound) {
  const auto started = Driver::start("libcuda.so.1", healthy());
  ASSERT_TRUE(started) << started.error().text();
  const auto second = started->device(1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kNotFound);
  EXPECT_EQ(second.error().detail, "there is no GPU 1; the driver shows 1");
}

}  // namespace
}  // namespace viaduct::cuda
