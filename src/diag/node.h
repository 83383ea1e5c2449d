// The input of the checks: a node's files, a process's environment there, and the results of live
// tests. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diag/tree.h"

namespace viaduct::diag {

// The result of a test that was run on the node.
struct Tried {
  bool ok = false;
  std::string text = {};  // the system's error, or the measured value
};

// Facts that no file shows. A snapshot has them in viaduct/live.json. Fields that were not tried
// are empty.
struct Live {
  std::string hostname = {}, kernel = {}, machine = {};  // from uname: "6.1.0-13", "x86_64"
  std::optional<std::uint32_t> uid = {};
  std::optional<Tried> copy = {};      // process_vm_readv between two children
  std::optional<Tried> io_uring = {};  // the result of io_uring_setup
  std::optional<std::uint64_t> shm_bytes = {}, shm_free = {};  // of /dev/shm
  std::optional<Tried> clock = {};  // ok: the kernel considers it synchronized
  // An address in this network namespace: "10.0.106.7" with 24 bits of prefix.
  struct Address {
    std::string interface = {}, address = {};
    unsigned prefix = 0;
  };
  std::vector<Address> addresses = {};
  // A library that the loader would take: "libfabric.so.1", its path and version.
  struct Library {
    std::string name = {}, path = {}, version = {};
  };
  std::vector<Library> libraries = {};
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
};

using Variables = std::map<std::string, std::string>;

struct Node {
  Tree tree;
  Variables variables = {};         // the environment of the diagnosed process
  std::string variables_from = {};  // "this process", "process 1", or empty: unknown
  Live live = {};
  // For all pods of the node: devices or rights that this process's container lacks are no fault.
  bool for_all_pods = false;
  // The value of a variable. Null: it is unset or empty.
  const std::string* variable(const std::string& name) const {
    const auto at = variables.find(name);
    return at == variables.end() || at->second.empty() ? nullptr : &at->second;
  }
};

}  // namespace viaduct::diag
