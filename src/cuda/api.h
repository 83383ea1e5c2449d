// The part of CUDA's driver API that we use, declared by us, so that no header of CUDA is needed.
// Names and values are the driver's. Threads: plain values; the driver's functions are safe from
// any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace viaduct::cuda {

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUmemGenericAllocationHandle = std::uint64_t;
using CUcontext = struct ContextObject*;
using CUstream = struct StreamObject*;
using CUevent = struct EventObject*;
using CUmodule = struct ModuleObject*;
using CUfunction = struct FunctionObject*;

enum class CUresult : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kDeinitialized = 4,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kMapFailed = 205,
  kAlreadyMapped = 208,
  kNotMapped = 211,
  kPeerAccessUnsupported = 217,
  kInvalidPtx = 218,
  kUnsupportedPtxVersion = 222,
  kOperatingSystem = 304,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerAccessAlreadyEnabled = 704,
  kHostMemoryAlreadyRegistered = 712,
  kHostMemoryNotRegistered = 713,
  kNotPermitted = 800,
  kNotSupported = 801,
  kUnknown = 999,
};
using CUstreamCallback = void (*)(CUstream stream, CUresult result, void* data);

// CUdevice_attribute.
enum class CUdeviceAttribute : int {
  kMultiprocessorCount = 16,
  kUnifiedAddressing = 41,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kVirtualMemoryManagement = 102,
  kHandleTypePosixFd = 103,
  kGpuDirectRdma = 116,
  kDmaBuf = 124,
};

// CUpointer_attribute.
enum class CUpointerAttribute : int {
  kContext = 1,
  kMemoryType = 2,
  kBufferId = 7,
  kIsManaged = 8,
  kDeviceOrdinal = 9,
  kIsLegacyIpcCapable = 10,
  kMapped = 13,
  kAllowedHandleTypes = 14,
  kMempoolHandle = 17,
};

// CUmemorytype.
enum class CUmemoryType : unsigned { kHost = 1, kDevice = 2, kArray = 3, kUnified = 4 };

// CUmemAllocationHandleType: bits.
enum class CUmemHandleType : unsigned { kNone = 0, kPosixFd = 1, kFabric = 8 };
enum class CUmemAllocationType : int { kPinned = 1 };
enum class CUmemLocationType : int { kDevice = 1, kHost = 2 };
enum class CUmemAccessFlags : int { kNone = 0, kRead = 1, kReadWrite = 3 };
enum class CUmemGranularity : int { kMinimum = 0, kRecommended = 1 };

struct CUmemLocation {
  CUmemLocationType type = CUmemLocationType::kDevice;
  int id = 0;
};
struct CUmemAllocationProp {
  CUmemAllocationType type = CUmemAllocationType::kPinned;
  CUmemHandleType requested_handle_types = CUmemHandleType::kNone;
  CUmemLocation location = {};
  void* win32_handle_meta_data = nullptr;
  unsigned char compression_type = 0;
  unsigned char gpu_direct_rdma_capable = 0;
  unsigned short usage = 0;
  std::array<unsigned char, 4> reserved = {};
};
static_assert(sizeof(CUmemAllocationProp) == 32);
struct CUmemAccessDesc {
  CUmemLocation location = {};
  CUmemAccessFlags flags = CUmemAccessFlags::kReadWrite;
};
static_assert(sizeof(CUmemAccessDesc) == 12);
struct CUipcMemHandle {
  std::array<char, 64> bytes = {};
  friend bool operator==(const CUipcMemHandle&, const CUipcMemHandle&) = default;
};
static_assert(sizeof(CUipcMemHandle) == 64);
struct CUuuid {
  std::array<unsigned char, 16> bytes = {};
  friend bool operator==(const CUuuid&, const CUuuid&) = default;
};

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr unsigned kHostRegisterDeviceMap = 2;
inline constexpr std::uint64_t kLegacyStreams = 1;  // cuGetProcAddress: not per-thread streams

