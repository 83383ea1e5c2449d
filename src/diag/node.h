// The input of the checks: a node's files, a process's environment there, and the results of live
// tests. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "host/interfaces.h"
#include "host/link_facts.h"
#include "host/rdma.h"

namespace viaduct::diag {

// Names of src/host/ that the checks use.
using host::FileText;
using host::Gid;
using host::InterfaceAddress;
using host::interfaceFile;
using host::isDeviceName;
using host::isPciAddress;
using host::lineWith;
using host::PciFunction;
using host::PciLink;
using host::RdmaDevice;
using host::RdmaPort;
using host::Tree;
using host::valueIn;

// The result of a test that was run on the node.
struct Tried {
  bool ok = false;
  std::string text = {};  // the system's error, or the measured value
};

// A file, folder or block device that transfers are to use.
struct PathFacts {
  std::string path = {};
  Tried opened = {};
  // Its file system: "ext4" at "/data", on "/dev/nvme0n1p1". Empty for a block device.
  std::string kind = {}, mount = {}, source = {};
  bool read_only = false;  // the mount, or the permissions
  std::uint64_t bytes = 0, free = 0;
  std::optional<Tried> direct = {};  // O_DIRECT; empty: no file to try it with
  std::uint32_t offset_multiple = 0, memory_multiple = 0;  // that O_DIRECT demands
  // The features of a virtio disk, "0110...": the first character is bit 0. Empty: another disk.
  std::string virtio_features = {};
};

// The step at which a test of an object store ended.
enum class StoreStep : std::uint8_t {
  kWorks,
  kSettings,  // no usable endpoint, or settings
  kLibrary,   // libcurl
  kName,
  kPort,
  kTls,
  kClock,
  kKeys,
  kBucket,
  kRights,
  kAnswer,  // another error, or an answer that is not S3's
};
inline constexpr base::Words<StoreStep, 11> kStoreSteps{{{"works", StoreStep::kWorks},
                                                         {"settings", StoreStep::kSettings},
                                                         {"library", StoreStep::kLibrary},
                                                         {"name", StoreStep::kName},
                                                         {"port", StoreStep::kPort},
                                                         {"tls", StoreStep::kTls},
                                                         {"clock", StoreStep::kClock},
                                                         {"keys", StoreStep::kKeys},
                                                         {"bucket", StoreStep::kBucket},
                                                         {"rights", StoreStep::kRights},
                                                         {"answer", StoreStep::kAnswer}}};

// The answer of an object store to a signed request. These facts contain no access keys.
struct StoreFacts {
  std::string endpoint = {};  // "https://minio:9000"; empty: the settings name none
  std::string bucket = {};    // empty: the list of buckets
  StoreStep ended = StoreStep::kWorks;
  std::string text = {}, cause = {}, remedy = {};  // of the error
  // The difference between this clock and the store's, in seconds.
  std::optional<std::uint64_t> clock_off = {};
  bool behind = false;  // this host's clock is behind the store's
};

// Facts that no file shows. A snapshot has them in viaduct/live.json. Fields that were not tried
// are empty.
struct Live {
  std::string hostname = {}, kernel = {}, machine = {};  // from uname: "6.1.0-13", "x86_64"
  std::optional<std::uint32_t> uid = {};
  // The numbers of this process's namespaces, of IPC and of processes.
  std::optional<std::uint64_t> ipc_namespace = {}, pid_namespace = {};
  std::optional<Tried> copy = {};              // process_vm_readv between two children
  std::optional<Tried> io_uring = {};          // the result of io_uring_setup
  std::optional<Tried> io_uring_buffers = {};  // of the registration of memory, if a ring opened
  std::optional<std::uint64_t> shm_bytes = {}, shm_free = {};  // of /dev/shm
  // Ciphers of libcrypto, libipsec-mb, and the processor's instructions for AES.
  std::optional<Tried> aes_gcm = {}, chacha = {}, ipsec_mb = {}, aes_instructions = {};
  std::optional<Tried> clock = {};               // ok: the kernel considers it synchronized
  std::vector<InterfaceAddress> addresses = {};  // in this network namespace
  std::vector<host::LinkFacts> links = {};       // of the same namespace
  // A library that the loader would take: "libfabric.so.1", its path and version.
  struct Library {
    std::string name = {}, path = {}, version = {};
  };
  std::vector<Library> libraries = {};
  // True if a statically linked doctor collected these facts. Then `ipsec_mb` and some versions in
  // `libraries` are unknown.
  bool one_file = false;
  std::optional<Tried> kernel_log = {};  // its text, or the reason why it is not readable
  // Counters that grew while the checks ran: path and growth within `seconds`.
  std::map<std::string, std::uint64_t> grown = {};
  double seconds = 0;
  std::uint64_t growthOf(const std::string& path) const {
    const auto at = grown.find(path);
    return at == grown.end() ? 0 : at->second;
  }
  // Names of peers and meeting places, with the addresses that they resolve to.
  std::map<std::string, Tried> names = {};
  std::vector<PathFacts> paths = {};
  std::vector<StoreFacts> stores = {};
};

using Variables = std::map<std::string, std::string>;

struct Node {
  Tree tree;
  Variables variables = {};         // the environment of the diagnosed process
  std::string variables_from = {};  // "this process", "process 1", or empty: unknown
  Live live = {};
  // The diagnosis is for all pods of the node, so devices or rights that this process's container
  // lacks are no fault.
  bool for_all_pods = false;
  // The value of a variable. Null: it is unset or empty.
  const std::string* variable(const std::string& name) const {
    const auto at = variables.find(name);
    return at == variables.end() || at->second.empty() ? nullptr : &at->second;
  }
};

}  // namespace viaduct::diag
