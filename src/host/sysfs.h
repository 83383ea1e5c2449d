// Small files of the kernel. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::host {

// The first line, without blanks at its ends; empty if the file is absent or not readable.
std::string firstLine(const std::string& path);
// The whole number that is the file's only word.
std::optional<std::uint64_t> numberIn(const std::string& path);
// The value of the first line "key : value" of a file; empty: there is none.
std::string valueOf(const std::string& path, std::string_view key);
bool exists(const std::string& path);
// Names in a folder, sorted; none when there is no such folder.
std::vector<std::string> namesIn(const std::string& folder);

// One line of /proc/net/dev: the traffic of an interface of this process's network namespace. /sys
// is no substitute: it shows the namespace in which it was mounted.
struct InterfaceBytes {
  std::string name = {};
  std::uint64_t received = 0, sent = 0;
};
std::vector<InterfaceBytes> interfaceBytes(const std::string& root);

// A port of an RDMA device: the device's name, the port's folder, and our name for it.
struct RdmaPort {
  std::string device = {};
  std::string folder = {};
  std::string name = {};
};
std::vector<RdmaPort> rdmaPorts(const std::string& root);
// Slingshot's NICs, such as "cxi0", which are not among the RDMA devices.
std::vector<std::string> cxiNics(const std::string& root);

}  // namespace viaduct::host
