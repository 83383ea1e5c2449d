// The known causes of a slow row. One table has them all: the conclusion of a row, `viaduct bench
// --explain` and `viaduct doctor` read the same rules. docs/measuring.md has the thresholds.
// Threads: pure functions over values.
#pragma once

#include <viaduct/statistics.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/link_facts.h"
#include "host/process_limits.h"

namespace viaduct::causes {

struct RailUse {
  std::string name = {};  // "rail0"
  SocketStatistics sockets = {};
};
struct InterfaceUse {
  std::string name = {};
  std::uint64_t sent = 0;  // bytes
};

// A process and its host. Without a row, only the state of the host and the limits are known.
struct Member {
  std::string name = {};  // "rank 1"; empty: this process
  std::string host = {};  // equal for members of one host
  host::ProcessLimits limits = {};
  std::vector<host::LinkFacts> links = {};  // `dropped` counts what the row dropped
  host::TcpSegments segments = {};          // of its network namespace, since boot
  // The row's own figures:
  double seconds = 0;  // 0: there is no row
  host::ProcessTimes times = {};
  std::vector<RailUse> rails = {};
  std::vector<InterfaceUse> interfaces = {};
};

enum class Pages : std::uint8_t { kHuge, kShared, kOrdinary };  // of the memory of a row

struct RowState {
  double of_ceiling = 0;  // 0: unknown
  bool in_memory = false;
  Pages pages = Pages::kHuge;
  std::uint64_t block = 0, working_set = 0;
  // The cores of all hosts that this benchmark kept busy, those that other programs kept busy, and
  // all cores. 0: unknown.
  double cores_busy = 0, cores_others = 0, cores = 0;
};

struct Scene {
  std::vector<Member> members = {};
  std::optional<RowState> row = {};
  // The threads that need a processor at the same time: in one process, its own and the agent's.
  std::uint32_t threads = 2;
};

struct Cause {
  std::string_view name = {};  // "shaped-interface": scripts look for it, so it never changes
  std::string what = {};       // without a full stop
  std::string remedy = {};
  bool certain = true;  // false: without a slow row, it may do no harm
};

// A row of the table.
struct Rule {
  std::string_view name;
  // Returns a text for each thing that slowed the row's members. If the scene has no row: for each
  // thing that may slow later rows.
  std::vector<std::string> (*find)(const Scene& scene);
  const char* remedy;
  bool certain = true;  // false: without a slow row, it may do no harm
};
std::span<const Rule> rules();

// The causes in the order of the table. Members with the same cause are one cause.
std::vector<Cause> causesOf(const Scene& scene);
// "what: remedy; what: remedy"
std::string textOf(std::span<const Cause> causes);

// The scene of this process without a row.
Scene hereAndNow(const host::Tree& tree, std::vector<host::LinkFacts> links);

void add(SocketStatistics& into, const SocketStatistics& more);
// The difference of two readings. All figures are 0 if sockets were closed in between.
SocketStatistics between(const SocketStatistics& before, const SocketStatistics& after);

}  // namespace viaduct::causes
