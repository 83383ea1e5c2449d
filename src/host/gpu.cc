#include "host/gpu.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <memory>

namespace viaduct::host {
namespace {

// The driver functions that we call, by their documented signatures.
using Init = int (*)(unsigned int flags);
using Count = int (*)(int* count);
using Get = int (*)(int* device, int ordinal);
using Name = int (*)(char* name, int length, int device);
using Memory = int (*)(std::size_t* bytes, int device);
using ErrorText = int (*)(int error, const char** text);

struct Unload {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Unload>;

template <class Call>
Call find(const Library& library, const char* name) {
  return reinterpret_cast<Call>(::dlsym(library.get(), name));
}

struct Driver {
  Library library;
  Init init = nullptr;
  Count count = nullptr;
  Get get = nullptr;
  Name name = nullptr;
  Memory memory = nullptr;
  ErrorText error_name = nullptr, error_text = nullptr;
  bool whole() const {
    return init != nullptr && count != nullptr && get != nullptr && name != nullptr &&
           memory != nullptr && error_name != nullptr && error_text != nullptr;
  }
};

Driver load(const std::string& library) {
  Driver d{.library = Library(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL))};
  if (!d.library) return d;
  d.init = find<Init>(d.library, "cuInit");
  d.count = find<Count>(d.library, "cuDeviceGetCount");
  d.get = find<Get>(d.library, "cuDeviceGet");
  d.name = find<Name>(d.library, "cuDeviceGetName");
  d.memory = find<Memory>(d.library, "cuDeviceTotalMem_v2");
  d.error_name = find<ErrorText>(d.library, "cuGetErrorName");
  d.error_text = find<ErrorText>(d.library, "cuGetErrorString");
  return d;
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
  const Driver driver = load(library);
  if (!driver.library)
    return Error{.code = Code::kUnsupported,
                 .operation = "load the GPU driver",
                 .detail = ::dlerror(),
                 .cause = "no NVIDIA driver on this host, or the container does not see it",
                 .remedy = "install the driver, or run the container with its GPUs"};
  if (!driver.whole())
    return Error{.code = Code::kUnsupported,
                 .operation = "load the GPU driver",
                 .detail = library + " lacks calls of the CUDA driver",
                 .remedy = "install NVIDIA's driver"};
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