// Every call of the driver that we use: X(member, name, suffix of the exported symbol, the version
// of CUDA that has introduced this form, kNeeded or kOptional, arguments). All return CUresult.
// clang-format off
#define VIADUCT_CUDA_CALLS(X)                                                                      \
  X(init, cuInit, , 2000, kNeeded, (unsigned flags))                                               \
  X(driverGetVersion, cuDriverGetVersion, , 2020, kNeeded, (int* version))                         \
  X(getErrorName, cuGetErrorName, , 6000, kNeeded, (CUresult error, const char** text))            \
  X(getErrorString, cuGetErrorString, , 6000, kNeeded, (CUresult error, const char** text))        \
  X(deviceGet, cuDeviceGet, , 2000, kNeeded, (CUdevice* device, int ordinal))                      \
  X(deviceGetCount, cuDeviceGetCount, , 2000, kNeeded, (int* count))                               \
  X(deviceGetName, cuDeviceGetName, , 2000, kNeeded, (char* name, int length, CUdevice device))    \
  X(deviceGetAttribute, cuDeviceGetAttribute, , 2000, kNeeded,                                     \
    (int* value, CUdeviceAttribute attribute, CUdevice device))                                    \
  X(deviceGetUuid, cuDeviceGetUuid, _v2, 11040, kOptional, (CUuuid* uuid, CUdevice device))        \
  X(deviceGetPciBusId, cuDeviceGetPCIBusId, , 4010, kOptional,                                     \
    (char* id, int length, CUdevice device))                                                       \
  X(deviceCanAccessPeer, cuDeviceCanAccessPeer, , 4000, kNeeded,                                   \
    (int* can, CUdevice device, CUdevice peer))                                                    \
  X(primaryCtxRetain, cuDevicePrimaryCtxRetain, , 7000, kNeeded,                                   \
    (CUcontext* context, CUdevice device))                                                         \
  X(primaryCtxRelease, cuDevicePrimaryCtxRelease, _v2, 11000, kNeeded, (CUdevice device))          \
  X(ctxPushCurrent, cuCtxPushCurrent, _v2, 4000, kNeeded, (CUcontext context))                     \
  X(ctxPopCurrent, cuCtxPopCurrent, _v2, 4000, kNeeded, (CUcontext* context))                      \
  X(ctxEnablePeerAccess, cuCtxEnablePeerAccess, , 4000, kNeeded,                                   \
    (CUcontext peer, unsigned flags))                                                              \
  X(pointerGetAttribute, cuPointerGetAttribute, , 4000, kNeeded,                                   \
    (void* value, CUpointerAttribute attribute, CUdeviceptr address))                              \
  X(pointerGetAttributes, cuPointerGetAttributes, , 7000, kNeeded,                                 \
    (unsigned count, CUpointerAttribute* attributes, void** values, CUdeviceptr address))          \
  X(memAlloc, cuMemAlloc, _v2, 3020, kNeeded, (CUdeviceptr* address, std::size_t bytes))           \
  X(memFree, cuMemFree, _v2, 3020, kNeeded, (CUdeviceptr address))                                 \
  X(memGetAddressRange, cuMemGetAddressRange, _v2, 3020, kNeeded,                                  \
    (CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address))                                  \
  X(memcpySync, cuMemcpy, , 4000, kNeeded,                                                         \
    (CUdeviceptr to, CUdeviceptr from, std::size_t bytes))                                         \
  X(memcpyAsync, cuMemcpyAsync, , 4000, kNeeded,                                                   \
    (CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream))                        \
  X(streamCreateWithPriority, cuStreamCreateWithPriority, , 5050, kNeeded,                         \
    (CUstream* stream, unsigned flags, int priority))                                              \
  X(streamDestroy, cuStreamDestroy, _v2, 4000, kNeeded, (CUstream stream))                         \
  X(streamSynchronize, cuStreamSynchronize, , 2000, kNeeded, (CUstream stream))                    \
  X(streamWaitEvent, cuStreamWaitEvent, , 3020, kNeeded,                                           \
    (CUstream stream, CUevent event, unsigned flags))                                              \
  X(streamAddCallback, cuStreamAddCallback, , 5000, kNeeded,                                       \
    (CUstream stream, CUstreamCallback callback, void* data, unsigned flags))                      \
  X(eventCreate, cuEventCreate, , 2000, kNeeded, (CUevent* event, unsigned flags))                 \
  X(eventRecord, cuEventRecord, , 2000, kNeeded, (CUevent event, CUstream stream))                 \
  X(eventQuery, cuEventQuery, , 2000, kNeeded, (CUevent event))                                    \
  X(eventDestroy, cuEventDestroy, _v2, 4000, kNeeded, (CUevent event))                             \
  X(memHostRegister, cuMemHostRegister, _v2, 6050, kNeeded,                                        \
    (void* memory, std::size_t bytes, unsigned flags))                                             \
  X(memHostUnregister, cuMemHostUnregister, , 4000, kNeeded, (void* memory))                       \
  X(memHostGetDevicePointer, cuMemHostGetDevicePointer, _v2, 3020, kNeeded,                        \
    (CUdeviceptr* address, void* memory, unsigned flags))                                          \
  X(memHostAlloc, cuMemHostAlloc, , 2020, kNeeded,                                                 \
    (void** memory, std::size_t bytes, unsigned flags))                                            \
  X(memFreeHost, cuMemFreeHost, , 2000, kNeeded, (void* memory))                                   \
  X(moduleLoadDataEx, cuModuleLoadDataEx, , 2010, kNeeded,                                         \
    (CUmodule* module, const void* image, unsigned count, int* options, void** values))            \
  X(moduleUnload, cuModuleUnload, , 2000, kNeeded, (CUmodule module))                              \
  X(moduleGetFunction, cuModuleGetFunction, , 2000, kNeeded,                                       \
    (CUfunction* function, CUmodule module, const char* name))                                     \
  X(launchKernel, cuLaunchKernel, , 4000, kNeeded,                                                 \
    (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,     \
     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,                   \
     void** arguments, void** extra))                                                              \
  X(ipcGetMemHandle, cuIpcGetMemHandle, , 4010, kNeeded,                                           \
    (CUipcMemHandle* handle, CUdeviceptr address))                                                 \
  X(ipcOpenMemHandle, cuIpcOpenMemHandle, _v2, 11000, kNeeded,                                     \
    (CUdeviceptr* address, CUipcMemHandle handle, unsigned flags))                                 \
  X(ipcCloseMemHandle, cuIpcCloseMemHandle, , 4010, kNeeded, (CUdeviceptr address))                \
  X(memCreate, cuMemCreate, , 10020, kOptional,                                                    \
    (CUmemGenericAllocationHandle* handle, std::size_t bytes,                                      \
     const CUmemAllocationProp* properties, std::uint64_t flags))                                  \
  X(memRelease, cuMemRelease, , 10020, kOptional, (CUmemGenericAllocationHandle handle))           \
  X(memAddressReserve, cuMemAddressReserve, , 10020, kOptional,                                    \
    (CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr wish,             \
     std::uint64_t flags))                                                                         \
  X(memAddressFree, cuMemAddressFree, , 10020, kOptional,                                          \
    (CUdeviceptr address, std::size_t bytes))                                                      \
  X(memMap, cuMemMap, , 10020, kOptional,                                                          \
    (CUdeviceptr address, std::size_t bytes, std::size_t offset,                                   \
     CUmemGenericAllocationHandle handle, std::uint64_t flags))                                    \
  X(memUnmap, cuMemUnmap, , 10020, kOptional, (CUdeviceptr address, std::size_t bytes))            \
  X(memSetAccess, cuMemSetAccess, , 10020, kOptional,                                              \
    (CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access, std::size_t count))    \
  X(memGetAllocationGranularity, cuMemGetAllocationGranularity, , 10020, kOptional,                \
    (std::size_t* bytes, const CUmemAllocationProp* properties, CUmemGranularity option))          \
  X(memExportToShareableHandle, cuMemExportToShareableHandle, , 10020, kOptional,                  \
    (void* shareable, CUmemGenericAllocationHandle handle, CUmemHandleType type,                   \
     std::uint64_t flags))                                                                         \
  X(memImportFromShareableHandle, cuMemImportFromShareableHandle, , 10020, kOptional,              \
    (CUmemGenericAllocationHandle* handle, void* shareable, CUmemHandleType type))                 \
  X(memRetainAllocationHandle, cuMemRetainAllocationHandle, , 11000, kOptional,                    \
    (CUmemGenericAllocationHandle* handle, void* address))
// clang-format on

// The driver's functions. An optional one is null if the driver lacks it.
struct Api {
// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are a list of parameters
#define VIADUCT_CUDA_MEMBER(member, name, suffix, version, need, arguments) \
  CUresult(*member) arguments = nullptr;
  // NOLINTEND(bugprone-macro-parentheses)
  VIADUCT_CUDA_CALLS(VIADUCT_CUDA_MEMBER)
#undef VIADUCT_CUDA_MEMBER
};
// NOLINTEND(readability-identifier-naming)

}  // namespace viaduct::cuda
