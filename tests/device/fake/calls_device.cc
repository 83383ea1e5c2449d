// Start, devices, and the texts of errors.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "device/fake/call.h"

namespace viaduct::fakegpu {
namespace {

void start(World& world) {
  world.process = ::getpid();
  world.devices.resize(static_cast<std::size_t>(world.configuration.devices));
  world.addresses.open();
}

// Reads the settings from the environment at the first call.
void configure(World& world) {
  static bool configured = false;
  if (std::exchange(configured, true)) return;
  world.configuration = Configuration::fromEnvironment();
  world.faults.plan(world.configuration.faults);
}

// Calls body(World&) if the device exists.
template <class Body>
CUresult ofDevice(const char* call, CUdevice device, Body body) {
  return inProcess(call, [&](World& one, Lock&) {
    return one.has(device) ? body(one) : CUresult::kInvalidDevice;
  });
}

struct AttributeRow {
  int attribute;
  int value;
};
// Attributes of devices, by their number in CUdevice_attribute.
constexpr std::array kAttributes{
    AttributeRow{1, 1024},  AttributeRow{10, 32}, AttributeRow{16, 4}, AttributeRow{19, 1},
    AttributeRow{34, 0},    AttributeRow{40, 3},  AttributeRow{41, 1}, AttributeRow{50, 0},
    AttributeRow{39, 2048}, AttributeRow{75, 9},  AttributeRow{76, 0}, AttributeRow{83, 1},
    AttributeRow{89, 1},    AttributeRow{91, 1},  AttributeRow{99, 1}, AttributeRow{115, 1},
    AttributeRow{122, 1},   AttributeRow{125, 1},
};
constexpr int kLastAttribute = 147;
constexpr int kPciBus = 33;

int attributeOf(const World& world, CUdevice device, int attribute) {
  const Configuration& configuration = world.configuration;
  switch (attribute) {
    case kPciBus:
      return 0x10 + device;
    case 102:
    case 103:
      return configuration.virtual_memory ? 1 : 0;
    case 128:
      return configuration.fabric ? 1 : 0;
    default:
      break;
  }
  const auto* row = std::find_if(kAttributes.begin(), kAttributes.end(),
                                 [&](const auto& one) { return one.attribute == attribute; });
  return row == kAttributes.end() ? 0 : row->value;
}

struct ErrorRow {
  int code;
  const char* name;
  const char* text;
};
constexpr std::array kErrors{
    ErrorRow{0, "CUDA_SUCCESS", "no error"},
    ErrorRow{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    ErrorRow{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    ErrorRow{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    ErrorRow{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    ErrorRow{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    ErrorRow{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    ErrorRow{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    ErrorRow{205, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    ErrorRow{208, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
    ErrorRow{209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
             "no kernel image is available for execution on the device"},
    ErrorRow{217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
             "peer access is not supported between these two devices"},
    ErrorRow{218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    ErrorRow{222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
             "the provided PTX was compiled with an unsupported toolchain."},
    ErrorRow{304, "CUDA_ERROR_OPERATING_SYSTEM",
             "OS call failed or operation not supported on this OS"},
    ErrorRow{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    ErrorRow{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    ErrorRow{600, "CUDA_ERROR_NOT_READY", "device not ready"},
    ErrorRow{700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    ErrorRow{704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    ErrorRow{705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    ErrorRow{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    ErrorRow{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
             "part or all of the requested memory range is already mapped"},
    ErrorRow{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
             "pointer does not correspond to a registered memory region"},
    ErrorRow{716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    ErrorRow{719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    ErrorRow{800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    ErrorRow{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    ErrorRow{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult errorText(CUresult error, const char* ErrorRow::* field, const char** text) {
  for (const ErrorRow& row : kErrors) {
    if (row.code != static_cast<int>(error)) continue;
    *text = row.*field;
    return CUresult::kSuccess;
  }
  *text = nullptr;
  return CUresult::kInvalidValue;
}

}  // namespace
}  // namespace viaduct::fakegpu

// NOLINTBEGIN(readability-identifier-naming): the driver's names
using namespace viaduct::fakegpu;  // NOLINT(google-build-using-namespace)

FAKE_CUDA_EXPORT CUresult cuInit(unsigned flags) {
  World& one = world();
  if (forked(one)) return CUresult::kNotInitialized;
  Lock lock(one);
  configure(one);
  if (const CUresult planned = one.faults.count("cuInit"); planned != CUresult::kSuccess)
    return planned;
  if (flags != 0) return CUresult::kInvalidValue;
  if (one.configuration.devices == 0) return CUresult::kNoDevice;
  if (one.process == 0) start(one);
  return CUresult::kSuccess;
}

FAKE_CUDA_EXPORT CUresult cuDriverGetVersion(int* version) {
  World& one = world();
  if (forked(one)) return CUresult::kNotInitialized;
  Lock lock(one);
  configure(one);
  *version = one.configuration.version;
  return one.faults.count("cuDriverGetVersion");
}

FAKE_CUDA_EXPORT CUresult cuGetErrorName(CUresult error, const char** text) {
  return errorText(error, &ErrorRow::name, text);
}

FAKE_CUDA_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) {
  return errorText(error, &ErrorRow::text, text);
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetCount(int* count) {
  return inProcess("cuDeviceGetCount", [&](World& one, Lock&) {
    *count = static_cast<int>(one.devices.size());
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return ofDevice("cuDeviceGet", ordinal, [&](World&) {
    *device = ordinal;
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return ofDevice("cuDeviceGetName", device, [&](World&) {
    std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU");
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdeviceAttribute which,
                                               CUdevice device) {
  return ofDevice("cuDeviceGetAttribute", device, [&](World& one) {
    const int attribute = static_cast<int>(which);
    if (attribute < 1 || attribute > kLastAttribute) return CUresult::kInvalidValue;
    *value = attributeOf(one, device, attribute);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return ofDevice("cuDeviceGetUuid", device, [&](World&) {
    *uuid = CUuuid{};
    std::memcpy(uuid->bytes.data(), "fake-gpu", 8);
    uuid->bytes[15] = static_cast<unsigned char>(device + 1);
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return ofDevice("cuDeviceGetPCIBusId", device, [&](World& one) {
    std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0",
                  static_cast<unsigned>(attributeOf(one, device, kPciBus)));
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return ofDevice("cuDeviceTotalMem", device, [&](World& one) {
    *bytes = one.configuration.memory;
    return CUresult::kSuccess;
  });
}

FAKE_CUDA_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return ofDevice("cuDeviceCanAccessPeer", device, [&](World& one) {
    if (!one.has(peer)) return CUresult::kInvalidDevice;
    *can = one.configuration.peers && device != peer ? 1 : 0;
    return CUresult::kSuccess;
  });
}
// NOLINTEND(readability-identifier-naming)
