// cuGetProcAddress, and the functions with which tests control the fake driver: fake_cuda.h.
#include <array>
#include <string_view>

#include "device/fake/call.h"

namespace viaduct::cuda {
#define VIADUCT_DECLARE(member, name, suffix, version, need, arguments) \
  extern "C" CUresult name##suffix arguments;
VIADUCT_CUDA_CALLS(VIADUCT_DECLARE)
#undef VIADUCT_DECLARE
}  // namespace viaduct::cuda

namespace viaduct::fakegpu {
namespace {

struct CallRow {
  std::string_view name;
  int version;
  void* function;
};

#define VIADUCT_ROW(member, name, suffix, version, need, arguments) \
  CallRow{#name, version, reinterpret_cast<void*>(&viaduct::cuda::name##suffix)},
const std::array kCalls{VIADUCT_CUDA_CALLS(VIADUCT_ROW)};
#undef VIADUCT_ROW

enum Found { kFound = 0, kUnknown = 1, kNewer = 2 };  // CUdriverProcAddressQueryResult

Found lookUp(std::string_view name, int version, void** function) {
  *function = nullptr;
  for (const CallRow& row : kCalls) {
    if (row.name != name) continue;
    if (row.version > version) return kNewer;
    *function = row.function;
    return kFound;
  }
  return kUnknown;
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version,
                                              std::uint64_t, int* status) {
  int driver = 0;
  const CUresult known = viaduct::cuda::cuDriverGetVersion(&driver);
  if (known != CUresult::kSuccess) return known;
  if (version > driver) return CUresult::kInvalidValue;
  const Found found = lookUp(name, version, function);
  if (status != nullptr) *status = found;
  return CUresult::kSuccess;
}

FAKE_CUDA_EXPORT void fakeCudaFail(const char* call, unsigned nth, int code) {
  Lock lock(world());
  world().faults.plan(call, nth, code);
}

FAKE_CUDA_EXPORT std::uint64_t fakeCudaCount(const char* call) {
  if (std::string_view(call) == "after fork") return callsAfterFork();
  Lock lock(world());
  return world().faults.counted(call);
}

FAKE_CUDA_EXPORT std::uint64_t fakeCudaBytesCopied() {
  Lock lock(world());
  return world().copied;
}

FAKE_CUDA_EXPORT std::uint64_t fakeCudaBytesPageable() {
  Lock lock(world());
  return world().copied_pageable;
}

FAKE_CUDA_EXPORT std::uint64_t fakeCudaBytesByKernels() {
  Lock lock(world());
  return world().copied_by_kernels;
}

FAKE_CUDA_EXPORT void fakeCudaPause(int paused) {
  Lock lock(world());
  world().paused = paused != 0;
  world().changed.notify_all();
}

FAKE_CUDA_EXPORT std::uint64_t fakeCudaHeld(const char* what) {
  World& one = world();
  Lock lock(one);
  const std::string_view name = what;
  std::uint64_t held = 0;
  if (name == "contexts")
    for (const auto& context : one.contexts) held += static_cast<unsigned>(context->retained);
  if (name == "memory") held = one.memory.blocks().size();
  if (name == "host memory") held = one.memory.hosts().size();
  if (name == "reservations") held = one.memory.reservations.size();
  if (name == "streams") held = one.streams.size();
  if (name == "events") held = one.events.size();
  if (name == "handles") held = one.handles.size();
  if (name == "copies")
    for (const auto& [handle, stream] : one.streams.objects()) held += stream->queuedCopies();
  if (name == "modules") held = one.modules.size();
  return held;
}

FAKE_CUDA_EXPORT unsigned char* fakeCudaAlias(CUdeviceptr address) {
  World& one = world();
  Lock lock(one);
  const bool known = one.memory.find(address) != nullptr;
  return known ? reinterpret_cast<unsigned char*>(one.addresses.alias(address)) : nullptr;
}
// NOLINTEND(readability-identifier-naming)
