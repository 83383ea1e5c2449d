#include "host/gpu.h"

#include <fmt/format.h>

#include <array>

#include "base/shared_library.h"

namespace viaduct::host {
namespace {

// The driver functions that we call, by their documented signatures.
struct Driver {
  int (*init)(unsigned int flags);
  int (*count)(int* count);
  int (*get)(int* device, int ordinal);
  int (*name)(char* name, int length, int device);
  int (*memory)(std::size_t* bytes, int device);
  int (*error_name)(int error, const char** text);
  int (*error_text)(int error, const char** text);
};

Result<Driver> load(const std::string& name) {
  constexpr auto kOperation = "load the GPU driver";
  const auto library = base::SharedLibrary::open(name);
  if (!library)
    return Error{.code = Code::kUnsupported,
                 .operation = kOperation,
                 .detail = library.error().detail,
                 .cause = "no NVIDIA driver on this host, or the container does not see it",
                 .remedy = "install the driver, or run the container with its GPUs"};
  Driver out{};
  if (library->bind("cuInit", out.init) && library->bind("cuDeviceGetCount", out.count) &&
      library->bind("cuDeviceGet", out.get) && library->bind("cuDeviceGetName", out.name) &&
      library->bind("cuDeviceTotalMem_v2", out.memory) &&
      library->bind("cuGetErrorName", out.error_name) &&
      library->bind("cuGetErrorString", out.error_text))
    return out;
  return Error{.code = Code::kUnsupported,
               .operation = kOperation,
               .detail = name + " lacks calls of the CUDA driver",
               .remedy = "install NVIDIA's driver"};
}

Error refused(const Driver& driver, const char* call, int code) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.error_name(code, &name);
  driver.error_text(code, &text);
  return {.code = Code::kDevice,
          .operation = call,
          .detail = fmt::format("{}: {}", name == nullptr ? fmt::format("error {}", code) : name,
                                text == nullptr ? "the driver has no text for it" : text),
          .cause = "the driver sees no usable GPU",
          .remedy = "check with nvidia-smi; give the container a GPU if it has none"};
}

}  // namespace

Result<Gpu> findGpu(int id, const std::string& library) {
  VIADUCT_TRY(const Driver driver, load(library));
  if (const int rc = driver.init(0); rc != 0) return refused(driver, "cuInit", rc);
  int count = 0;
  if (const int rc = driver.count(&count); rc != 0) return refused(driver, "cuDeviceGetCount", rc);
  if (id < 0 || id >= count)
    return Error{.code = Code::kNotFound,
                 .operation = "--gpu_id",
                 .detail = fmt::format("there is no GPU {}: this host has {}", id, count),
                 .remedy = count > 0 ? fmt::format("take 0 to {}", count - 1) : ""};
  int device = 0;
  std::array<char, 128> name{};
  std::size_t memory = 0;
  if (const int rc = driver.get(&device, id); rc != 0) return refused(driver, "cuDeviceGet", rc);
  if (const int rc = driver.name(name.data(), static_cast<int>(name.size()) - 1, device); rc != 0)
    return refused(driver, "cuDeviceGetName", rc);
  if (const int rc = driver.memory(&memory, device); rc != 0)
    return refused(driver, "cuDeviceTotalMem", rc);
  return Gpu{id, name.data(), memory};
}

}  // namespace viaduct::host
