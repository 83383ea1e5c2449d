// Small files of the kernel. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::host {

// The first line, without blanks at its ends; empty when the file is not there or not readable.
std::string firstLine(const std::string& path);
// A whole number that is the file's only word.
std::optional<std::uint64_t> numberIn(const std::string& path);
bool exists(const std::string& path);
// Names in a folder, sorted; none when there is no such folder.
std::vector<std::string> namesIn(const std::string& folder);

// One line of /proc/net/dev: what an interface of this process's network namespace has carried.
// /sys shows the namespace of whoever mounted it, which may be another.
struct InterfaceBytes {
  std::string name = {};
  std::uint64_t received = 0, sent = 0;
};
std::vector<InterfaceBytes> interfaceBytes(const std::string& root);

// Ports of RDMA devices: the device's name, the port's folder, and what we call it.
struct RdmaPort {
  std::string device = {};
  std::string folder = {};
  std::string name = {};
};
std::vector<RdmaPort> rdmaPorts(const std::string& root);
// Slingshot's NICs, which are no devices of that kind: "cxi0".
std::vector<std::string> cxiNics(const std::string& root);

}  // namespace viaduct::host
