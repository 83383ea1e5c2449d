// Backends, as an agent describes them, and facts about each. Threads: plain values, pure
// functions.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/settings.h>

#include <cstdint>
#include <optional>
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

// The kind of counters that see a backend's bytes. kDisk: those of this process at block devices.
// kGpu: none, because GPUs copy the bytes within their host.
enum class Realm : std::uint8_t { kMemory, kSockets, kRdma, kDisk, kGpu, kUnknown };

// The facts about a backend that hold before it is opened.
struct BackendFacts {
  std::string_view name = {};
  std::span<const std::string_view> aliases = {};  // its names in other tools, such as "UCX"
  // The prefix of the variables that its library reads, such as "UCX_". Empty: it loads no such
  // library.
  std::string_view variables = {};
  // The counters that see the bytes of a share with this PathShare::way.
  Realm (*realm)(std::string_view way) = nullptr;
  bool usual = false;      // `viaduct bench` measures it if no backend is named
  bool for_tests = false;  // opened only if it is named; never suggested
  // kFile or kObject: it reaches files or objects, not peers' memory. So `viaduct bench` has no
  // targets for it.
  std::optional<MemoryKind> storage = {};
  bool gpus = false;  // one side of each of its copies is memory of a GPU
  std::span<const SettingRow> settings = {};
};
// The facts of all backends, also of those that this build leaves out.
std::span<const BackendFacts> backendFacts();
// Null: there is no backend of that name.
const BackendFacts* backendFacts(std::string_view name);

}  // namespace viaduct
