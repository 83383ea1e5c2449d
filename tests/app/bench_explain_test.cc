// `viaduct bench --explain`: the available backends, the one that would carry a transfer, and why.
#include <gtest/gtest.h>
#include <unistd.h>
#include <viaduct/settings.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "support/free_port.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

bool builtIn(const std::string& name) {
  const auto all = builtInBackends();
  return std::find(all.begin(), all.end(), name) != all.end();
}

Words explaining(Words more) {
  Words words{"bench", "--explain"};
  return withFlags(std::move(words), more);
}

Json explained(Words more, const Words& environment = {}) {
  more.insert(more.end(), {"--output", "json"});
  Program run(explaining(std::move(more)), environment);
  EXPECT_EQ(run.finish(), 0) << run.err();
  const Json json = Json::parse(run.out(), nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << run.out();
  return json;
}

Json backend(const Json& all, const std::string& name) {
  for (const Json& one : all.at("backends"))
    if (one.at("name") == name) return one;
  ADD_FAILURE() << name << " is not in " << all.dump(2);
  return {};
}

TEST(BenchExplain, PrintsTheOrderTheChoiceAndTheReasonsAgainstOthers) {
  Program run({"bench", "--explain"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_EQ(run.err(), "");
  for (const char* said :
       {"Order of preference", "\n  10  local   open; rails: memory\n",
        "\n  30  tcp     open; rails: any\n",
        "\n   -  fake    not open: for tests: opened only if named\n", "\nwrite: local\n",
        "\nread: local\n", "  tcp     possible, after local: tcp/socket 4.0 KiB in 1 op\n",
        "\n  tcp     socket\n"})
    EXPECT_TRUE(has(run.out(), said)) << said << run.out();
  EXPECT_FALSE(has(run.out(), "GB/s"));
  for (const char* name : {"ofi", "ucx"}) EXPECT_TRUE(has(run.out(), name)) << run.out();
}

TEST(BenchExplain, BackendsThatAreNamedAreTriedInTheirOrder) {
  const Json both = explained({"--backend", "tcp,local"});
  EXPECT_EQ(both.at("format"), "viaduct-explain/1");
  EXPECT_EQ(both.at("backends").at(0).at("name"), "local");
  EXPECT_EQ(both.at("backends").at(1).at("name"), "tcp");
  EXPECT_EQ(both.at("chosen").at("write"), "local");
  EXPECT_EQ(both.at("chosen").at("write_between_hosts"), "tcp");
  const Json tcp = explained({"--backend", "tcp"});
  EXPECT_EQ(tcp.at("chosen").at("read"), "tcp");
  EXPECT_EQ(backend(tcp, "local").at("text"), "not among the requested backends");
  const Json variable = explained({}, {"VIADUCT_BACKENDS=tcp"});
  EXPECT_FALSE(backend(variable, "local").at("open"));
}

TEST(BenchExplain, ARequirementExplainsWhyEarlierBackendsAreSkipped) {
  const Json tcp = explained({"--require", "backend:TCP"});
  EXPECT_EQ(tcp.at("chosen").at("write"), "tcp");
  EXPECT_EQ(backend(tcp, "local").at("write").at("text"),
            "--require backend:tcp forbids this path");
  const Json rdma = explained({"--require", "rdma", "--backend", "local,tcp"});
  EXPECT_TRUE(rdma.at("chosen").at("write").is_null());
  EXPECT_FALSE(backend(rdma, "tcp").at("read").at("carried"));
}

TEST(BenchExplain, TheKindOfMemoryIsTheOneThatWasAsked) {
  const auto path = [](const char* memory) {
    return backend(explained({"--memory", memory}), "local").at("write").at("text").dump();
  };
  EXPECT_TRUE(has(path("allocate"), "local/mapped")) << path("allocate");
  EXPECT_FALSE(has(path("malloc"), "mapped")) << path("malloc");
}

TEST(BenchExplain, ABackendThatIsNamedAndCannotBeOpenedDoesNotHideTheOthers) {
  if (!builtIn("ofi")) GTEST_SKIP() << "skipped: ofi is not built in";
  const Words wrong{"VIADUCT_OFI_PROVIDER=nosuch"};
  const Json two = explained({"--backend", "ofi,tcp"}, wrong);
  EXPECT_EQ(two.at("chosen").at("write"), "tcp");
  EXPECT_FALSE(backend(two, "ofi").at("open"));
  EXPECT_TRUE(has(backend(two, "ofi").at("text"), "nosuch")) << two.dump(2);
  const Json none = explained({"--backend", "LIBFABRIC"}, wrong);
  EXPECT_TRUE(none.at("chosen").at("write").is_null());
}

TEST(BenchExplain, RailsAndTheirNearnessAreThoseOfTheDeviceList) {
  const Json json = explained({"--backend", "tcp", "--device_list", "lo"});
  EXPECT_EQ(backend(json, "tcp").at("rails"), Json({"lo"}));
  const Json& nearest = json.at("nics").at(0).at("nearest_first").at(0);
  EXPECT_EQ(nearest.at("devices"), Json({"lo"}));
  EXPECT_EQ(json.at("nics").at(0).at("memory"), "this memory");
}

TEST(BenchExplain, TheFlagsOfARunStay) {
  const std::string file =
      ::testing::TempDir() + "viaduct_explain_" + std::to_string(::getpid()) + ".json";
  Program run(explaining({"--meet", freeAddress(), "--rank", "3", "--scheme", "manytoone",
                          "--num_initiator_dev", "3", "--block-sizes", "4K", "--duration", "1h",
                          "--output", "csv", "--json", file}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "write: local")) << run.out();
  std::ifstream in(file);
  EXPECT_EQ(Json::parse(in, nullptr, false).value("format", ""), "viaduct-explain/1");
  std::filesystem::remove(file);
  Program nixl({"--explain", "--local_workers=2", "-backend=tcp", "--num_iter", "100",
                "--max_block_size=4096", "--total_buffer_size=1M"},
               {}, "/usr/bin/nixlbench");
  EXPECT_EQ(nixl.finish(), 0) << nixl.err();
  EXPECT_TRUE(has(nixl.out(), "write: tcp")) << nixl.out();
}

TEST(BenchExplain, InvalidInputIsRefusedAsWithoutExplain) {
  const std::pair<Words, const char*> cases[] = {
      {{"--backend", "pigeon"}, "pigeon is not a backend"},
      {{"--device_list", "eth77"}, "there is no device \"eth77\""},
      {{"--against", "--memory malloc"}, "--explain and --against"},
      {{"--require", "rdm"}, "\"rdm\" is not a requirement"},
      {{"--memory", "disk"}, "none of allocate, malloc"},
      {{"--json", "/no/such/folder/file"}, "/no/such/folder/file"},
      {{"--explain=perhaps"}, "\"perhaps\" is neither yes nor no"},
  };
  for (const auto& [flags, said] : cases) {
    Program run(explaining(flags));
    EXPECT_EQ(run.finish(), 2) << said;
    EXPECT_TRUE(has(run.err(), said)) << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

}  // namespace
}  // namespace viaduct::testing
