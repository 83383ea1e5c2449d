// Loads CUDA's driver library at its first use, and never unloads it. Loading costs up to 300 ms.
// Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>

#include "cuda/api.h"

namespace viaduct::cuda {

// The driver's own names of the functions.
struct CallName {
  // NOLINTBEGIN(readability-identifier-naming): the names of Api's members
#define VIADUCT_CUDA_NAME(member, name, suffix, version, need, arguments) \
  static constexpr const char* member = #name;
  VIADUCT_CUDA_CALLS(VIADUCT_CUDA_NAME)
#undef VIADUCT_CUDA_NAME
  // NOLINTEND(readability-identifier-naming)
};

// A GPU, as the driver describes it.
struct Device {
  CUdevice handle = 0;
  std::string name = {};  // "GPU 0 (NVIDIA H100 80GB HBM3)"
  CUuuid uuid = {};       // all zero if the driver cannot say it
  std::string pci = {};   // its PCI address, "0000:18:00.0"; empty if the driver does not say it
  std::uint32_t multiprocessors = 0;
  bool posix_fd = false;    // memory can be shared by a file descriptor
  bool gpu_direct = false;  // a NIC can reach memory allocated for GPUDirect RDMA
};

class Driver {
 public:
  // Loads the library and starts the driver. `path` is a file, or a name for the loader. The error
  // says whether the library is absent, too old, or has no device.
  static Result<Driver> load(const std::string& path);
  // Starts the driver that has the functions of `api`. `path` is for errors.
  static Result<Driver> start(const std::string& path, const Api& api);

  const Api& api() const { return api_; }
  int version() const { return version_; }  // 12040: CUDA 12.4
  std::uint32_t devices() const { return devices_; }
  Result<Device> device(std::uint32_t ordinal) const;

  // False in a child of fork(), where every call of the driver fails.
  bool usable() const;
  // The error of a call that returned `result`: the call's name, the driver's text, the device.
  Error error(const char* call, CUresult result, std::string device = {}) const;

 private:
  Driver() = default;
  int attribute(CUdevice device, CUdeviceAttribute which) const;
  bool hasVirtualMemory() const;

  Api api_;
  int version_ = 0;
  std::uint32_t devices_ = 0;
  std::uint64_t forks_ = 0;  // base::forkGeneration() of the process that loaded it
};

// The driver of this process, which the first successful call for this path loads.
Result<const Driver*> driver(const std::string& path);

// Calls a function of the API, and returns the error if there is one:
// VIADUCT_CUDA_CHECK(driver, memFree, device_name, address);
#define VIADUCT_CUDA_CHECK(driver, member, device, ...)               \
  if (const auto viaduct_result = (driver).api().member(__VA_ARGS__); \
      viaduct_result != ::viaduct::cuda::CUresult::kSuccess)          \
  return (driver).error(::viaduct::cuda::CallName::member, viaduct_result, device)

}  // namespace viaduct::cuda
