// Which RDMA devices this pod was given, and how that is known. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diag/node.h"
#include "diag/rdma_devices.h"

namespace viaduct::diag {

// From the surest to the least sure.
enum class KnownBy : std::uint8_t {
  kInfo,         // PCIDEVICE_*_INFO of the SR-IOV device plugin
  kAddresses,    // PCIDEVICE_* of it
  kDeviceFiles,  // /dev/infiniband of this container has the files of some devices only
  kFunctions,    // a guess: the virtual functions that are seen in a pod
  kPorts,        // all devices with an active port
  kNone,         // there is no such device
};

// A fault of a variable of the device plugin, or of a function that it names.
struct AllocationFault {
  enum class Kind : std::uint8_t {
    kBrokenInfo,   // no JSON of the plugin's form
    kHostileName,  // cannot be the name of a device, or a PCI address
    kNoDevice,     // the function or its RDMA device is not there
    kRenamed,      // the function has an RDMA device of another name
    kNotRdma,      // the function has no RDMA device, and the plugin promises none
  };
  Kind kind = Kind::kBrokenInfo;
  std::string variable = {};
  std::string subject = {};  // the function or name, printable
  std::string detail = {};   // "JSON ends at byte 17"
};

struct Allocation {
  KnownBy known_by = KnownBy::kNone;
  std::vector<RdmaDevice> devices = {};     // given to this pod, by PCI address
  std::vector<RdmaDevice> others = {};      // seen, and not given to it
  std::vector<std::string> variables = {};  // PCIDEVICE_* that name a device
  std::vector<AllocationFault> faults = {};

  // Whether the device plugin or the container names them, and nothing was guessed.
  bool certain() const { return known_by <= KnownBy::kDeviceFiles; }
};
Allocation allocationOf(const Tree& tree, const Variables& variables);

// Whether the process runs in a pod of Kubernetes.
bool inPod(const Tree& tree, const Variables& variables);
bool hasActivePort(const RdmaDevice& device);

// Why a virtual function has no active port. The topic `sriov` reports all but kNo.
enum class FunctionFault : std::uint8_t {
  kNo,      // it has one, or its physical function has none either, or nothing can be seen
  kNoGuid,  // the subnet manager gives it no address
  kLink,    // its physical function has an active port
};
FunctionFault functionFault(const Tree& tree, const RdmaDevice& device);
// Physical functions in a list of devices, where their virtual functions were given to this pod.
std::vector<RdmaDevice> physicalListed(const Allocation& given, std::string_view list);
// "mlx5_6, mlx5_7"
std::string namesOf(const std::vector<RdmaDevice>& devices, std::string_view between = ", ");
// A text from outside for a line of output: other bytes than printable ASCII become "\x1b", and a
// long text is cut off.
std::string printable(std::string_view text);

}  // namespace viaduct::diag
