// Memory of a GPU through the C interface.
#include <gtest/gtest.h>
#include <viaduct/c.h>

#include <array>
#include <string_view>

#include "device/fake_cuda.h"

namespace {

using viaduct::testing::kFakeCuda;

class GpuInC : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::array<viaduct_setting, 2> settings{
        {{"VIADUCT_BACKENDS", "cuda,local"}, {"VIADUCT_CUDA_LIBRARY", kFakeCuda}}};
    ok(viaduct_agent_open(settings.data(), settings.size(), 0, &agent_, &error_));
  }
  void TearDown() override { ok(viaduct_agent_close(agent_, &error_)); }
  void ok(viaduct_code code) { EXPECT_EQ(code, VIADUCT_OK) << error_.text; }

  viaduct_agent agent_{};
  viaduct_error error_ = VIADUCT_INIT(viaduct_error);
};

TEST_F(GpuInC, IsAllocatedAndPinned) {
  viaduct_pin own{}, again{};
  ok(viaduct_gpu_allocate(agent_, 1, 4096, "gpu", &own, &error_));
  viaduct_pin_info info = VIADUCT_INIT(viaduct_pin_info);
  ok(viaduct_pin_describe(own, &info, &error_));
  EXPECT_EQ(info.kind, VIADUCT_MEMORY_DEVICE);
  EXPECT_EQ(info.bytes, 4096U);
  EXPECT_NE(viaduct::testing::fakeCudaAlias(info.address), nullptr);
  EXPECT_NE(viaduct_gpu_pin(agent_, 7, info.address, 4096, nullptr, &again, &error_), VIADUCT_OK);
  EXPECT_NE(std::string_view(error_.text).find("GPU 7"), std::string_view::npos) << error_.text;
  EXPECT_EQ(viaduct_gpu_allocate(agent_, 0, 4096, nullptr, nullptr, &error_), VIADUCT_INVALID);
  EXPECT_EQ(viaduct_gpu_pin(agent_, 0, info.address, 4096, nullptr, nullptr, &error_),
            VIADUCT_INVALID);
  ok(viaduct_pin_close(own, &error_));
}

}  // namespace
