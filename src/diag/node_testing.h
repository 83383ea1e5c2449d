// A folder that stands for a node, for tests. Threads: the test's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "diag/node.h"
#include "support/temporary_folder.h"

namespace viaduct::diag::testing {

// A PCI function. `above`: the functions between it and its host bridge, from the bridge down.
// Missing ones are made with the same link.
struct PciParts {
  std::string address = {};  // "0000:18:00.0"
  std::string bridge = {};   // "pci0000:15"
  std::vector<std::string> above = {};
  std::string vendor = {}, device = {}, kind = {};  // "0x15b3", "0x1021", class "0x020000"
  std::string speed = "32.0 GT/s PCIe", width = "16";
  std::string most_speed = {}, most_width = {};  // empty: equal to speed and width
  int numa = 0;
  int group = -1;               // IOMMU group; -1: none
  std::string group_type = {};  // "identity"
  std::string physical = {};    // of a virtual function: its physical function
};

struct GidParts {
  std::string gid = {}, type = {}, interface = {};
};

struct RdmaParts {
  std::string name = {};  // "mlx5_0"
  std::string pci = {};   // of an existing function
  std::string state = "4: ACTIVE", phys_state = "5: LinkUp", rate = "400 Gb/sec (4X NDR)";
  std::string link_layer = "InfiniBand", lid = "0x5", sm_lid = "0x1";
  std::string firmware = "28.39.1002", type = "MT4129", board = "MT_0000000838";
  std::string node_type = "1: CA";
  std::vector<GidParts> gids = {{"fe80:0000:0000:0000:a088:c203:00ab:1234", "IB/RoCE v1", ""}};
  std::vector<std::string> interfaces = {};  // network devices, made by addInterface
  int uverbs = -1;                           // the N of /dev/infiniband/uverbsN; -1: the next free
};

struct InterfaceParts {
  std::string name = {};
  std::string pci = {};  // empty: a virtual interface
  std::string state = "up", mtu = "1500", speed = "";
  std::vector<std::string> addresses = {};  // each with 24 bits of prefix
};

class NodeFolder {
 public:
  // Makes the basic files of a Linux node: a kernel command line, limits, meminfo, uname in
  // live.json.
  NodeFolder();

  // Paths are the node's. Missing folders are made; an existing file or link is replaced.
  void write(const std::string& path, const std::string& text) const;
  void link(const std::string& path, const std::string& target) const;
  void remove(const std::string& path) const;

  void addPci(const PciParts& parts) const;
  void addRdma(const RdmaParts& parts);
  void addInterface(const InterfaceParts& parts);

  const std::string& root() const { return folder_.path(); }
  Node node() const;
  // Writes live facts and variables as a snapshot has them, for `viaduct doctor`.
  void save() const;

  // restore() undoes all changes since remember(): files, variables, and `live`.
  void remember();
  void restore();

  Variables variables = {};
  Live live = {};

 private:
  // A folder in memory, if there is room: a node has thousands of files, which take seconds on a
  // disk.
  static std::filesystem::path parent();
  struct Change {
    std::string path = {};
    std::string aside = {};  // path of the old file or folder; empty: there was none
  };
  struct Memory {
    viaduct::testing::TemporaryFolder aside{parent()};
    std::vector<Change> changes = {};
    Variables variables = {};
    Live live = {};
    int uverbs = 0;
  };
  const viaduct::testing::TemporaryFolder folder_{parent()};
  int uverbs_ = 0;
  std::unique_ptr<Memory> memory_ = {};
};

}  // namespace viaduct::diag::testing
