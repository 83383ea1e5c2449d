// `viaduct p2p` measures between two hosts, with one command on each. Threads: the main one.
#pragma once

#include <viaduct/settings.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "viaduct/run_options.h"

namespace viaduct::app {

// The options of `viaduct p2p`. Without `iterations` and a duration, a row has 100 iterations.
struct P2pOptions : RunOptions {
  bool target = false;
  std::string ip = {};
  std::uint16_t port = 5555;
  std::vector<std::uint64_t> sizes = {};  // empty: default sizes from 4KB to 64MB
  std::uint64_t warmup = 10;
  std::string backend = {};  // empty: the agent chooses
  bool cuda = false;
  std::uint16_t gpu_id = 0;
  std::string secret = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  bool csv = false;
  // The diagnosis of the target's node, which `viaduct doctor --peer` reads. Empty: the target runs
  // in `viaduct p2p` itself.
  std::string diagnosis = {};
};
// The label of the memory that holds the diagnosis.
inline constexpr auto kDiagnosisLabel = "viaduct-doctor";

int runP2p(const P2pOptions& options);
// Returns the settings of the agent of either end. Without a secret the agent accepts every peer,
// so that two commands work as typed.
Settings settingsFor(const P2pOptions& options, Settings settings);

}  // namespace viaduct::app
