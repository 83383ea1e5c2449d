// The file systems and block devices under a file, and the bytes that block devices have carried.
// Threads: pure functions and values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/counters.h"
#include "host/tree.h"

namespace viaduct::host {

// A line of /proc/self/mountinfo.
struct Mount {
  std::string id = {};
  std::string device = {};  // "8:1"
  std::string point = {}, type = {}, source = {};
};
std::vector<Mount> mounts(const Tree& tree = {});

struct StorageStack {
  std::vector<std::string> layers = {};   // from the top: "ext4", "dm-0", "nvme0n1"
  std::vector<std::string> devices = {};  // the lowest block devices; empty: none is known
  bool in_memory = false;                 // a lowest layer is memory
  std::string text() const;               // "ext4 over dm-0 over nvme0n1"
  friend bool operator==(const StorageStack&, const StorageStack&) = default;
};
// Returns the stack under a file, a block device, or a file that does not exist yet.
StorageStack storageUnder(const std::string& path);
// The stack under a file system, or under a block device itself, by its device number: "8:1".
StorageStack storageOfFiles(const Tree& tree, const std::string& device);
StorageStack storageOfDevice(const Tree& tree, const std::string& device);

// The bytes that a block device has carried for all processes.
struct DiskCount {
  std::string device = {};
  DiskBytes bytes = {};
  friend bool operator==(const DiskCount&, const DiskCount&) = default;
};
std::optional<DiskCount> diskCount(const Tree& tree, const std::string& device);

}  // namespace viaduct::host
