#include "measure/workload/mirror.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cuda/driver.h"
#include "cuda/memory.h"

namespace viaduct::measure {
namespace {

// Returns the file that the agents load as CUDA's driver.
std::string driverLibrary(const Settings& settings) {
  static constexpr std::string_view kVariable = "VIADUCT_CUDA_LIBRARY";
  const auto rows = settingRows();
  const auto row =
      std::ranges::find_if(rows, [](const SettingRow& one) { return one.variable == kVariable; });
  return row == rows.end() ? "libcuda.so.1" : row->show(settings);
}

}  // namespace

Result<const cuda::Driver*> driverOf(const Settings& settings) {
  return cuda::driver(driverLibrary(settings));
}

Result<Gpu> gpuOf(const Settings& settings, Mode mode, std::uint32_t first, std::uint32_t number) {
  VIADUCT_TRY(const cuda::Driver* const driver, driverOf(settings));
  const bool only = mode == Mode::kSg && number > 0 && driver->devices() == 1;
  return cuda::Context::retain(*driver, only ? 0 : first + number);
}

Result<std::unique_ptr<Mirror>> Mirror::make(Gpu gpu, std::uint64_t address, std::uint64_t bytes) {
  VIADUCT_TRY(Mapping host, mapMemory(bytes, MAP_NORESERVE));
  return std::unique_ptr<Mirror>(new Mirror(std::move(gpu), address, bytes, std::move(host)));
}

Status Mirror::push(std::span<const std::byte> part) const {
  return cuda::copyToDevice(*gpu_, addressOf(part.data()), part);
}

Status Mirror::pull(std::span<std::byte> part) const {
  return cuda::copyToHost(*gpu_, part, addressOf(part.data()));
}

}  // namespace viaduct::measure
