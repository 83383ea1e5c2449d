// Each command that measures has its own flags, and names the command of any other flag.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "app/program.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Words = std::vector<std::string>;

std::string helpOf(Words command, const std::string& name = "viaduct") {
  command.emplace_back("--help");
  Program run(command, {}, name);
  EXPECT_EQ(run.finish(), 0) << run.err();
  return run.out();
}

// Returns the flags that a help lists.
Words flagsIn(const std::string& help) {
  Words out;
  std::istringstream lines(help.substr(0, help.find("\nExit codes")));
  for (std::string line; std::getline(lines, line);) {
    const auto dashes = line.find("--");
    if (!line.starts_with("  -") || dashes > 5) continue;
    out.push_back(line.substr(dashes, line.find(' ', dashes) - dashes));
  }
  return out;
}

bool contains(const Words& words, const std::string& one) {
  return std::find(words.begin(), words.end(), one) != words.end();
}

const std::vector<Words> kCommands{{"bench"},    {"kv", "bench"}, {"kv", "trace"}, {"pattern"},
                                   {"pipeline"}, {"swap"},        {"matrix"}};

TEST(Subcommands, ShowOnlyTheirOwnFlags) {
  EXPECT_LE(flagsIn(helpOf({"bench"})).size(), 60U);
  const std::pair<Words, Words> absent[] = {
      {{"bench"}, {"--tokens", "--members", "--create-source", "--op-type", "--num-iter"}},
      {{"kv", "bench"}, {"--block-sizes", "--speed", "--scheme", "--filepath"}},
      {{"kv", "trace"}, {"--tokens", "--iterations", "--interval"}},
      {{"pattern"}, {"--scheme", "--batch", "--latency", "--filepath"}},
      {{"pipeline"}, {"--verify", "--block-sizes", "--interval"}},
      {{"swap"}, {"--meet", "--backend", "--iterations"}},
      {{"matrix"}, {"--meet", "--scheme", "--interval"}}};
  for (const auto& [command, flags] : absent) {
    const Words shown = flagsIn(helpOf(command));
    EXPECT_GT(shown.size(), 8U) << command.front();
    for (const std::string& flag : flags)
      EXPECT_FALSE(contains(shown, flag)) << command.front() << flag;
  }
}

TEST(Subcommands, AdviseOnlyFlagsOfTheirOwn) {
  const Words quick{"--backend", "local", "--duration", "5ms", "--output", "json"};
  const std::pair<Words, Words> runs[] = {
      {{"bench"}, {"--block-sizes", "64M"}},
      {{"kv", "bench"}, {"Llama-3.1-8B", "--tokens", "256", "--repeat", "1"}},
      {{"pattern"}, {"sendrecv", "--block-sizes", "64M"}},
      {{"pipeline"}, {"host,net,host", "--total-buffer-size", "4M", "--repeat", "1"}}};
  for (const auto& [command, more] : runs) {
    Words words = command;
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), quick.begin(), quick.end());
    Program run(words);
    ASSERT_EQ(run.finish(), 0) << run.err();
    const auto report = nlohmann::json::parse(run.out());
    std::string said = report.at("conclusion").dump();
    for (const auto& row : report.at("rows"))
      said += row.value("remark", "") + row.value("why", "");
    const Words own = flagsIn(helpOf(command));
    const std::regex flag("--[a-z][a-z-]*");
    for (std::sregex_iterator at(said.begin(), said.end(), flag), end; at != end; ++at)
      EXPECT_TRUE(contains(own, at->str())) << command.front() << ": " << said;
  }
}

TEST(Subcommands, RefuseAFlagOfAnotherOneByItsName) {
  const std::pair<const char*, const char*> owners[] = {
      {"--tokens", "viaduct kv bench"},    {"--speed", "viaduct kv trace"},
      {"--members", "viaduct pattern"},    {"--create-source", "viaduct pipeline"},
      {"--scheme", "viaduct bench"},       {"--filepath", "viaduct bench"},
      {"--buffer-sizes", "viaduct p2p"},   {"--op-type", "nixlbench"},
      {"--gusli-config-file", "nixlbench"}};
  for (const Words& command : kCommands) {
    const Words own = flagsIn(helpOf(command));
    Words words = command, expected;
    for (const auto& [flag, owner] : owners) {
      if (contains(own, flag)) continue;
      words.insert(words.end(), {flag, "1"});
      expected.push_back(std::string(flag) + ": invalid: it is a flag of `" + owner + "`");
    }
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << run.out();
    for (const std::string& said : expected) EXPECT_TRUE(has(run.err(), said)) << said << run.err();
  }
}

TEST(Subcommands, NameTheFlagOrTheCommandThatStandsInForAnother) {
  const std::pair<Words, const char*> cases[] = {
      {{"bench", "--op-type", "READ"}, "what to do: use --op\n"},
      {{"bench", "--start_block_size", "4K"}, "use --block_sizes 4K..64M"},
      {{"bench", "--etcd-user", "x"}, "set VIADUCT_MEET_USER"},
      {{"bench", "--obj-bucket-name", "x"}, "use --object_bucket"},
      {{"bench", "--pipeline", "x"}, "`viaduct pipeline` is a command of its own"},
      {{"bench", "--gpu-matrix", "x"}, "`viaduct matrix` is a command of its own"},
      {{"bench", "--sizes", "4K"}, "did you mean --block_sizes?"},
      {{"p2p", "--tokens", "4"}, "it is a flag of `viaduct kv bench`"},
  };
  for (const auto& [words, said] : cases) {
    Program run(words);
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), said)) << said << "\n" << run.err();
  }
}

