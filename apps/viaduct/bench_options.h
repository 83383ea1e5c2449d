// The options of `viaduct bench` and of `nixlbench`. Threads: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viaduct/flag_sheet.h"
#include "viaduct/run_options.h"

namespace viaduct::app {

// The environment variables that the given flags set for agents with one kind of storage.
struct AgentVariables {
  std::vector<std::string> variables = {};  // VARIABLE=value
  std::vector<std::string> remarks = {};    // for the user
};

struct StorageOptions {
  std::vector<std::string> filenames = {};
  std::optional<bool> direct = {};
  bool overwrite = false;
  std::string bucket = {}, endpoint = {};
  AgentVariables of_files = {}, of_objects = {};
};

// Numbers of transfers as nixlbench counts them: over all threads, and rounded up to a multiple of
// threads and divisor. Blocks above 1 MiB get the number divided by `divisor`.
struct RoundedCounts {
  std::uint64_t timed = 0, warm = 0;  // 0: not counted
  std::uint64_t divisor = 16;
};

struct BenchOptions : RunOptions {
  std::vector<std::uint64_t> block_sizes = {};
  std::vector<std::uint32_t> batches = {};
  std::uint32_t local_workers = 0;
  StorageOptions storage = {};
  RoundedCounts counts = {};
  std::vector<std::string> ignored = {};  // flags of absent backends, which have no effect
};
FlagSheet benchSheet(BenchOptions& options);
// Returns the flags of pairs of devices.
std::span<const Flag<BenchOptions>> pairFlags();
// True for the flags of storage that `viaduct bench` has.
bool isStorageFlag(std::string_view name);

}  // namespace viaduct::app
