// The end of a `viaduct bench` run that is interrupted or fails.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/program.h"
#include "support/free_port.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;

class BenchEnd : public ::testing::Test {
 protected:
  BenchEnd()
      : file_(::testing::TempDir() + "viaduct_end_" + std::to_string(::getpid()) + ".json") {}
  ~BenchEnd() override { std::filesystem::remove(file_); }
  Json results() const {
    std::ifstream in(file_);
    return Json::parse(in);
  }
  // A run of many rows between three workers, which the test ends at some point.
  std::vector<std::string> longRun() const {
    return {"bench",
            "--block-sizes",
            "4K,8K,16K,32K,64K,128K,256K,512K",
            "--json",
            file_,
            "--scheme",
            "onetomany",
            "--local-workers",
            "3",
            "--duration",
            "400ms"};
  }
  void expectSomeRows() const {
    EXPECT_GE(results().at("rows").size(), 1U);
    EXPECT_LT(results().at("rows").size(), 16U);
  }
  std::string file_;
};

struct Workers {
  explicit Workers(const Program& run)
      : first(run.worker("bench-rank-1")), second(run.worker("bench-rank-2")) {
    EXPECT_GT(first, 0);
    EXPECT_GT(second, 0);
  }
  void expectGone() const {
    EXPECT_TRUE(waitGone(first));
    EXPECT_TRUE(waitGone(second));
  }
  pid_t first, second;
};

TEST_F(BenchEnd, CtrlCEndsAllWorkersAndKeepsTheRows) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const Workers workers(run);
  // Like a terminal, signals every process of the group.
  for (const pid_t pid : {run.pid(), workers.first, workers.second}) ::kill(pid, SIGINT);
  EXPECT_EQ(run.finish(), 130);
  workers.expectGone();
  EXPECT_TRUE(has(run.err(), "interrupted")) << run.err();
  EXPECT_EQ(results().at("end"), "interrupted");
  expectSomeRows();
}

// An endless row. Its timing runs once its first interval is printed.
std::vector<std::string> endless(const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench",        "--block-sizes", "64K", "--batch", "4",
                                 "--iterations", "4000000000",    "-i",  "0.05"};
  return withFlags(std::move(words), more);
}
constexpr auto kFirstInterval = "local write 4 x 64 KiB: 0.00 to ";

