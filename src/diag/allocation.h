// The RDMA devices that this pod got, and the source of that knowledge. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "diag/node.h"

namespace viaduct::diag {

// The source that tells which devices are the pod's, from the surest to the least sure one.
enum class KnownBy : std::uint8_t {
  kInfo,         // PCIDEVICE_*_INFO of the SR-IOV device plugin
  kAddresses,    // PCIDEVICE_* of the SR-IOV device plugin
  kDeviceFiles,  // /dev/infiniband of this container has the files of some devices only
  kFunctions,    // a guess: the virtual functions that are visible in a pod
  kPorts,        // all devices with an active port
  kNone,         // there is no device
};

// A fault of the device plugin's variables, or of a function that they name.
enum class AllocationFaultKind : std::uint8_t {
  kBrokenInfo,   // not JSON of the plugin's form
  kHostileName,  // the text cannot be the name of a device, or a PCI address
  kNoDevice,     // the function or its RDMA device is absent
  kRenamed,      // the function has an RDMA device of another name
  kNotRdma,      // the function has no RDMA device, and the plugin promises none
};
struct AllocationFault {
  AllocationFaultKind kind = AllocationFaultKind::kBrokenInfo;
  std::string variable = {};
  std::string subject = {};  // the function or name, printable
  std::string detail = {};   // "JSON ends at byte 17"
};

struct Allocation {
  KnownBy known_by = KnownBy::kNone;
  std::vector<RdmaDevice> devices = {};     // given to this pod; sorted by PCI address
  std::vector<RdmaDevice> others = {};      // visible, but not given to this pod
  std::vector<std::string> variables = {};  // PCIDEVICE_* that name a device
  std::vector<AllocationFault> faults = {};

  // True if the device plugin or the container names the devices; false for a guess.
  bool certain() const { return known_by <= KnownBy::kDeviceFiles; }
};
Allocation allocationOf(const Node& node);
// The devices whose faults matter: the pod's own devices if they are known, otherwise all of the
// node. On a host, a missing device file is a fault of the device. kCount: also takes guessed
// devices for the pod's own.
enum class Guesses : bool { kIgnored, kCount };
std::vector<RdmaDevice> devicesToLookAt(const Node& node, const Allocation& given,
                                        Guesses guesses = Guesses::kIgnored);

// Whether the process runs in a pod of Kubernetes.
bool inPod(const Node& node);
bool hasActivePort(const RdmaDevice& device);

// The reason why a virtual function has no active port. The topic `sriov` reports all but kNo.
enum class FunctionFault : std::uint8_t {
  kNo,      // an active port, no virtual function, or none of the reasons below
  kNoGuid,  // the subnet manager gives it no GUID
  kLink,    // only its physical function has an active port
};
FunctionFault functionFault(const Tree& tree, const RdmaDevice& device);
// The physical functions that a list of devices names, if this pod got their virtual functions.
std::vector<RdmaDevice> physicalListed(const Allocation& given, std::string_view list);
// "mlx5_6, mlx5_7".
std::string namesOf(const std::vector<RdmaDevice>& devices, std::string_view between = ", ");
using base::printable;

}  // namespace viaduct::diag
