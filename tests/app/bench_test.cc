// `viaduct bench` as people run it: what it prints and writes, and how it ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class BenchCommand : public ::testing::Test {
 protected:
  BenchCommand()
      : file_(::testing::TempDir() + "viaduct_bench_" + std::to_string(::getpid()) + ".json") {}
  ~BenchCommand() override { std::filesystem::remove(file_); }
  Json results() const {
    std::ifstream in(file_);
    return Json::parse(in);
  }
  // A run of many rows, stopped at some point by the test.
  std::vector<std::string> longRun() const {
    return {"bench", "--block-sizes", "4K,8K,16K,32K,64K,128K,256K,512K", "--json", file_};
  }
  std::string file_;
};

void expectWholeRow(const Json& row) {
  EXPECT_EQ(row.at("verdict"), "ok") << row.dump();
  EXPECT_EQ(row.at("verified"), "full");
  EXPECT_EQ(row.at("iterations"), 5);
  EXPECT_EQ(row.at("batch_size"), 3);
  EXPECT_GT(row.at("gb_per_s"), 0.0);
  EXPECT_GT(row.at("completions_per_s"), 0.0);
  EXPECT_GE(row.at("cpu_s_per_gb"), 0.0);
  const Json& latency = row.at("latency_us");
  EXPECT_GT(latency.at("p50"), 0.0);
  EXPECT_LE(latency.at("p50"), latency.at("p90"));
  EXPECT_LE(latency.at("p99"), latency.at("p99_9"));
  EXPECT_LE(latency.at("p99_9"), latency.at("max"));
  std::uint64_t bytes = 0;
  for (const Json& share : row.at("path")) {
    EXPECT_EQ(share.at("backend"), row.at("backend"));
    EXPECT_NE(share.at("way"), "");
    bytes += share.at("bytes").get<std::uint64_t>();
  }
  EXPECT_EQ(bytes, row.at("block_size").get<std::uint64_t>() * 3);
}

TEST_F(BenchCommand, ATinySweepIsMeasuredCheckedAndWritten) {
  for (const char* op : {"write", "read"})
    for (const char* memory : {"allocate", "malloc"}) {
      Program run({"bench", "--backend", "local,tcp", "--block-sizes", "4K,1MB", "--batch", "3",
                   "--iterations", "5", "--op", op, "--memory", memory, "--json", file_});
      EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
      EXPECT_EQ(run.err(), "");
      const Json json = results();
      EXPECT_EQ(json.at("format"), "viaduct-bench/2");
      EXPECT_EQ(json.at("end"), "complete");
      EXPECT_FALSE(json.at("environment")
                       .at("members")
                       .at(1)
                       .at("host")
                       .at("kernel")
                       .get<std::string>()
                       .empty());
      EXPECT_EQ(json.at("settings").at("agent").at("detect"), "2s");
      ASSERT_EQ(json.at("rows").size(), 4U);
      for (const Json& row : json.at("rows")) {
        expectWholeRow(row);
        EXPECT_EQ(row.at("op"), op);
      }
      EXPECT_EQ(json.at("rows").at(3).at("block_size"), 1'000'000);
      EXPECT_TRUE(has(run.out(), "GB/s"));
      EXPECT_TRUE(has(run.out(), "tcp/socket"));
    }
}

TEST_F(BenchCommand, BadInputIsNamedAndNothingIsMeasured) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"bench", "--block-sizes", "4X"}, "\"4X\" has an unknown or no unit"},
      {{"bench", "--block-sizes", "0"}, "a block size of 0"},
      {{"bench", "--block-sizes", "64GiB", "--batch", "2"}, "at most 64.0 GiB"},
      {{"bench", "--batch", "0"}, "\"0\" is not a whole number from 1"},
      {{"bench", "--batch", "many"}, "--batch"},
      {{"bench", "--iterations", "-3"}, "--iterations"},
      {{"bench", "--op", "push"}, "\"push\" is neither write nor read"},
      {{"bench", "--memory", "disk"}, "\"disk\" is neither allocate nor malloc"},
      {{"bench", "--backend", "tcp,tcp"}, "named twice"},
      {{"bench", "--json", "/no/such/folder/file"}, "/no/such/folder/file"},
      {{"bench", "more"}, "more"},
      {{"bench", "--colour", "red"}, "--colour"},
      {{"measure"}, "measure"},
      {{}, "bench"},
  };
  for (const auto& [arguments, words] : cases) {
    Program run(arguments);
    EXPECT_EQ(run.finish(), 2) << words;
    EXPECT_TRUE(has(run.err(), words)) << run.err();
    EXPECT_EQ(run.out(), "");
  }
  Program setting({"bench"}, {"VIADUCT_SOCKETS=many"});
  EXPECT_EQ(setting.finish(), 2);
  EXPECT_TRUE(has(setting.err(), "VIADUCT_SOCKETS=many")) << setting.err();
}