TEST(Subcommands, NameTheOwnerOfAKeyInAConfigFileToo) {
  const std::string file =
      ::testing::TempDir() + "viaduct_subcommands_" + std::to_string(::getpid()) + ".toml";
  std::ofstream(file) << "model = \"Llama-3.1-8B\"\nmembers = 4\n";
  Program run({"kv", "bench", "--config-file", file});
  EXPECT_EQ(run.finish(), 2);
  EXPECT_TRUE(has(run.err(), "line 2: unknown key \"members\": it is a flag of `viaduct pattern`"))
      << run.err();
  std::filesystem::remove(file);
}

// The flags of nixlbench 1.4.0.
const Words kTheirs{"benchmark_group=default",
                    "runtime_type=ETCD",
                    "worker_type=nixl",
                    "backend=UCX",
                    "initiator_seg_type=DRAM",
                    "target_seg_type=DRAM",
                    "scheme=pairwise",
                    "mode=SG",
                    "op_type=WRITE",
                    "check_consistency=false",
                    "total_buffer_size=8589934592",
                    "start_block_size=4096",
                    "max_block_size=67108864",
                    "start_batch_size=1",
                    "max_batch_size=1",
                    "num_iter=1000",
                    "warmup_iter=100",
                    "large_blk_iter_ftr=16",
                    "num_threads=1",
                    "recreate_xfer=false",
                    "reregister_mem=false",
                    "prepared_xfer=false",
                    "pipeline_depth=1",
                    "num_initiator_dev=1",
                    "num_target_dev=1",
                    "enable_pt=false",
                    "progress_threads=0",
                    "enable_vmm=false",
                    "use_hugepages=false",
                    "device_list=all",
                    "etcd_endpoints=",
                    "asio_address=127.0.0.1",
                    "asio_port=12345",
                    "randomize_location_mode=none",
                    "randomize_location_mode_seed=0",
                    "filepath=",
                    "filenames=a",
                    "num_files=1",
                    "storage_enable_direct=false",
                    "gds_batch_pool_size=32",
                    "gds_batch_limit=128",
                    "gds_mt_num_threads=1",
                    "posix_api_type=AIO",
                    "posix_ios_pool_size=65536",
                    "posix_kernel_queue_size=256",
                    "gpunetio_device_list=0",
                    "gpunetio_oob_list=",
                    "obj_access_key=",
                    "obj_secret_key=",
                    "obj_session_token=",
                    "obj_bucket_name=",
                    "obj_scheme=http",
                    "obj_region=eu-central-1",
                    "obj_use_virtual_addressing=false",
                    "obj_endpoint_override=",
                    "obj_req_checksum=supported",
                    "obj_ca_bundle=",
                    "obj_crt_min_limit=0",
                    "obj_accelerated_enable=false",
                    "obj_accelerated_type=",
                    "azure_blob_account_url=",
                    "azure_blob_container_name=",
                    "azure_blob_connection_string=",
                    "infinia_config_file=",
                    "hf3fs_iopool_size=64",
                    "gusli_client_name=NIXLBench",
                    "gusli_max_simultaneous_requests=32",
                    "gusli_config_file=",
                    "gusli_device_byte_offsets=",
                    "gusli_device_security=",
                    "gusli_try_use_uring=false",
                    "use_device_api=false",
                    "config_file="};

TEST(Subcommands, NixlbenchHasAllOfItsFlagsInEachSpelling) {
  Words underscores, dashes;
  for (const std::string& flag : kTheirs) {
    underscores.push_back("-" + flag);
    std::string dashed = flag;
    std::replace(dashed.begin(), dashed.begin() + static_cast<std::ptrdiff_t>(flag.find('=')), '_',
                 '-');
    dashes.push_back("--" + dashed);
  }
  for (const Words& words : {underscores, dashes})
    EXPECT_TRUE(has(helpOf(words, "nixlbench"), "usage: nixlbench [flags]"));
  const Words shown = flagsIn(helpOf({}, "nixlbench"));
  for (const std::string& flag : kTheirs)
    EXPECT_TRUE(contains(shown, "--" + flag.substr(0, flag.find('=')))) << flag;
  // nixlbench also has the flags of `viaduct bench`, but no flag of another workload.
  for (const char* flag : {"--op", "--block_sizes", "--local_workers", "--against", "--json"})
    EXPECT_TRUE(contains(shown, flag)) << flag;
  Program run({"--tokens=4"}, {}, "nixlbench");
  EXPECT_EQ(run.finish(), 2);
  EXPECT_TRUE(has(run.err(), "it is a flag of `viaduct kv bench`")) << run.err();
}

}  // namespace
}  // namespace viaduct::testing
