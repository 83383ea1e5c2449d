// The primary context of a device: the one that the CUDA runtime, and so PyTorch, uses. Threads:
// any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "cuda/driver.h"

namespace viaduct::cuda {

// Keeps the primary context of a device. The driver counts the users of that context, so it exists
// until the last user has released it.
class Context {
 public:
  static Result<std::shared_ptr<const Context>> retain(const Driver& driver, std::uint32_t ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Driver& driver() const { return driver_; }
  const Api& api() const { return driver_.api(); }
  const Device& device() const { return device_; }
  std::uint32_t ordinal() const { return static_cast<std::uint32_t>(device_.handle); }
  CUcontext handle() const { return handle_; }
  // The error of a call on this device.
  Error error(const char* call, CUresult result) const {
    return driver_.error(call, result, device_.name);
  }

 private:
  Context(const Driver& driver, Device device, CUcontext handle)
      : driver_(driver), device_(std::move(device)), handle_(handle) {}

  const Driver& driver_;
  const Device device_;
  CUcontext handle_;
};

// Makes a context current for this thread. The destructor restores the context that was current
// before.
class Current {
 public:
  static Result<Current> of(const Context& context);
  ~Current();
  Current(Current&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Current& operator=(Current&&) = delete;
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  explicit Current(const Context& context) : context_(&context) {}
  const Context* context_;
};

// Calls a function of the API for a context's device, and returns the error if there is one:
// VIADUCT_CUDA_CALL(context, memFree, address);
#define VIADUCT_CUDA_CALL(context, member, ...) \
  VIADUCT_CUDA_CHECK((context).driver(), member, (context).device().name, __VA_ARGS__)

}  // namespace viaduct::cuda
