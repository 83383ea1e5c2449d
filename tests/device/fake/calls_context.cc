// Primary contexts, the stack of current contexts, and access to other devices.
#include <iterator>

#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

Context* knownContext(const World& world, CUcontext handle) {
  for (const auto& one : world.contexts)
    if (reinterpret_cast<CUcontext>(one.get()) == handle) return one.get();
  return nullptr;
}

CUcontext handleOf(Context* context) { return reinterpret_cast<CUcontext>(context); }

// Ends a primary context with everything that was made in it.
void destroy(World& world, Lock& lock, Context& context) {
  drain(world, lock);
  std::vector<CUstream> streams;
  for (const auto& [handle, stream] : world.streams.objects())
    if (&stream->context() == &context) streams.push_back(CUstream(handle));
  for (CUstream handle : streams) {
    world.streams.find(handle)->close();
    world.streams.remove(handle);
  }
  if (context.null_stream != nullptr) context.null_stream->close();
  context.null_stream = nullptr;
  freeAllOf(world, context);
  world.events.removeOf(context);
  world.modules.removeOf(context);
  context.alive = false;
  world.device(context.device).primary = nullptr;
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return inProcess("cuDevicePrimaryCtxRetain", [&](World& one, Lock&) {
    if (!one.has(device)) return CUresult::kInvalidDevice;
    Device& owner = one.device(device);
    if (owner.primary == nullptr) {
      one.contexts.push_back(std::make_unique<Context>());
      owner.primary = one.contexts.back().get();
      owner.primary->device = device;
    }
    ++owner.primary->retained;
    *context = handleOf(owner.primary);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  return inProcess("cuDevicePrimaryCtxRelease", [&](World& one, Lock& lock) {
    if (!one.has(device)) return CUresult::kInvalidDevice;
    Context* primary = one.device(device).primary;
    if (primary == nullptr) return CUresult::kInvalidContext;
    if (--primary->retained == 0) destroy(one, lock, *primary);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags,
                                                     int* active) {
  return inProcess("cuDevicePrimaryCtxGetState", [&](World& one, Lock&) {
    if (!one.has(device)) return CUresult::kInvalidDevice;
    *flags = 0;
    *active = one.device(device).primary == nullptr ? 0 : 1;
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return inProcess("cuCtxPushCurrent", [&](World& one, Lock&) {
    Context* known = knownContext(one, context);
    if (known == nullptr) return CUresult::kInvalidContext;
    if (!known->alive) return kContextIsDestroyed;
    contextStack().push_back(known);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return inProcess("cuCtxPopCurrent", [&](World&, Lock&) {
    if (contextStack().empty()) return CUresult::kInvalidContext;
    if (context != nullptr) *context = handleOf(contextStack().back());
    contextStack().pop_back();
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  return inProcess("cuCtxSetCurrent", [&](World& one, Lock&) {
    Context* known = knownContext(one, context);
    if (context != nullptr && known == nullptr) return CUresult::kInvalidContext;
    if (!contextStack().empty()) contextStack().pop_back();
    if (known != nullptr) contextStack().push_back(known);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxGetCurrent(CUcontext* context) {
  return inProcess("cuCtxGetCurrent", [&](World&, Lock&) {
    *context = contextStack().empty() ? nullptr : handleOf(contextStack().back());
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxGetDevice(CUdevice* device) {
  return inContext("cuCtxGetDevice", [&](World&, Lock&, Context& context) {
    *device = context.device;
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxSynchronize() {
  return inContext("cuCtxSynchronize", [&](World& one, Lock& lock, Context& context) {
    drain(one, lock);
    return context.failure;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  return inContext("cuCtxEnablePeerAccess", [&](World& one, Lock&, Context& context) {
    const Context* known = knownContext(one, peer);
    if (flags != 0) return CUresult::kInvalidValue;
    if (known == nullptr || !known->alive || known == &context) return CUresult::kInvalidContext;
    if (!one.configuration.peers) return CUresult::kPeerAccessUnsupported;
    const bool added = context.peers.insert(known->device).second;
    return added ? CUresult::kSuccess : CUresult::kPeerAccessAlreadyEnabled;
  });
}

FAKE_CUDA_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  return inContext("cuCtxDisablePeerAccess", [&](World& one, Lock&, Context& context) {
    const Context* known = knownContext(one, peer);
    if (known == nullptr) return CUresult::kInvalidContext;
    return context.peers.erase(known->device) != 0 ? CUresult::kSuccess : kPeerAccessNotEnabled;
  });
}
// NOLINTEND(readability-identifier-naming)
