// The program nixlbench: NVIDIA's flags and defaults, in terms of `viaduct bench`. Threads: pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "viaduct/bench_options.h"
#include "viaduct/bench_plan.h"

namespace viaduct::app {

struct NixlbenchOptions : BenchOptions {
  std::uint64_t start_block_size = 4096, max_block_size = std::uint64_t{64} << 20U;
  std::uint32_t start_batch_size = 1, max_batch_size = 1;
  std::uint64_t num_iter = 1000, warmup_iter = 100;
  bool check_consistency = false;

  std::string etcd_endpoints = {};
  std::string etcd_user = {}, etcd_password = {};
  std::string etcd_ca = {}, etcd_cert = {}, etcd_key = {};  // files
  std::string runtime_type = "ETCD";
  std::string asio_address = "127.0.0.1";
  std::uint16_t asio_port = 12345;

  std::string obj_scheme = "http";
  std::uint32_t kernel_queue_size = 256;
};

// Returns the flags that `viaduct bench` and nixlbench share.
FlagSheet sharedSheet(BenchOptions& options);
FlagSheet nixlbenchSheet(NixlbenchOptions& options);
PlanOrProblems planNixlbench(const NixlbenchOptions& options, const Settings& settings);

CommandPage nixlbenchPage();
// `words` follow the program's name.
int runNixlbench(const std::vector<std::string>& words);

// Returns an error that says which flag of `viaduct bench` replaces this flag of nixlbench.
// Nothing: nixlbench has no such flag.
std::optional<Error> nixlbenchFlag(std::string_view flag);

// Returns the flags for nixlbench's banner: numbers without units, and 1 and 0 for yes and no.
std::vector<measure::Option> bannerFlags(const BenchPlan& plan, const BenchOptions& options);

}  // namespace viaduct::app
