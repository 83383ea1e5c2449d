#include "backends/cuda/gpu_kernel.h"

#include <algorithm>

#include "backends/cuda/warp.h"

namespace viaduct::cuda {

Result<std::unique_ptr<const GpuKernel>> GpuKernel::load(std::shared_ptr<const Context> context,
                                                         const char* ptx, const char* entry) {
  std::unique_ptr<GpuKernel> out(new GpuKernel(std::move(context)));
  const Context& here = *out->context_;
  VIADUCT_TRY(const auto current, Current::of(here));
  VIADUCT_CUDA_CALL(here, moduleLoadDataEx, &out->module_, ptx, 0, nullptr, nullptr);
  VIADUCT_CUDA_CALL(here, moduleGetFunction, &out->function_, out->module_, entry);
  return std::unique_ptr<const GpuKernel>(std::move(out));
}

GpuKernel::~GpuKernel() {
  const auto current = Current::of(*context_);
  if (current && module_ != nullptr) context_->api().moduleUnload(module_);
}

Status GpuKernel::launch(CUstream stream, std::uint32_t rows, std::uint32_t groups,
                         std::span<void*> arguments) const {
  const std::uint32_t needed = (rows + kMostWarpsOfGroup - 1) / kMostWarpsOfGroup;
  VIADUCT_CUDA_CALL(*context_, launchKernel, function_, std::min(groups, needed), 1, 1,
                    kMostThreadsOfGroup, 1, 1, 0, stream, arguments.data(), nullptr);
  return Ok{};
}

}  // namespace viaduct::cuda
