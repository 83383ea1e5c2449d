// Backends, as an agent tells of them, and facts about each. Threads: plain values, pure functions.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/settings.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

struct BackendInfo {
  std::string name = {};
  bool open = false;
  std::string text = {};  // open: its library and devices, if known; else why it is not open
  // Only for an open backend:
  int preference = 0;  // lower is tried first
  std::vector<MemoryKind> memory = {};
  bool same_host = false, rdma = false, tcp = false;
  std::vector<std::string> rails = {};
};

// The counters that see a backend's bytes.
enum class Realm : std::uint8_t { kMemory, kSockets, kRdma, kUnknown };

// The facts about a backend that hold before it is opened.
struct BackendFacts {
  std::string_view name = {};
  std::span<const std::string_view> aliases = {};  // its names in other tools, such as "UCX"
  // The library that it loads reads the variables that begin so, such as "UCX_". Empty: none does.
  std::string_view variables = {};
  // The counters that see the bytes of a share of this Path::Share::way.
  Realm (*realm)(std::string_view way) = nullptr;
  bool usual = false;      // `viaduct bench` measures it if no backend is named
  bool for_tests = false;  // opened only if it is named, and not offered
  std::span<const SettingRow> settings = {};
};
// Of every backend, those that this build leaves out included.
std::span<const BackendFacts> backendFacts();
// Nothing: there is no backend of that name.
const BackendFacts* backendFacts(std::string_view name);

}  // namespace viaduct
