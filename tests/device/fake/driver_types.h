// The driver's types, and values of them that only the fake driver and its tests use.
#pragma once

#include "cuda/api.h"

// Marks a function of the driver's interface, which programs find by its name.
#define FAKE_CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace viaduct::fakegpu {

// NOLINTBEGIN(google-build-using-namespace,readability-identifier-naming): the driver's names
using namespace viaduct::cuda;

using CUhostFn = void (*)(void* data);
using CUmemoryPool = struct PoolObject*;

struct CUmemPoolProps {
  CUmemAllocationType type = CUmemAllocationType::kPinned;
  CUmemHandleType handle_types = CUmemHandleType::kNone;
  CUmemLocation location = {};
  void* win32_security_attributes = nullptr;
  std::size_t most_bytes = 0;
  unsigned short usage = 0;
  std::array<unsigned char, 54> reserved = {};
};
static_assert(sizeof(CUmemPoolProps) == 88);
// NOLINTEND(google-build-using-namespace,readability-identifier-naming)

inline constexpr CUresult kContextIsDestroyed{709};
inline constexpr CUresult kNoBinaryForGpu{209};
inline constexpr CUresult kMisalignedAddress{716};
inline constexpr CUresult kInvalidImage{200};
inline constexpr CUresult kPeerAccessNotEnabled{705};

}  // namespace viaduct::fakegpu
