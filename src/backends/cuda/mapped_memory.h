// Host memory that kernels read and write over the bus. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "cuda/context.h"

namespace viaduct::cuda {

class MappedMemory {
 public:
  MappedMemory() = default;
  static Result<MappedMemory> allocate(std::shared_ptr<const Context> context, std::uint64_t bytes);
  ~MappedMemory() { free(); }
  MappedMemory(MappedMemory&& other) noexcept { swap(other); }
  MappedMemory& operator=(MappedMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  void* host() const { return host_; }
  CUdeviceptr device() const { return device_; }  // the same, as kernels address it
  std::uint64_t bytes() const { return bytes_; }

 private:
  void swap(MappedMemory& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(host_, other.host_);
    std::swap(device_, other.device_);
    std::swap(bytes_, other.bytes_);
  }
  void free();

  std::shared_ptr<const Context> context_ = {};
  void* host_ = nullptr;
  CUdeviceptr device_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace viaduct::cuda
