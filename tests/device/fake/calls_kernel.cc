// Modules in PTX text, and launches of their kernels.
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "device/fake/call.h"
#include "device/fake/kernels.h"

namespace viaduct::fakegpu {

const Kernel* copyRowsKernel();
const Kernel* sumRowsKernel();

const Kernel* kernelOf(std::string_view name) {
  for (const Kernel* one : {copyRowsKernel(), sumRowsKernel()})
    if (one->name == name) return one;
  return nullptr;
}

namespace {

struct PtxVersion {
  int driver;
  int ptx;  // 10 * major + minor
};
// The newest PTX version that each driver version reads.
constexpr std::array kPtxVersions{PtxVersion{13000, 90}, PtxVersion{12040, 84},
                                  PtxVersion{12000, 80}, PtxVersion{11000, 70}, PtxVersion{0, 65}};
constexpr int kTarget = 90;

// The number after a directive, such as 70 of ".version 7.0", or -1.
int numberAfter(const std::string& text, const char* directive, const char* format) {
  const std::size_t at = text.find(directive);
  int major = 0;
  int minor = 0;
  if (at == std::string::npos) return -1;
  const int read = std::sscanf(text.c_str() + at + std::strlen(directive), format, &major, &minor);
  if (read == 2) return 10 * major + minor;
  return read == 1 ? major : -1;
}

CUresult checkPtx(const World& world, const std::string& text) {
  const int version = numberAfter(text, ".version", " %d.%d");
  const int target = numberAfter(text, ".target", " sm_%d");
  if (version < 0 || target < 0) return CUresult::kInvalidPtx;
  for (const PtxVersion& row : kPtxVersions)
    if (world.configuration.version >= row.driver) {
      if (version > row.ptx) return CUresult::kUnsupportedPtxVersion;
      break;
    }
  return target > kTarget ? kNoBinaryForGpu : CUresult::kSuccess;
}

// The names after ".entry".
std::set<std::string> kernelsOf(const std::string& text) {
  constexpr std::string_view kEntry = ".entry ";
  std::set<std::string> names;
  for (std::size_t at = text.find(kEntry); at != std::string::npos;
       at = text.find(kEntry, at + 1)) {
    const std::size_t from = at + kEntry.size();
    names.insert(text.substr(from, text.find_first_of(" (\n", from) - from));
  }
  return names;
}

// Copies the arguments, because the values at the time of the launch count.
std::vector<std::byte> copyArguments(const Kernel& kernel, void** arguments) {
  std::vector<std::byte> copied(8 * kernel.arguments.size());
  for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
    std::memcpy(copied.data() + 8 * i, arguments[i], kernel.arguments[i]);
  return copied;
}

CUresult runAndCount(World& world, const Kernel& kernel, const Context& context,
                     const Launch& launch) {
  CUresult planned = CUresult::kSuccess;
  {
    const Lock lock(world);
    planned = world.faults.count("kernel");
  }
  return planned != CUresult::kSuccess ? planned : kernel.run(world, context, launch);
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, int*,
                                             void**) {
  return inContext("cuModuleLoadDataEx", [&](World& one, Lock&, Context& context) {
    const std::string text = static_cast<const char*>(image);
    if (text.find(".version") == std::string::npos) return kInvalidImage;
    const CUresult checked = checkPtx(one, text);
    if (checked != CUresult::kSuccess) return checked;
    const int most = numberAfter(text, ".maxntid", " %d");
    *module = one.modules.add<CUmodule>(std::make_shared<Module>(
        Module{&context, kernelsOf(text), most < 0 ? 1024 : static_cast<unsigned>(most)}));
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return inContext("cuModuleUnload", [&](World& one, Lock&, Context&) {
    if (one.modules.find(module) == nullptr) return CUresult::kInvalidHandle;
    one.modules.remove(module);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module,
                                              const char* name) {
  return inContext("cuModuleGetFunction", [&](World& one, Lock&, Context&) {
    const auto loaded = one.modules.find(module);
    if (loaded == nullptr) return CUresult::kInvalidHandle;
    const Kernel* kernel = kernelOf(name);
    if (loaded->kernels.count(name) == 0 || kernel == nullptr) return CUresult::kNotFound;
    *function = one.functions.add<CUfunction>(
        std::make_shared<const Function>(Function{kernel, loaded->most_threads}));
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned shared_bytes, CUstream stream,
                                         void** arguments, void** extra) {
  return inContext("cuLaunchKernel", [&](World& one, Lock&, Context& context) {
    const auto loaded = one.functions.find(function);
    if (loaded == nullptr) return CUresult::kInvalidHandle;
    const bool flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    if (!flat || grid_x == 0 || block_x == 0 || block_x > loaded->most_threads ||
        shared_bytes != 0 || extra != nullptr)
      return CUresult::kInvalidValue;
    Work work;
    const Launch launch{grid_x, block_x, copyArguments(*loaded->kernel, arguments)};
    work.run = [&one, &context, kernel = loaded->kernel, launch] {
      return runAndCount(one, *kernel, context, launch);
    };
    return enqueue(one, context, stream, std::move(work));
  });
}
// NOLINTEND(readability-identifier-naming)