void expectPartial(const Json& report) {
  ASSERT_EQ(report.at("rows").size(), 1U);
  const Json& row = report.at("rows")[0];
  EXPECT_EQ(row.at("interrupted").at("of_transfers"), 4'000'000'000);
  EXPECT_GT(row.at("iterations"), 0);
  EXPECT_LT(row.at("iterations"), 4'000'000'000);
  EXPECT_GT(row.at("gb_per_s"), 0);
  // On a busy machine there are further remarks, before and after: a stall, or slow checks.
  EXPECT_TRUE(has(row.at("remark").get<std::string>(),
                  "interrupted after " + row.at("iterations").dump() + " of 4000000000 transfers"))
      << row.at("remark");
  const Json& checks = row.at("checks");
  EXPECT_GE(checks.at("transfers"), 1) << "after each run, also after the stopped one";
  EXPECT_FALSE(row.at("intervals").empty());
}

TEST_F(BenchEnd, CtrlCKeepsTheRowThatRunsAsAPartialOne) {
  Program run(endless({"--backend", "local", "--json", file_}));
  ASSERT_TRUE(run.readUntil(kFirstInterval)) << run.out();
  run.interrupt(SIGINT);
  EXPECT_EQ(run.finish(), 130);
  EXPECT_TRUE(has(run.err(), "interrupted; 1 row measured")) << run.err();
  EXPECT_TRUE(has(run.out(), " of 4000000000 transfers")) << run.out();
  EXPECT_EQ(results().at("end"), "interrupted");
  expectPartial(results());
}

TEST_F(BenchEnd, CtrlCEndsEveryKindOfStreamEarly) {
  const std::vector<std::vector<std::string>> kinds{
      {"--latency"},
      {"--bidirectional", "--num-threads", "2", "--pipeline-depth", "3"},
      {"--rate", "100", "--local-workers", "4"},
      {"--verify", "full"},
      {"--verify", "off", "--op", "read"}};
  for (const std::vector<std::string>& kind : kinds) {
    std::vector<std::string> words{"--backend", "local", "--json", file_};
    words.insert(words.end(), kind.begin(), kind.end());
    Program run(endless(words));
    ASSERT_TRUE(run.readUntil("local ")) << kind[0] << run.out();
    run.interrupt(SIGTERM);
    EXPECT_EQ(run.finish(), 130) << kind[0] << run.err();
    const Json report = results();
    ASSERT_EQ(report.at("rows").size(), 1U) << kind[0];
    EXPECT_TRUE(report.at("rows")[0].contains("interrupted")) << kind[0];
    EXPECT_NE(report.at("rows")[0].at("verdict"), "failed") << kind[0] << report.dump();
  }
}

TEST_F(BenchEnd, CtrlCAtAnotherMemberKeepsThePartialRowAndAllEndWith130) {
  const std::vector<std::string> place{"--meet", freeAddress(), "--backend", "local"};
  std::vector<std::string> first = endless(place), second = endless(place);
  first.insert(first.end(), {"--rank", "0", "--json", file_});
  second.insert(second.end(), {"--rank", "1"});
  Program lead(first), other(second);
  ASSERT_TRUE(lead.readUntil(kFirstInterval)) << lead.out();
  other.interrupt(SIGINT);
  EXPECT_EQ(other.finish(), 130) << other.err();
  EXPECT_EQ(lead.finish(), 130) << lead.err();
  EXPECT_TRUE(has(lead.err(), "interrupted at rank 1; 1 row measured")) << lead.err();
  expectPartial(results());
}

// The worker is frozen, and counts as lost only after a minute, so the row cannot end.
TEST_F(BenchEnd, ASecondCtrlCEndsAtOnce) {
  Program run(endless({"--backend", "local"}), {"VIADUCT_DETECT=60s"});
  ASSERT_TRUE(run.readUntil(kFirstInterval)) << run.out();
  const pid_t worker = run.worker("bench-rank-1");
  ASSERT_GT(worker, 0);
  ::kill(worker, SIGSTOP);
  run.interrupt(SIGINT);
  ::kill(run.pid(), SIGINT);
  EXPECT_EQ(run.finish(), 128 + SIGINT);
  EXPECT_FALSE(has(run.err(), "interrupted")) << "it ended by itself: " << run.err();
  EXPECT_TRUE(waitGone(worker));
}

TEST_F(BenchEnd, AKilledWorkerEndsTheOthersAndIsNamed) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const Workers workers(run);
  ::kill(workers.first, SIGKILL);
  EXPECT_EQ(run.finish(), 3);
  workers.expectGone();
  EXPECT_TRUE(has(run.err(), "rank 1, a target (pid " + std::to_string(workers.first) +
                                 "), was killed by signal 9"))
      << run.err();
  expectSomeRows();
}

TEST_F(BenchEnd, AStoppedWorkerIsNoticedNamedAndEnded) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const Workers workers(run);
  ::kill(workers.second, SIGSTOP);
  const auto stopped = Clock::now();
  EXPECT_EQ(run.finish(), 3) << run.err();
  EXPECT_LT(Clock::now() - stopped, std::chrono::seconds(20)) << "it waited for an answer";
  workers.expectGone();
  EXPECT_TRUE(has(run.err(), "rank 2")) << run.err();
  EXPECT_TRUE(has(run.err(), std::to_string(workers.second))) << run.err();
}

TEST_F(BenchEnd, WorkersDoNotOutliveTheProgram) {
  Program run(longRun());
  ASSERT_TRUE(run.readUntil("local"));
  const Workers workers(run);
  ::kill(run.pid(), SIGKILL);
  EXPECT_EQ(run.finish(), 128 + SIGKILL);
  workers.expectGone();
}

TEST_F(BenchEnd, AFullDiskLosesNoRow) {
  Program run({"bench", "--backend", "local", "--block-sizes", "4K,8K", "--iterations", "5",
               "--json", "/dev/full"});
  EXPECT_EQ(run.finish(), 1);
  EXPECT_TRUE(has(run.out(), "4 KiB")) << run.out();
  EXPECT_TRUE(has(run.out(), "8 KiB")) << run.out();
  EXPECT_TRUE(has(run.err(), "No space left on device")) << run.err();
  EXPECT_TRUE(has(run.err(), "/dev/full")) << run.err();
}

TEST_F(BenchEnd, AKilledMemberOfAnotherTerminalIsNamed) {
  const std::vector<std::string> words{"bench",     "--meet", freeAddress(),   "--duration", "20s",
                                       "--backend", "tcp",    "--block-sizes", "64K"};
  std::vector<std::string> first = words, second = words;
  first.insert(first.end(), {"--rank", "0", "--json", file_});
  second.insert(second.end(), {"--rank", "1"});
  Program lead(first), other(second);
  ASSERT_TRUE(lead.readUntil("2 processes")) << "they did not meet";
  ::kill(other.pid(), SIGKILL);
  EXPECT_EQ(lead.finish(), 3) << lead.err();
  EXPECT_TRUE(has(lead.err(), "rank 1")) << lead.err();
  EXPECT_TRUE(has(lead.err(), std::to_string(other.pid()))) << lead.err();
}

}  // namespace
}  // namespace viaduct::testing
