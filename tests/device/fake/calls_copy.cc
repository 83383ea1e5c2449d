// Copies and fills.
#include <cstring>

#include "device/fake/allocations.h"
#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

// The end of a copy on its stream: counts it, or fails it as planned.
CUresult finish(World& world, std::size_t bytes, bool pageable) {
  Lock lock(world);
  const CUresult planned = world.faults.count("copy");
  if (planned != CUresult::kSuccess) return planned;
  world.copied += bytes;
  if (pageable) world.copied_pageable += bytes;
  return CUresult::kSuccess;
}

// The fault "overrun" affects only copies of at most this many bytes.
constexpr std::size_t kMostOverrun = 128U << 10U;

// Whether the copy writes a byte behind its end, as planned.
bool overruns(World& world, std::size_t bytes) {
  if (bytes > kMostOverrun) return false;
  Lock lock(world);
  return world.faults.count("overrun") != CUresult::kSuccess;
}

struct Ends {
  Place to = {};
  Place from = {};
  bool pageable() const { return to.pageable || from.pageable; }
};

CUresult findEnds(World& world, const Context& context, CUdeviceptr to, CUdeviceptr from,
                  std::size_t bytes, Ends& ends) {
  const CUresult found = findPlace(world, context, User::kCopy, to, bytes, true, ends.to);
  if (found != CUresult::kSuccess) return found;
  return findPlace(world, context, User::kCopy, from, bytes, false, ends.from);
}

CUresult enqueueCopy(World& world, Context& context, const Ends& ends, std::size_t bytes,
                     CUstream stream, Moment& moment) {
  Work work;
  work.run = [&world, ends, bytes] {
    const CUresult result = finish(world, bytes, ends.pageable());
    if (result != CUresult::kSuccess) return result;
    std::memmove(ends.to.at, ends.from.at, bytes);
    if (overruns(world, bytes)) ends.to.at[bytes] ^= std::byte{1};
    return result;
  };
  work.is_copy = true;
  return enqueue(world, context, stream, std::move(work), &moment);
}

// Memory that is not registered is copied before the call returns, as the real driver does.
CUresult copyAsync(World& world, Lock& lock, Context& context, CUdeviceptr to, CUdeviceptr from,
                   std::size_t bytes, CUstream stream) {
  if (bytes == 0) return CUresult::kSuccess;
  Ends ends;
  Moment moment;
  CUresult result = findEnds(world, context, to, from, bytes, ends);
  if (result != CUresult::kSuccess) return result;
  result = enqueueCopy(world, context, ends, bytes, stream, moment);
  if (result != CUresult::kSuccess || !ends.pageable()) return result;
  return waitFor(lock, moment);
}

// Copies in the null stream. Between devices the call does not wait for the end.
CUresult copyNow(World& world, Lock& lock, Context& context, CUdeviceptr to, CUdeviceptr from,
                 std::size_t bytes) {
  if (bytes == 0) return CUresult::kSuccess;
  Ends ends;
  Moment moment;
  CUresult result = findEnds(world, context, to, from, bytes, ends);
  if (result != CUresult::kSuccess) return result;
  result = enqueueCopy(world, context, ends, bytes, nullptr, moment);
  const bool waits = ends.to.host || ends.from.host;
  return result != CUresult::kSuccess || !waits ? result : waitFor(lock, moment);
}

CUresult copyAsyncCall(const char* call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                       CUstream stream) {
  return inContext(call, [&](World& one, Lock& lock, Context& context) {
    return copyAsync(one, lock, context, to, from, bytes, stream);
  });
}

CUresult copyCall(const char* call, CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return inContext(call, [&](World& one, Lock& lock, Context& context) {
    return copyNow(one, lock, context, to, from, bytes);
  });
}

CUresult fill(World& world, Context& context, CUdeviceptr to, unsigned char value,
              std::size_t bytes, CUstream stream) {
  Place place;
  const CUresult found = findPlace(world, context, User::kCopy, to, bytes, true, place);
  if (found != CUresult::kSuccess) return found;
  Work work;
  work.run = [place, value, bytes] {
    std::memset(place.at, value, bytes);
    return CUresult::kSuccess;
  };
  return enqueue(world, context, stream, std::move(work));
}

CUdeviceptr addressOf(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copyCall("cuMemcpy", to, from, bytes);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                        CUstream stream) {
  return copyAsyncCall("cuMemcpyAsync", to, from, bytes, stream);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copyCall("cuMemcpyHtoD", to, addressOf(from), bytes);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copyCall("cuMemcpyDtoH", addressOf(to), from, bytes);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copyCall("cuMemcpyDtoD", to, from, bytes);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                               CUstream stream) {
  return copyAsyncCall("cuMemcpyHtoDAsync", to, addressOf(from), bytes, stream);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes,
                                               CUstream stream) {
  return copyAsyncCall("cuMemcpyDtoHAsync", addressOf(to), from, bytes, stream);
}

FAKE_CUDA_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                               CUstream stream) {
  return copyAsyncCall("cuMemcpyDtoDAsync", to, from, bytes, stream);
}

FAKE_CUDA_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t bytes) {
  return inContext("cuMemsetD8", [&](World& one, Lock&, Context& context) {
    return fill(one, context, to, value, bytes, nullptr);
  });
}

FAKE_CUDA_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes,
                                          CUstream stream) {
  return inContext("cuMemsetD8Async", [&](World& one, Lock&, Context& context) {
    return fill(one, context, to, value, bytes, stream);
  });
}
// NOLINTEND(readability-identifier-naming)
