// A kernel of the product, loaded for one GPU. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <span>

#include "cuda/context.h"

namespace viaduct::cuda {

class GpuKernel {
 public:
  // Loads PTX text, which the driver compiles for its GPU.
  static Result<std::unique_ptr<const GpuKernel>> load(std::shared_ptr<const Context> context,
                                                       const char* ptx, const char* entry);
  ~GpuKernel();
  GpuKernel(const GpuKernel&) = delete;
  GpuKernel& operator=(const GpuKernel&) = delete;

  // Launches one warp for each row of a table, but at most `groups` groups, with the context
  // current. `arguments` has the address of each argument.
  Status launch(CUstream stream, std::uint32_t rows, std::uint32_t groups,
                std::span<void*> arguments) const;

 private:
  explicit GpuKernel(std::shared_ptr<const Context> context) : context_(std::move(context)) {}

  const std::shared_ptr<const Context> context_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

}  // namespace viaduct::cuda
