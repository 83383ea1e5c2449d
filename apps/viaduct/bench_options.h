// The flags of `viaduct bench` in one table, and the options that they fill. Threads: plain values
// and pure functions.
#pragma once

#include <viaduct/transfer.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/load/spec.h"
#include "measure/load/pipeline.h"
#include "measure/run/pipeline_storage.h"
#include "measure/result/row.h"
#include "measure/stats/rank_sum.h"
#include "viaduct/flags.h"

namespace viaduct::app {

using GivenFlags = std::map<std::string, std::string, std::less<>>;
// Returns a command line for people, such as "viaduct bench --backend tcp". It leaves out secrets
// and the meeting place.
std::string commandText(std::string program, const GivenFlags& given);

enum class OutputForm : std::uint8_t { kTable, kNixlbench, kJson, kCsv };

// The workload of --kv.
struct KvOptions {
  std::string model = {};
  std::vector<std::uint32_t> tokens = {8192}, blocks = {}, requests = {};
  std::uint32_t block_to = 0, tp = 1, tp_to = 0;  // 0: as at the source
  std::optional<KvOrder> order = {};
  std::optional<KvArrangement> arrangement = {};
  std::uint64_t pool_budget = 0;  // 0: by this host's memory
  measure::KvTrace trace = {};
  double speed = 1;
  std::uint64_t prefill_rate = 0;
};

struct BenchOptions {
  // True if the program was called as nixlbench. Its defaults differ.
  bool as_nixlbench = false;
  // The flags of the command line and their values. Result files record them, so secret values are
  // replaced.
  GivenFlags given = {};
  bool has(std::string_view flag) const { return given.find(flag) != given.end(); }
  // The text of a flag, as it was given.
  std::string textOf(std::string_view flag, std::string otherwise) const {
    const auto at = given.find(flag);
    return at == given.end() ? std::move(otherwise) : at->second;
  }
  std::vector<std::string> unread = {};   // flags with a wrong value; they keep their defaults
  std::vector<std::string> ignored = {};  // flags of absent backends, which have no effect

  // Options that the plan takes over unchanged.
  measure::Spec spec = {};

  // Data.
  std::vector<std::string> backends = {};
  OpKind op = OpKind::kWrite;
  std::vector<std::uint64_t> block_sizes = {};
  std::uint64_t start_block_size = 4096, max_block_size = std::uint64_t{64} << 20U;
  std::uint32_t batch = 0, start_batch_size = 1, max_batch_size = 1;
  std::string initiator_seg_type = "DRAM", target_seg_type = "DRAM";
  bool cold = false;  // transfers cycle through more memory than the caches hold
  std::uint64_t working_set = 0;
  std::vector<std::string> device_list = {};

  // Storage. The strings hold the words of the flags, and the plan interprets them.
  std::vector<std::string> filenames = {};
  std::string obj_bucket_name = {}, obj_endpoint = {}, obj_scheme = "http", obj_region = {};
  std::string obj_ca = {};
  std::string obj_access_key = {}, obj_secret_key = {}, obj_session_token = {};
  bool storage_enable_direct = false, obj_virtual = false;
  std::uint32_t kernel_queue_size = 256;

  // Workers.
  bool prepared_xfer = false;
  std::uint32_t members = 0;                   // of a pattern; 0: not given
  std::vector<std::uint32_t> gpu_matrix = {};  // GPUs of --gpu_matrix; empty: all

  // Duration.
  std::uint64_t iterations = 0, num_iter = 1000, warmup_iter = 100, large_blk_iter_ftr = 16;
  std::chrono::nanoseconds duration{0}, warmup{0};

  // Checks.
  measure::Verified verify = measure::Verified::kSampled;
  bool check_consistency = false;

  // Meeting place.
  std::string meet = {};
  std::string secret = {};
  std::string etcd_endpoints = {};
  std::string etcd_user = {}, etcd_password = {};
  std::string etcd_ca = {}, etcd_cert = {}, etcd_key = {};  // files
  std::string runtime_type = "ETCD";
  std::string asio_address = "127.0.0.1";
  std::uint16_t asio_port = 12345;
  std::string benchmark_group = "default";
  std::optional<std::uint32_t> rank = {};
  std::uint32_t local_workers = 0;
  std::chrono::nanoseconds meet_timeout = std::chrono::minutes(3);

  // Comparison.
  std::string against = {};
  std::uint32_t rounds = 5;
  std::optional<double> slower = {};  // 0.05: fail if B is more than 5 % slower
  double least_effect = measure::kLeastEffect;

  // True for --scheme swap, which has no rows between devices.
  bool swap = false;

  KvOptions kv = {};

  // Pipeline.
  measure::pipeline::Pipeline pipeline = {};
  measure::pipeline::StorageOptions storage = {};

  // Output.
  std::optional<OutputForm> output = {};
  std::string json = {};
  std::string config_file = {};
  bool explain = false;  // explain the choice of backends instead of measuring
  bool help = false;
};

using BenchFlag = Flag<BenchOptions>;
// Returns the default under the name in use, of a text such as "50ms; nixlbench: warmup_iter".
std::string_view defaultOf(const BenchFlag& flag, bool as_nixlbench);
// The groups of flags in the order of --help, each with its title.
struct FlagGroup {
  std::string_view title;
  std::span<const BenchFlag> flags;
};
std::span<const FlagGroup> benchFlags();
std::span<const BenchFlag> pipelineFlags();
std::span<const BenchFlag> kvFlags();
// Flags for runs with storage. Others ignore them.
std::span<const BenchFlag> storageFlags();
// Flags of nixlbench for features that viaduct does not have. Each one is refused by name.
std::span<const BenchFlag> absentFlags();
// Flags of nixlbench for backends that viaduct does not have. Scripts pass them with every backend,
// and nixlbench ignores them for other backends. So they have no effect.
std::span<const BenchFlag> flagsOfOtherBackends();
std::vector<FlagName> benchFlagNames();

// The options that `words` ask for, with the file of --config_file. The command line wins over the
// file. If there are problems, the options hold the flags that could be read.
struct OptionsOrProblems {
  BenchOptions options = {};
  std::vector<Error> problems = {};
};
// As nixlbench, the last one of repeated flags wins.
OptionsOrProblems readBenchOptions(std::span<const std::string> words, bool as_nixlbench,
                                   Repeats repeats = Repeats::kRefused);

CommandPage benchPage(bool as_nixlbench);
// The page of `viaduct kv bench`, with those flags that a KV workload may need.
CommandPage kvBenchPage();
CommandPage kvTracePage();
// The page docs/bench-flags.md.
std::string benchFlagsPage();

}  // namespace viaduct::app
