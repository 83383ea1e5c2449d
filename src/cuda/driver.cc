#include "cuda/driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "base/guarded.h"
#include "base/process_id.h"
#include "base/shared_library.h"
#include "base/text.h"

namespace viaduct::cuda {
namespace {

// The first driver that loads our kernel's PTX, and that has all calls marked kNeeded.
constexpr int kOldest = 11000;

using GetProcAddress = CUresult(const char* name, void** function, int version, std::uint64_t flags,
                                int* status);
enum class Need : std::uint8_t { kNeeded, kOptional };

std::string versionText(int version) {
  return fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
}

Error cannotLoad(const std::string& path, std::string detail) {
  return {.code = Code::kUnsupported,
          .operation = "load " + path,
          .detail = std::move(detail),
          .device = "cuda",
          .cause = "NVIDIA's driver is not installed, or its library is not visible here",
          .remedy =
              "install the driver; in a container, start it with the NVIDIA runtime and the "
              "capability compute"};
}

Error tooOld(const std::string& path, std::string detail) {
  Error out = cannotLoad(path, std::move(detail));
  out.cause = "the driver is older than " + versionText(kOldest);
  out.remedy = "update NVIDIA's driver to version 450 or newer";
  return out;
}

// Finds one function, in the form that we declare. A driver of CUDA 12 or newer has the function
// `find`, which finds each form by the CUDA version that introduced it.
template <class Function>
bool bind(const base::SharedLibrary& file, GetProcAddress* find, const char* name,
          const char* symbol, int version, Function*& into) {
  void* found = nullptr;
  int status = 0;
  if (find != nullptr &&
      find(name, &found, version, kLegacyStreams, &status) == CUresult::kSuccess &&
      found != nullptr) {
    into = reinterpret_cast<Function*>(found);
    return true;
  }
  return file.bind(symbol, into);
}

}  // namespace

Result<Driver> Driver::load(const std::string& path) {
  const auto file = base::SharedLibrary::open(path);
  if (!base::loadsLibraries()) return file.error();
  if (!file) return cannotLoad(path, file.error().detail);
  Api api;
  GetProcAddress* find = nullptr;
  file->bind("cuGetProcAddress_v2", find);
  using enum Need;
// NOLINTBEGIN(bugprone-macro-parentheses): the names are no expressions
#define VIADUCT_CUDA_BIND(member, name, suffix, version, need, arguments)               \
  if (!bind(*file, find, #name, #name #suffix, version, api.member) && need == kNeeded) \
    return tooOld(path, "it has no " #name);
  // NOLINTEND(bugprone-macro-parentheses)
  VIADUCT_CUDA_CALLS(VIADUCT_CUDA_BIND)
#undef VIADUCT_CUDA_BIND
  return start(path, api);
}

Result<Driver> Driver::start(const std::string& path, const Api& api) {
  Driver out;
  out.api_ = api;
  out.forks_ = base::forkGeneration();
  VIADUCT_CUDA_CHECK(out, driverGetVersion, {}, &out.version_);
  if (out.version_ < kOldest) return tooOld(path, "this is " + versionText(out.version_));
  if (const CUresult started = out.api_.init(0); started != CUresult::kSuccess) {
    Error why = out.error(CallName::init, started);
    why.cause = "no GPU is visible here, or the kernel's driver does not match the library";
    why.remedy = "check that nvidia-smi works here";
    return why;
  }
  int devices = 0;
  VIADUCT_CUDA_CHECK(out, deviceGetCount, {}, &devices);
  out.devices_ = static_cast<std::uint32_t>(std::max(devices, 0));
  if (out.devices_ == 0) {
    Error why = out.error(CallName::deviceGetCount, CUresult::kNoDevice);
    why.cause = "CUDA_VISIBLE_DEVICES hides all GPUs, or the container has none";
    why.remedy = "check that nvidia-smi works here, and unset CUDA_VISIBLE_DEVICES";
    return why;
  }
  return out;
}

bool Driver::usable() const { return forks_ == base::forkGeneration(); }

Error Driver::error(const char* call, CUresult result, std::string device) const {
  const char* name = nullptr;
  const char* text = nullptr;
  api_.getErrorName(result, &name);
  api_.getErrorString(result, &text);
  Error out{.code = Code::kDevice,
            .operation = call,
            .detail = fmt::format("{} ({}): {}", name == nullptr ? "unknown error" : name,
                                  static_cast<int>(result), text == nullptr ? "no text" : text),
            .device = device.empty() ? "cuda" : std::move(device)};
  if (result == CUresult::kOutOfMemory) {
    out.code = Code::kExhausted;
  } else if (result == CUresult::kNotSupported || result == CUresult::kNoDevice) {
    out.code = Code::kUnsupported;
  } else if (result == CUresult::kNotInitialized && !usable()) {
    out.cause = "this process is a child of fork(), where CUDA cannot be used";
    out.remedy = "start processes with exec, or open the agent after the fork";
  }
  return out;
}

// Returns 0 also if the driver does not know the attribute.
int Driver::attribute(CUdevice device, CUdeviceAttribute which) const {
  int value = 0;
  return api_.deviceGetAttribute(&value, which, device) == CUresult::kSuccess ? value : 0;
}

// Whether the driver has the calls of virtual memory management.
bool Driver::hasVirtualMemory() const {
  return api_.memCreate != nullptr && api_.memRelease != nullptr &&
         api_.memAddressReserve != nullptr && api_.memAddressFree != nullptr &&
         api_.memMap != nullptr && api_.memUnmap != nullptr && api_.memSetAccess != nullptr &&
         api_.memGetAllocationGranularity != nullptr &&
         api_.memExportToShareableHandle != nullptr &&
         api_.memImportFromShareableHandle != nullptr && api_.memRetainAllocationHandle != nullptr;
}

Result<Device> Driver::device(std::uint32_t ordinal) const {
  if (ordinal >= devices_)
    return Error{
        .code = Code::kNotFound,
        .operation = "find a GPU",
        .detail = fmt::format("there is no GPU {}; the driver shows {}", ordinal, devices_),
        .device = "cuda",
        .cause = "CUDA_VISIBLE_DEVICES, or a container, hides GPUs"};
  Device out;
  std::array<char, 256> name{};
  VIADUCT_CUDA_CHECK(*this, deviceGet, {}, &out.handle, static_cast<int>(ordinal));
  VIADUCT_CUDA_CHECK(*this, deviceGetName, {}, name.data(), static_cast<int>(name.size()) - 1,
                     out.handle);
  out.name = fmt::format("GPU {} ({})", ordinal, name.data());
  if (api_.deviceGetUuid != nullptr)
    VIADUCT_CUDA_CHECK(*this, deviceGetUuid, out.name, &out.uuid, out.handle);
  std::array<char, 32> pci{};
  if (api_.deviceGetPciBusId != nullptr)
    VIADUCT_CUDA_CHECK(*this, deviceGetPciBusId, out.name, pci.data(),
                       static_cast<int>(pci.size()) - 1, out.handle);
  out.pci = base::lower(pci.data());
  using enum CUdeviceAttribute;
  out.multiprocessors = static_cast<std::uint32_t>(attribute(out.handle, kMultiprocessorCount));
  out.gpu_direct = attribute(out.handle, kGpuDirectRdma) != 0;
  out.posix_fd = hasVirtualMemory() && attribute(out.handle, kVirtualMemoryManagement) != 0 &&
                 attribute(out.handle, kHandleTypePosixFd) != 0;
  return out;
}

Result<const Driver*> driver(const std::string& path) {
  using Loaded = std::map<std::string, std::unique_ptr<const Driver>>;
  // Never destroyed: memory that outlives main() still calls the driver.
  static auto& loaded = *new base::Guarded<Loaded>;
  return loaded.with([&](Loaded& all) -> Result<const Driver*> {
    auto& one = all[path];
    if (one == nullptr) {
      VIADUCT_TRY(const Driver fresh, Driver::load(path));
      one = std::make_unique<const Driver>(fresh);
    }
    return one.get();
  });
}

}  // namespace viaduct::cuda
