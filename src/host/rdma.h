// A machine's RDMA devices, their ports and GIDs. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/pci.h"

namespace viaduct::host {

// A non-empty entry of a port's GID table.
struct Gid {
  unsigned index = 0;
  std::string gid = {};        // "0000:0000:0000:0000:0000:ffff:0a00:6a07"
  std::string type = {};       // "RoCE v2", "IB/RoCE v1"; empty: the kernel does not say
  std::string interface = {};  // its network device
  bool linkLocal() const { return gid.starts_with("fe80:"); }
  bool ipv4() const { return gid.starts_with("0000:0000:0000:0000:0000:ffff:"); }
  std::string ipv4Address() const;  // "10.0.106.7"
};

struct RdmaPort {
  std::string device = {};  // "mlx5_0"
  std::string name = {};    // that of its device for the first port, "mlx5_0:2" for the second
  unsigned number = 0;
  std::string folder = {};  // "/sys/class/infiniband/mlx5_0/ports/1"
  // Empty before readState():
  std::string state = {}, phys_state = {};  // "4: ACTIVE", "5: LinkUp"
  std::string link_layer = {};              // "InfiniBand", "Ethernet", "Unknown"
  // Empty before readRate(), which readState() calls:
  std::string rate = {};  // "400 Gb/sec (4X NDR)"
  double gigabits = 0;    // from the rate; 0: it is not readable
  unsigned lanes = 0;
  std::string speed = {};      // "NDR"; empty: the kernel has no name for it
  std::vector<Gid> gids = {};  // empty before readGids()
  bool active() const { return state.starts_with("4:") || state.starts_with("5:"); }
  // True for DOWN, INIT or ARMED. A port whose state cannot be read is neither active nor down.
  bool down() const {
    return state.starts_with("1:") || state.starts_with("2:") || state.starts_with("3:");
  }
  bool roce() const { return link_layer == "Ethernet"; }
  bool infiniband() const { return link_layer == "InfiniBand"; }
  std::uint64_t bytesPerSecond() const { return static_cast<std::uint64_t>(gigabits * 1e9 / 8); }
};

// The ports of all devices, or of one. Reads no file of a port, because for some files the driver
// has to ask the device.
std::vector<RdmaPort> rdmaPorts(const Tree& tree = {});
std::vector<RdmaPort> rdmaPorts(const Tree& tree, const std::string& device);
void readState(const Tree& tree, RdmaPort& port);
void readRate(const Tree& tree, RdmaPort& port);

struct RdmaDevice {
  std::string name = {};
  std::string folder = {};                   // "/sys/class/infiniband/mlx5_0"
  std::string pci = {};                      // its PCI address; empty: none, as for siw and rxe
  std::optional<PciFunction> function = {};  // the function with this address
  std::string physical = {};                 // of a virtual function: its physical function
  std::string firmware = {}, type = {}, board = {};
  std::vector<std::string> interfaces = {};  // network devices of the same function
  std::string uverbs = {};                   // "uverbs5", as the kernel names it
  std::vector<RdmaPort> ports = {};
  bool efa() const { return function && function->isEfa(); }
  bool mellanox() const { return function && function->vendor == kMellanox; }
  double gigabits() const;  // sum of its active ports; 0: none is active
};

// Devices by name, mlx5_2 before mlx5_10 and rdmap79s0 before rdmap113s0. Reads no GIDs, because a
// table has up to 256 files, and most devices do not matter to a pod.
std::vector<RdmaDevice> rdmaDevices(const Tree& tree);
void readGids(const Tree& tree, RdmaDevice& device);

// Slingshot's NICs, such as "cxi0", which are not among the RDMA devices.
std::vector<std::string> cxiNics(const Tree& tree = {});

// Whether a name from outside has the form of a device's or interface's name.
bool isDeviceName(std::string_view name);

}  // namespace viaduct::host
