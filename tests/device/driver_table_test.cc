// The product declares the driver's functions by itself. NVIDIA's header, where it is installed,
// says whether names, versions and parameters are right.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "cuda/api.h"

#if __has_include(<cudaTypedefs.h>)
#include <cudaTypedefs.h>

namespace viaduct::testing {
namespace {

// How a value is passed: its kind (1 a pointer, 2 a number, 3 a struct) and its size. A pointer
// also has the size of its target, if the target's type is complete.
struct Passed {
  int kind = 0;
  std::size_t bytes = 0;
  std::size_t target_bytes = 0;
  friend bool operator==(const Passed&, const Passed&) = default;
};

template <class Value>
constexpr std::size_t bytesOf() {
  if constexpr (requires { sizeof(Value); } && !std::is_void_v<Value> && !std::is_function_v<Value>)
    return sizeof(Value);
  return 0;
}

template <class Value>
constexpr Passed passed() {
  if constexpr (std::is_pointer_v<Value>)
    return {1, sizeof(Value), bytesOf<std::remove_pointer_t<Value>>()};
  else
    return {std::is_class_v<Value> ? 3 : 2, sizeof(Value), 0};
}

template <class Returned, class... Arguments>
std::vector<Passed> signature(Returned (*)(Arguments...)) {
  return {passed<Returned>(), passed<Arguments>()...};
}

TEST(DriverTable, HasTheNamesVersionsAndParametersOfTheHeader) {
  const cuda::Api ours;
#define VIADUCT_COMPARE(member, name, suffix, version, need, arguments) \
  EXPECT_EQ(signature(ours.member), signature(PFN_##name##_v##version(nullptr))) << #name;
  VIADUCT_CUDA_CALLS(VIADUCT_COMPARE)
#undef VIADUCT_COMPARE
}

// Compares values of enums, and offsets of fields in structs, with those of the header.
TEST(DriverTable, HasTheValuesOfTheHeader) {
  EXPECT_EQ(int(cuda::CUdeviceAttribute::kHandleTypePosixFd),
            int(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED));
  EXPECT_EQ(int(cuda::CUdeviceAttribute::kVirtualMemoryManagement),
            int(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
  EXPECT_EQ(int(cuda::CUdeviceAttribute::kGpuDirectRdma),
            int(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED));
  EXPECT_EQ(int(cuda::CUpointerAttribute::kBufferId), int(CU_POINTER_ATTRIBUTE_BUFFER_ID));
  EXPECT_EQ(int(cuda::CUpointerAttribute::kIsLegacyIpcCapable),
            int(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE));
  EXPECT_EQ(int(cuda::CUpointerAttribute::kAllowedHandleTypes),
            int(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES));
  EXPECT_EQ(int(cuda::CUpointerAttribute::kMempoolHandle),
            int(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE));
  EXPECT_EQ(int(cuda::CUresult::kHostMemoryAlreadyRegistered),
            int(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED));
  EXPECT_EQ(int(cuda::CUresult::kAlreadyMapped), int(CUDA_ERROR_ALREADY_MAPPED));
  EXPECT_EQ(int(cuda::CUresult::kNotReady), int(CUDA_ERROR_NOT_READY));
  EXPECT_EQ(unsigned(cuda::CUmemHandleType::kFabric), unsigned(CU_MEM_HANDLE_TYPE_FABRIC));
  EXPECT_EQ(offsetof(cuda::CUmemAllocationProp, gpu_direct_rdma_capable),
            offsetof(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable));
  EXPECT_EQ(offsetof(cuda::CUmemAllocationProp, location), offsetof(CUmemAllocationProp, location));
}

}  // namespace
}  // namespace viaduct::testing

#else
TEST(DriverTable, HasTheNamesVersionsAndParametersOfTheHeader) {
  GTEST_SKIP() << "skipped: no cudaTypedefs.h of NVIDIA's toolkit";
}
#endif