TEST_F(BenchCommand, ABackendThatIsNotThereIsNamed) {
  Program run({"bench", "--backend", "pigeon", "--json", file_});
  EXPECT_EQ(run.finish(), 1);
  EXPECT_TRUE(has(run.err(), "pigeon")) << run.err();
  EXPECT_NE(results().at("end"), "complete");
}

TEST_F(BenchCommand, CtrlCEndsBothWorkersAndKeepsTheRows) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const pid_t initiator = run.worker("bench-initiator");
  const pid_t target = run.worker("bench-target");
  ASSERT_GT(initiator, 0);
  ASSERT_GT(target, 0);
  // As a terminal does it: to every process of the group.
  for (const pid_t pid : {run.pid(), initiator, target}) ::kill(pid, SIGINT);
  EXPECT_EQ(run.finish(), 130);
  EXPECT_TRUE(waitGone(initiator));
  EXPECT_TRUE(waitGone(target));
  EXPECT_TRUE(has(run.err(), "interrupted")) << run.err();
  const Json json = results();
  EXPECT_EQ(json.at("end"), "interrupted");
  EXPECT_GE(json.at("rows").size(), 1U);
  EXPECT_LT(json.at("rows").size(), 16U);
}

class KilledWorker : public BenchCommand, public ::testing::WithParamInterface<const char*> {};

TEST_P(KilledWorker, EndsTheOtherAndIsNamed) {
  const std::string name = GetParam();
  const bool is_target = name == "bench-target";
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const pid_t killed = run.worker(name);
  const pid_t other = run.worker(is_target ? "bench-initiator" : "bench-target");
  ASSERT_GT(killed, 0);
  ASSERT_GT(other, 0);
  ::kill(killed, SIGKILL);
  EXPECT_EQ(run.finish(), 3);
  EXPECT_TRUE(waitGone(other));
  const std::string role = is_target ? "target" : "initiator";
  EXPECT_TRUE(has(run.err(), "the " + role + " process (pid " + std::to_string(killed) +
                                 ") was killed by signal 9"))
      << run.err();
  EXPECT_GE(results().at("rows").size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Either, KilledWorker, ::testing::Values("bench-initiator", "bench-target"),
                         [](const auto& made) { return std::string(made.param).substr(6); });

TEST_F(BenchCommand, AStoppedTargetIsNoticedAndEnded) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const pid_t target = run.worker("bench-target");
  ASSERT_GT(target, 0);
  ::kill(target, SIGSTOP);
  const auto stopped = Clock::now();
  EXPECT_EQ(run.finish(), 1) << run.err();
  EXPECT_LT(Clock::now() - stopped, std::chrono::seconds(20)) << "it waited for an answer";
  EXPECT_TRUE(waitGone(target));
  EXPECT_TRUE(has(run.err(), "lost")) << run.err();
}

TEST_F(BenchCommand, WorkersDoNotOutliveTheProgram) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const pid_t initiator = run.worker("bench-initiator");
  const pid_t target = run.worker("bench-target");
  ASSERT_GT(initiator, 0);
  ASSERT_GT(target, 0);
  ::kill(run.pid(), SIGKILL);
  EXPECT_EQ(run.finish(), 128 + SIGKILL);
  EXPECT_TRUE(waitGone(initiator));
  EXPECT_TRUE(waitGone(target));
}

}  // namespace
}  // namespace viaduct::testing
