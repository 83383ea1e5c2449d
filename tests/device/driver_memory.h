// Memory of a GPU that a program allocates by the driver itself, of each kind that the driver has.
// Threads: one at a time.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/memory.h"

namespace viaduct::testing {

class DriverMemory {
 public:
  static constexpr std::uint64_t kChunk = std::uint64_t{2} << 20U;  // of virtual memory

  // Memory of GPU 0, which the driver of that library allocates. Virtual memory is made of chunks.
  static Result<std::unique_ptr<DriverMemory>> make(const std::string& library,
                                                    cuda::MemoryClass kind, std::uint64_t bytes) {
    VIADUCT_TRY(auto memory, open(library));
    VIADUCT_TRY(const auto current, cuda::Current::of(*memory->context_));
    VIADUCT_CHECK(memory->allocate(library, kind, bytes));
    return memory;
  }
  // Chunks of virtual memory behind each other, with these handle types, and then addresses without
  // memory.
  static Result<std::unique_ptr<DriverMemory>> chunks(
      const std::string& library, const std::vector<cuda::CUmemHandleType>& types) {
    VIADUCT_TRY(auto memory, open(library));
    VIADUCT_TRY(const auto current, cuda::Current::of(*memory->context_));
    VIADUCT_CHECK(memory->map(types));
    return memory;
  }
  ~DriverMemory() { static_cast<void>(free()); }
  DriverMemory(const DriverMemory&) = delete;
  DriverMemory& operator=(const DriverMemory&) = delete;

  cuda::CUdeviceptr address() const { return address_; }
  const cuda::Context& context() const { return *context_; }

  Status free() {
    const auto address = std::exchange(address_, 0);
    if (address == 0) return Ok{};
    VIADUCT_TRY(const auto current, cuda::Current::of(*context_));
    if (reserved_ == 0) {
      VIADUCT_CUDA_CALL(*context_, memFree, address);
      return Ok{};
    }
    if (mapped_ > 0) VIADUCT_CUDA_CALL(*context_, memUnmap, address, mapped_);
    VIADUCT_CUDA_CALL(*context_, memAddressFree, address, reserved_);
    return Ok{};
  }

 private:
  explicit DriverMemory(std::shared_ptr<const cuda::Context> context)
      : context_(std::move(context)) {}
  static Result<std::unique_ptr<DriverMemory>> open(const std::string& library) {
    VIADUCT_TRY(const auto* driver, cuda::driver(library));
    VIADUCT_TRY(auto context, cuda::Context::retain(*driver, 0));
    return std::unique_ptr<DriverMemory>(new DriverMemory(std::move(context)));
  }

  Status allocate(const std::string& library, cuda::MemoryClass kind, std::uint64_t bytes) {
    const auto mapChunks = [&](cuda::CUmemHandleType type) {
      return map(std::vector<cuda::CUmemHandleType>((bytes + kChunk - 1) / kChunk, type));
    };
    switch (kind) {
      case cuda::MemoryClass::kLegacy:
        VIADUCT_CUDA_CALL(*context_, memAlloc, &address_, bytes);
        return Ok{};
      case cuda::MemoryClass::kShareable:
        return mapChunks(cuda::CUmemHandleType::kPosixFd);
      case cuda::MemoryClass::kFabric:
        return mapChunks(cuda::CUmemHandleType::kFabric);
      case cuda::MemoryClass::kPrivate:
        return mapChunks(cuda::CUmemHandleType::kNone);
      case cuda::MemoryClass::kPool:
        return call<cuda::CUstream>(library, "cuMemAllocAsync", bytes, nullptr);
      case cuda::MemoryClass::kManaged:
        return call<unsigned>(library, "cuMemAllocManaged", bytes, kAttachGlobal);
      case cuda::MemoryClass::kHost:
        break;
    }
    return Error{.code = Code::kInvalid, .operation = "allocate", .detail = "not memory of a GPU"};
  }

  // Allocates by a function that Viaduct does not use.
  template <class Last>
  Status call(const std::string& library, const char* name, std::uint64_t bytes, Last last) {
    void* const opened = ::dlopen(library.c_str(), RTLD_NOW);
    void* const found = opened == nullptr ? nullptr : ::dlsym(opened, name);
    if (found == nullptr) return Error{.code = Code::kUnsupported, .operation = name};
    const auto function =
        reinterpret_cast<cuda::CUresult (*)(cuda::CUdeviceptr*, std::size_t, Last)>(found);
    const cuda::CUresult result = function(&address_, bytes, last);
    if (result != cuda::CUresult::kSuccess) return context_->error(name, result);
    VIADUCT_CUDA_CALL(*context_, streamSynchronize, nullptr);
    return Ok{};
  }

  Status map(const std::vector<cuda::CUmemHandleType>& types) {
    const std::uint64_t reserved = (types.size() + 2) * kChunk;
    VIADUCT_CUDA_CALL(*context_, memAddressReserve, &address_, reserved, 0, 0, 0);
    reserved_ = reserved;
    for (const cuda::CUmemHandleType type : types) {
      const cuda::CUmemAllocationProp properties{.requested_handle_types = type,
                                                 .location = {cuda::CUmemLocationType::kDevice, 0}};
      cuda::CUmemGenericAllocationHandle handle = 0;
      VIADUCT_CUDA_CALL(*context_, memCreate, &handle, kChunk, &properties, 0);
      const auto mapped = context_->api().memMap(address_ + mapped_, kChunk, 0, handle, 0);
      context_->api().memRelease(handle);  // the mapping keeps it
      if (mapped != cuda::CUresult::kSuccess)
        return context_->error(cuda::CallName::memMap, mapped);
      mapped_ += kChunk;
    }
    return cuda::setAccess(*context_, address_, mapped_);
  }

  static constexpr unsigned kAttachGlobal = 1;
  const std::shared_ptr<const cuda::Context> context_;
  cuda::CUdeviceptr address_ = 0;
  std::uint64_t reserved_ = 0, mapped_ = 0;  // of virtual memory
};

}  // namespace viaduct::testing
