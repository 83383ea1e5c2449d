// `viaduct p2p` measures between two hosts, with one command on each. Threads: the main one.
#pragma once

#include <viaduct/settings.h>
#include <viaduct/transfer.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/workload/link_rate.h"

namespace viaduct::app {

struct NamedSize {
  std::string text = {};  // as the user wrote it
  std::uint64_t bytes = 0;
};

struct P2pOptions {
  bool target = false;
  std::string ip = {};
  std::uint16_t port = 5555;
  std::vector<NamedSize> sizes = {};  // empty: default sizes from 4KB to 64MB
  std::uint64_t iterations = 100;     // 0: as many as fit into `duration`
  std::chrono::nanoseconds duration{0};
  std::uint64_t warmup = 10;
  std::chrono::nanoseconds interval{0};  // 0: no interval lines
  std::string backend = {};              // empty: the agent chooses
  OpKind op = OpKind::kWrite;
  bool bidirectional = false;
  bool cuda = false;
  std::uint16_t gpu_id = 0;
  std::string secret = {};
  std::string require = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  std::vector<measure::LinkRate> link_rates = {};
  std::string json = {};
  bool csv = false;
  // The diagnosis of the target's node, which `viaduct doctor --peer` reads. Empty: the target is
  // one of `viaduct p2p`.
  std::string diagnosis = {};
};
// The label of the memory that holds the diagnosis.
inline constexpr auto kDiagnosisLabel = "viaduct-doctor";

int runP2p(const P2pOptions& options);
// Returns the settings of the agent of either end. Without a secret the agent accepts every peer,
// so that two commands work as typed.
Settings settingsFor(const P2pOptions& options, Settings settings);

}  // namespace viaduct::app
