// `viaduct bench` refuses impossible input, and measures nothing then.
#include <gtest/gtest.h>
#include <unistd.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "app/program.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Words = std::vector<std::string>;

void expectRefused(const Words& arguments, const std::vector<std::string>& said,
                   const std::string& name = "viaduct") {
  Program run(arguments, {}, name);
  EXPECT_EQ(run.finish(), 2) << said.front();
  for (const std::string& words : said) EXPECT_TRUE(has(run.err(), words)) << run.err();
  EXPECT_EQ(run.out(), "");
}

TEST(BenchInput, InvalidValuesAreNamed) {
  const std::pair<Words, const char*> cases[] = {
      {{"--block-sizes", "4X"}, "--block_sizes: invalid: \"4X\" has an unknown or no unit"},
      {{"--block-sizes", "0"}, "the size is 0"},
      {{"--block-sizes", "64GiB", "--batch", "2"}, "at most 64 GiB"},
      {{"--block-sizes", "4K,4096"}, "4 KiB is named twice"},
      {{"--batch", "0"}, "--batch: invalid: \"0\" is not a whole number from 1"},
      {{"--batch", "many"}, "--batch"},
      {{"--iterations", "-3"}, "--iterations"},
      {{"--op", "shove"}, "\"shove\" is none of WRITE, READ, push, pull"},
      {{"--memory", "disk"}, "\"disk\" is none of allocate, malloc"},
      {{"--scheme", "ring"}, "\"ring\" is none of pairwise, manytoone, onetomany, tp"},
      {{"--mode", "XG"}, "\"XG\" is none of SG, MG"},
      {{"--output", "xml"}, "none of table, nixlbench, json, csv"},
      {{"--duration", "fast"}, "--duration"},
      {{"--duration", "0"}, "--duration: invalid: the duration is 0"},
      {{"--require", "rdm"}, "--require: invalid: \"rdm\" is not a requirement"},
      {{"--json", ""}, "--json: invalid: the file name is empty"},
      {{"--json", "-"}, "use --output json to print the results"},
      {{"--require", "backend:garbage"}, "there is no backend \"garbage\"; what to do: choose one"},
      {{"--require", "backend:"}, "\"backend:\" is not a requirement"},
      {{"--block-sizes", "4K,,8K"}, "a list item is empty"},
      {{"--rate", "-1"}, "\"-1\" is not a number above 0"},
      {{"--recreate_xfer=perhaps"}, "\"perhaps\" is neither yes nor no"},
      {{"--link-rate", "eth0"}, "--link_rate"},
      {{"--backend", "tcp,tcp"}, "tcp is named twice"},
      {{"--json", "/no/such/folder/file"}, "/no/such/folder/file"},
      {{"--device_list", "eth77"}, "there is no device \"eth77\""},
      {{"more"}, "\"more\" is not a flag"},
      {{"--colour", "red"}, "--colour"},
      {{"--flagfile", "x"}, "flags from gflags files and the environment are not read"},
  };
  for (const auto& [flags, words] : cases) {
    Words arguments{"bench"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    expectRefused(arguments, {words});
  }
  expectRefused({"--asio_port", "70000"}, {"\"70000\" is not a whole number from 1 to 65535"},
                "nixlbench");
  const std::pair<Words, const char*> patterns[] = {
      {{"ring"}, "\"ring\" is none of allgather, alltoall, allreduce-traffic"},
      {{"sendrecv", "--output", "nixlbench"}, "none of table, json, csv"},
      {{"sendrecv", "--backend", "file"}, "--backend: invalid: storage is no member"},
      {{"alltoall", "--members", "4", "--block-sizes", "3"},
       "3 B cannot be cut into a piece for each of 4 members; what to do: use 4 B or more"},
  };
  for (const auto& [flags, words] : patterns) expectRefused(withFlags({"pattern"}, flags), {words});
  expectRefused({"measure"}, {"measure"});
  expectRefused({}, {"bench"});
  Program setting({"bench"}, {"VIADUCT_SOCKETS=many"});
  EXPECT_EQ(setting.finish(), 2);
  EXPECT_TRUE(has(setting.err(), "VIADUCT_SOCKETS=many")) << setting.err();
  // The device is checked first, because the agents would wait for it until the deadline.
  for (const char* command : {"bench", "suite"}) {
    Program rails({command}, {"VIADUCT_RAILS=eth77"});
    EXPECT_EQ(rails.finish(), 2) << command;
    EXPECT_TRUE(has(rails.err(), "VIADUCT_RAILS: not found: there is no device \"eth77\""))
        << command << rails.err();
  }
}

TEST(BenchInput, HelpAndVersionAreWhereTheyAreExpected) {
  const std::pair<const char*, const char*> cases[] = {{"-h", "usage: viaduct bench"},
                                                       {"--help", "usage: viaduct bench"},
                                                       {"--version", "viaduct "}};
  for (const auto& [flag, said] : cases) {
    Program run({"bench", flag});
    EXPECT_EQ(run.finish(), 0) << flag << run.err();
    EXPECT_TRUE(has(run.out(), said)) << run.out();
  }
  Program theirs({"--help"}, {}, "nixlbench");
  EXPECT_EQ(theirs.finish(), 0) << theirs.err();
  for (const char* said : {"usage: nixlbench [flags]", "  nixlbench --etcd_endpoints ",
                           "--total_buffer_size SIZE", "[8 GiB]"})
    EXPECT_TRUE(has(theirs.out(), said)) << theirs.out();
  for (const char* said : {"viaduct bench", "nixlbench: ", "-buffer-size"})
    EXPECT_FALSE(has(theirs.out(), said)) << theirs.out();
}

TEST(BenchInput, AllThatIsWrongIsNamedAtOnce) {
  expectRefused(
      {"bench", "--blok-sizes", "4K", "--batch", "many", "--backend", "pigeon", "--explain",
       "--against", "--cold", "--device_list", "eth77"},
      {"--blok-sizes: invalid: there is no such flag", "--batch: invalid: \"many\"",
       "pigeon is not a backend", "--explain and --against: ", "there is no device \"eth77\""});
  expectRefused({"bench", "--against", "--batch 0 --colour red VIADUCT_SOKETS=4"},
                {"--batch: invalid: \"0\"", "--colour: invalid", "did you mean VIADUCT_SOCKETS?"});
  expectRefused({"suite", "--rounds", "1", "--backend", "pigeon", "--colour"},
                {"--rounds: invalid", "pigeon is not a backend", "--colour: invalid"});
  // A mistake that only follows from an unreadable value is not reported.
  Program run({"bench", "--rate", "fast", "--arrivals", "poisson"});
  EXPECT_EQ(run.finish(), 2);
  EXPECT_FALSE(has(run.err(), "the flag needs --rate")) << run.err();
}

TEST(BenchInput, OnlyFlagsThatWorkAreSuggested) {
  Program run({"--gds_batch_limi", "1"}, {}, "nixlbench");
  EXPECT_EQ(run.finish(), 2);
  EXPECT_FALSE(has(run.err(), "--gds_batch_limit")) << run.err();
}

// NIXL's own tests use these flags, except for the backend and the meeting place.
TEST(BenchInput, FlagsOfOtherBackendsAreIgnoredWithOneNote) {
  Program run({"--local_workers=2",
               "--filepath",
               "/tmp",
               "--total_buffer_size",
               "80000000",
               "--start_block_size",
               "4096",
               "--max_block_size",
               "8192",
               "--start_batch_size",
               "1",
               "--max_batch_size",
               "2",
               "--num_iter",
               "16",
               "--obj_access_key",
               "sesame",
               "--randomize_location_mode_seed=7",
               "--backend",
               "tcp",
               "--op_type",
               "READ",
               "--initiator_seg_type",
               "DRAM",
               "--target_seg_type",
               "DRAM"},
              {}, "nixlbench");
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.err(),
                  "nixlbench: ignored, because this backend does not use them: --filepath, "
                  "--obj_access_key, --randomize_location_mode_seed\n"))
      << run.err();
  EXPECT_FALSE(has(run.out() + run.err(), "sesame"));
}

