#include "cuda/context.h"

#include "cuda/driver_thread.h"

namespace viaduct::cuda {

Result<std::shared_ptr<const Context>> Context::retain(const Driver& driver,
                                                       std::uint32_t ordinal) {
  VIADUCT_TRY(Device device, driver.device(ordinal));
  CUcontext handle = nullptr;
  VIADUCT_CUDA_CHECK(driver, primaryCtxRetain, device.name, &handle, device.handle);
  return endsSoon<const Context>(new Context(driver, std::move(device), handle));
}

// A child of fork() has no context to release.
Context::~Context() {
  if (driver_.usable()) driver_.api().primaryCtxRelease(device_.handle);
}

Result<Current> Current::of(const Context& context) {
  if (!context.driver().usable())
    return context.error(CallName::ctxPushCurrent, CUresult::kNotInitialized);
  VIADUCT_CUDA_CALL(context, ctxPushCurrent, context.handle());
  return Current(context);
}

Current::~Current() {
  CUcontext popped = nullptr;
  if (context_ != nullptr) context_->api().ctxPopCurrent(&popped);
}

}  // namespace viaduct::cuda
