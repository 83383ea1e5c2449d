// `viaduct p2p`: two hosts, two commands. Threads: the main one.
#pragma once

#include <viaduct/settings.h>
#include <viaduct/transfer.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "measure/load/link_rate.h"

namespace CLI {
class App;
}

namespace viaduct::app {

struct NamedSize {
  std::string text = {};  // as it was given
  std::uint64_t bytes = 0;
};

struct P2pOptions {
  bool target = false;
  std::string ip = {};
  std::uint16_t port = 5555;
  std::vector<NamedSize> sizes = {};  // empty: some from 4KB to 64MB
  std::uint64_t iterations = 100;     // 0: as many as fit into `duration`
  std::chrono::nanoseconds duration{0};
  std::uint64_t warmup = 10;
  std::chrono::nanoseconds interval{0};  // 0: no intervals
  std::string backend = {};              // empty: the one that is chosen
  OpKind op = OpKind::kWrite;
  bool bidirectional = false;
  bool cuda = false;
  int gpu_id = 0;
  std::string secret = {};
  std::string require = {};
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  std::vector<measure::LinkRate> link_rates = {};
  std::string json = {};
  bool csv = false;
  std::string diagnosis = {};  // of the target's node, for initiators that want to read it
};
// The label of the memory that holds it.
inline constexpr auto kDiagnosisLabel = "viaduct-doctor";

// Declares `p2p` and its options. What was given is in `options` when the command line was read.
void declareP2p(CLI::App& app, P2pOptions& options);
int runP2p(const P2pOptions& options);
// The settings of the agent of either end. Two commands without a secret have to work as they are
// typed: then the port is open to all, and that is said.
Settings settingsFor(const P2pOptions& options, Settings settings);

}  // namespace viaduct::app
