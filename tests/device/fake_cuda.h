// The fake driver, as tests load and control it. Threads: any.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "cuda/api.h"
#include "support/paths.h"

namespace viaduct::testing {

// A function of the fake driver, also one that the product does not use:
// fakeCudaFunction<CUresult(CUdeviceptr*, std::size_t, CUstream)>("cuMemAllocAsync").
template <class Function>
Function* fakeCudaFunction(const char* name) {
  void* library = ::dlopen(kFakeCuda, RTLD_NOW);
  void* found = library == nullptr ? nullptr : ::dlsym(library, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no %s: %s\n", name, ::dlerror());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// The `nth` call from now on returns `code`; if `nth` is 0, each does. The code 0 ends the failures
// of `call`. Beside the driver's names there are "copy" and "kernel", the work of a stream.
inline void fakeCudaFail(const char* call, unsigned nth, int code) {
  fakeCudaFunction<void(const char*, unsigned, int)>("fakeCudaFail")(call, nth, code);
}
// How often a call was made; "after fork": any call in a child of fork().
inline std::uint64_t fakeCudaCount(const char* call) {
  return fakeCudaFunction<std::uint64_t(const char*)>("fakeCudaCount")(call);
}
// The number of "contexts" that are retained, and of existing "memory", "host memory",
// "reservations", "streams", "events", "handles" or "modules". "copies": those that have not begun.
inline std::uint64_t fakeCudaHeld(const char* what) {
  return fakeCudaFunction<std::uint64_t(const char*)>("fakeCudaHeld")(what);
}
// Bytes that copies have moved, and those of them from or to memory that is not registered.
inline std::uint64_t fakeCudaBytesCopied() {
  return fakeCudaFunction<std::uint64_t()>("fakeCudaBytesCopied")();
}
inline std::uint64_t fakeCudaBytesPageable() {
  return fakeCudaFunction<std::uint64_t()>("fakeCudaBytesPageable")();
}
inline std::uint64_t fakeCudaBytesByKernels() {
  return fakeCudaFunction<std::uint64_t()>("fakeCudaBytesByKernels")();
}
// While true, streams begin no work.
inline void fakeCudaPause(bool paused) {
  fakeCudaFunction<void(int)>("fakeCudaPause")(paused ? 1 : 0);
}
// The place at which a test may touch the bytes of device memory. Null: there is none.
inline unsigned char* fakeCudaAlias(cuda::CUdeviceptr address) {
  return fakeCudaFunction<unsigned char*(cuda::CUdeviceptr)>("fakeCudaAlias")(address);
}

}  // namespace viaduct::testing