TEST(BenchInput, ABareNumberIsSeconds) {
  Program run({"bench", "--backend", "local", "--block-sizes", "4K", "--duration", "0.05",
               "--warmup", "0.01", "--output", "json"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "\"duration\": \"50ms\"")) << run.out();
  EXPECT_TRUE(has(run.out(), "\"warmup\": \"10ms\"")) << run.out();
}

TEST(BenchInput, AnImpossibleRequirementIsReportedOnceBeforeTheRun) {
  const std::pair<Words, const char*> cases[] = {
      {{"--require", "rdma"}, "viaduct bench: REQUIREMENT NOT MET: no RDMA here: "},
      {{"--require", "not-tcp", "--backend", "tcp"},
       "viaduct bench: REQUIREMENT NOT MET: no path but TCP here: "},
      {{"--require", "same-host"},
       "viaduct bench: REQUIREMENT NOT MET: no path within this host by tcp: unsupported: "
       "--require same-host excludes rows over tcp; what to do: use --backend local\n"}};
  for (const auto& [more, said] : cases) {
    Words words{"bench"};
    words = withFlags(std::move(words), more);
    Program run(words);
    EXPECT_EQ(run.finish(), 1) << run.err();
    EXPECT_EQ(run.out(), "") << "no row was measured";
    EXPECT_EQ(run.err().rfind(said, 0), 0U) << run.err();
    EXPECT_EQ(run.err().find("REQUIREMENT"), run.err().rfind("REQUIREMENT")) << run.err();
    EXPECT_FALSE(has(run.err(), "0x")) << run.err();
  }
}

TEST(BenchInput, ContradictionsAreNamedTogetherAndAllAtOnce) {
  expectRefused({"bench", "--iterations", "5", "--duration", "1s", "--latency", "--rate", "5"},
                {"--iterations and --duration: ", "--latency and --rate: "});
  const std::pair<Words, const char*> theirs[] = {
      {{"--op", "read", "--op_type", "WRITE"}, "--op and --op_type: "},
      {{"--block-sizes", "4K", "--max-block-size", "8K"}, "--block_sizes and --max_block_size"},
      {{"--start-block-size", "8K", "--max-block-size", "4K"},
       "--start_block_size and --max_block_size: invalid: 8192 is above 4096"},
      {{"--meet", "a:1", "--etcd-endpoints", "http://b:2"}, "--meet and --etcd_endpoints"},
      {{"--prepared-xfer", "--reregister-mem"}, "--prepared_xfer and --reregister_mem"},
      {{"--check-consistency", "--verify", "off"}, "--check_consistency and --verify"},
  };
  for (const auto& [flags, words] : theirs) expectRefused(flags, {words}, "nixlbench");
  const std::pair<Words, const char*> cases[] = {
      {{"--block-sizes", "8K..4K"}, "8K is above 4K"},
      {{"--batch", "8..4"}, "\"4\" is not a whole number from 8"},
      {{"--local-workers", "2", "--meet", "127.0.0.1:1"}, "--local_workers and --meet"},
      {{"--local-workers", "3", "--num-initiator-dev", "1"}, "1 x 1 devices in mode SG need 2"},
      {{"--latency", "--op", "read"}, "--latency and --op read"},
      {{"--latency", "--scheme", "tp"}, "a ping-pong needs separate pairs"},
      {{"--reregister-mem", "--num-threads", "2"}, "--reregister_mem"},
      {{"--arrivals", "poisson"}, "--arrivals: invalid: the flag needs --rate"},
  };
  for (const auto& [flags, words] : cases) {
    Words arguments{"bench"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    expectRefused(arguments, {words});
  }
  // A flag with the value no contradicts no other flag.
  Program run({"bench", "--nolatency", "--bidirectional", "--block-sizes", "4K", "--iterations",
               "2", "--backend", "local"});
  EXPECT_EQ(run.finish(), 0) << run.err();
}

TEST(BenchInput, BackendsThatAreNotBuiltInAreNamedWithThoseThatAre) {
  expectRefused({"bench", "--backend", "pigeon"},
                {"pigeon is not a backend", "local, ", "or for storage one of file"});
  for (const char* name : {"UCCL", "Mooncake"})
    expectRefused({"bench", "--backend", name}, {std::string(name) + " is not built in: it "});
}

TEST(BenchInput, UcxIsTheDefaultOfNixlbenchWhereItIsBuiltIn) {
  const auto all = builtInBackends();
  if (std::find(all.begin(), all.end(), "ucx") != all.end())
    GTEST_SKIP() << "skipped: ucx is built in";
  expectRefused({"bench", "--backend", "UCX"}, {"UCX is not built in", "tcp"});
  expectRefused({"--local_workers=2"}, {"UCX, the default of nixlbench, is not built in", "tcp"},
                "nixlbench");
}

TEST(BenchInput, OptionsThatAreNotBuiltInSayWhyUnlessTheyAreAtTheirDefault) {
  expectRefused(
      {"--use_device_api"},
      {"--use_device_api: unsupported: transfers started by GPU kernels are not built in"},
      "nixlbench");
  expectRefused({"--worker_type", "nvshmem"}, {"NVSHMEM workers are not built in"}, "nixlbench");
  Program usual({"--gds_batch_limit", "128", "--enable_vmm=0", "--nouse_device_api",
                 "--worker_type=nixl", "--block-sizes", "4K", "--iterations", "2", "--backend",
                 "local", "--local_workers=2", "--total_buffer_size=1M"},
                {}, "nixlbench");
  EXPECT_EQ(usual.finish(), 0) << usual.err();
}

TEST(BenchInput, TooLittleMemoryIsReportedBeforeAnyIsAllocated) {
  expectRefused({"bench", "--total_buffer_size", "64TiB"},
                {"2 processes of 64.0 TiB do not fit", "--total_buffer_size"});
  expectRefused({"bench", "--total_buffer_size", "1M", "--block-sizes", "64K", "--batch", "32"},
                {"32 blocks of 64 KiB do not fit"});
}

TEST(BenchInput, TheBackendLibfabricMeansOfi) {
  const auto all = builtInBackends();
  if (std::find(all.begin(), all.end(), "ofi") == all.end())
    GTEST_SKIP() << "skipped: ofi is not built in";
  expectRefused({"bench", "--backend", "LIBFABRIC,ofi"}, {"ofi is named twice"});
}

TEST(BenchInput, AConfigFileIsReadAndTheCommandLineWins) {
  const std::string file =
      ::testing::TempDir() + "viaduct_config_" + std::to_string(::getpid()) + ".toml";
  std::ofstream(file) << "backend = \"tcp\"\nblock_sizes = [4096, \"8K\"]\niterations = 3\n";
  Program run({"bench", "--config_file", file, "--backend", "local", "--output", "csv"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "local")) << run.out();
  EXPECT_FALSE(has(run.out(), "tcp,")) << run.out();
  std::ofstream(file) << "iterations = 3\nblock_seizes = 1\n";
  expectRefused({"bench", "--config_file", file},
                {file, "line 2: unknown key \"block_seizes\"", "--block_sizes"});
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace viaduct::testing
