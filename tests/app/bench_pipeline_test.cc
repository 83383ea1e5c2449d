// `viaduct pipeline`: parts of a pipeline, wrong input, and early ends.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "support/free_port.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class BenchPipeline : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string file(const std::string& name) const { return "file:" + path(name); }
  std::size_t files() const {
    const auto all = std::filesystem::directory_iterator(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  // The command line of a short run.
  static Words run(const std::string& pipeline, const Words& more = {}) {
    Words words{"pipeline", pipeline, "--repeat", "2", "--duration", "10ms", "--output", "json"};
    return withFlags(std::move(words), more);
  }
  // Expects that a run succeeds with these stages, and returns its results.
  static Json measured(const std::string& pipeline, const Words& stages, const Words& more = {}) {
    Program program(run(pipeline, more));
    EXPECT_EQ(program.finish(), 0) << pipeline << program.err();
    const Json out = Json::parse(program.out(), nullptr, false);
    if (out.is_discarded()) {
      ADD_FAILURE() << program.out();
      return out;
    }
    const bool whole = stages.size() > 1;
    const Json& rows = out.at("rows");
    // There is a row for each stage alone, one for all stages together, and one for the pipeline.
    EXPECT_EQ(rows.size(), whole ? stages.size() + 2 : 1U);
    Words found;
    std::uint64_t checked = 0;
    for (const Json& row : rows) {
      const Json& kind = row.at("pipeline");
      EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row;
      EXPECT_GT(row.at("gb_per_s"), 0.0);
      if (kind.at("run") == "alone") found.push_back(kind.at("stages")[0].at("name"));
      for (const Json& stage : kind.at("stages"))
        EXPECT_EQ(stage.at("gb_per_s").size(), kind.at("run") == "whole" ? 0U : 2U);
      EXPECT_EQ(row.at("gb_per_s_parts").size(), kind.at("run") == "together" ? 6U : 2U);
      checked += row.at("checks").at("transfers").get<std::uint64_t>();
    }
    EXPECT_EQ(found, stages);
    EXPECT_EQ(out.at("end"), "complete");
    EXPECT_EQ(checked, whole ? 2 * (2 * stages.size() + 1) : 2) << "in two rounds";
    return out;
  }
  // Expects that the command fails with texts on stderr.
  static void refused(int code, const Words& words, const Words& texts) {
    Program program(words);
    EXPECT_EQ(program.finish(), code) << program.out() << program.err();
    for (const std::string& text : texts) EXPECT_TRUE(has(program.err(), text)) << program.err();
  }
  // Waits until the process has the file open, at most 20 s.
  bool waitUntilOpen(pid_t pid, const std::string& name) const {
    const std::string wanted = path(name) + " (deleted)";
    for (const Deadline until = std::chrono::seconds(20); !until.passed(); ::usleep(1000)) {
      std::error_code gone;
      for (const auto& fd :
           std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", gone))
        if (std::filesystem::read_symlink(fd, gone) == wanted) return true;
    }
    return false;
  }

  TemporaryFolder folder_;
};

constexpr auto kSize = "--total-buffer-size";

TEST_F(BenchPipeline, MeasuresEachPartOfTheWholePipelineAndLeavesNoFile) {
  const Words made{"--create-source", "3MiB"}, size{kSize, "3000001"};
  const std::string a = file("a"), b = file("b");
  measured(a + ",host", {"load"}, made);
  measured("host," + b, {"store"}, size);
  measured("host,net,host", {"net"}, size);
  measured(a + ",host," + b, {"load", "store"}, made);
  measured(a + ",host,net,host", {"load", "net"}, made);
  measured("host,net,host," + b, {"net", "store"}, size);
  const Json whole = measured(a + ",host,net,host," + b, {"load", "net", "store"}, made);
  const Json& rows = whole.at("rows");
  EXPECT_EQ(rows[0].at("block_size"), 3 << 20);
  EXPECT_EQ(whole.at("environment").at("members").size(), 2U);
  EXPECT_EQ(rows[0].at("pipeline").at("stages")[0].at("route"), a + " -> host");
  EXPECT_EQ(rows[1].at("path")[0].at("backend"), "tcp");
  ASSERT_EQ(rows[4].at("path").size(), 3U) << "load, net and store";
  EXPECT_EQ(rows[4].at("path")[1].at("backend"), "tcp");
  for (const Json& stage : rows[4].at("pipeline").at("stages"))
    for (const double busy : stage.at("busy")) {
      EXPECT_GT(busy, 0.0) << stage;
      EXPECT_LE(busy, 1.0) << stage;
    }
  EXPECT_EQ(files(), 0U);
}

TEST_F(BenchPipeline, ChunksAndRingsMayHaveAnySize) {
  const std::vector<Words> environments{
      {"VIADUCT_STAGING_CHUNK=100000", "VIADUCT_STAGING_CHUNKS=3"},
      {"VIADUCT_STAGING_CHUNK=8MiB", "VIADUCT_STAGING_CHUNKS=2"}};
  for (const Words& environment : environments) {
    Program program(run(file("a") + ",host,net,host," + file("b"), {"--create-source", "3000001"}),
                    environment);
    EXPECT_EQ(program.finish(), 0) << program.err();
  }
}

TEST_F(BenchPipeline, ReadsAnExistingSourceAndOverwritesAsAllowed) {
  const std::string content(1'500'000, 'v');
  folder_.write("/a", content);
  folder_.write("/b", "old, and short");
  measured(file("a") + ",host,net,host," + file("b"), {"load", "net", "store"}, {"--overwrite"});
  std::string copy(content.size(), ' ');
  std::ifstream(path("b")).read(copy.data(), static_cast<std::streamsize>(copy.size()));
  EXPECT_EQ(copy, content);
  EXPECT_EQ(std::filesystem::file_size(path("b")), content.size());
  EXPECT_EQ(std::filesystem::file_size(path("a")), content.size());
}

TEST_F(BenchPipeline, TheTableNamesStagesBottleneckAndEfficiency) {
  Program program({"pipeline", "host,net,host," + file("b"), kSize, "1MiB", "--repeat", "1",
                   "--duration", "1ms"});
  EXPECT_EQ(program.finish(), 0) << program.err();
  for (const char* text : {"pipeline: host,net,host,file:", "\nnet    host -> host", "\nstore  ",
                           "bottleneck: ", "efficiency: ", " transfers checked, every byte"})
    EXPECT_TRUE(has(program.out(), text)) << program.out();
}

TEST_F(BenchPipeline, WritesTheResultsToAFileToo) {
  const std::string json = path("result.json");
  measured("host,net,host", {"net"}, {kSize, "1MiB", "--json", json});
  std::ifstream in(json);
  EXPECT_EQ(Json::parse(in).at("format"), "viaduct-bench/1");
}

TEST_F(BenchPipeline, TheBackendCarriesTheNetStage) {
  const Json local = measured("host,net,host", {"net"}, {kSize, "1MiB", "--backend", "local"});
  EXPECT_TRUE(has(local.at("rows")[0].at("path")[0].at("backend"), "local")) << local;
  const Json tcp = measured("host,net,host", {"net"}, {kSize, "1MiB"});
  EXPECT_TRUE(has(tcp.at("rows")[0].at("path")[0].at("backend"), "tcp")) << tcp;
}

TEST_F(BenchPipeline, ARequirementIsOneOfTheNetStage) {
  const std::string whole = file("a") + ",host,net,host," + file("b");
  const Words made{"--create-source", "1MiB", "--backend", "local", "--require", "same-host"};
  measured(whole, {"load", "net", "store"}, made);
  refused(1, run("host,net,host", {kSize, "1MiB", "--require", "not-tcp"}),
          {"net: route", "the requirement allows"});
  Program proven(run("host,net,host", {kSize, "1MiB", "--require", "proven"}));
  proven.finish();
  const Json rows = Json::parse(proven.out()).at("rows");
  EXPECT_NE(rows[0].at("verdict"), "unproven") << "proven, or not what was required";
}

TEST_F(BenchPipeline, TwoCommandsMeetAndTheFirstPrintsTheResults) {
  const std::string pipeline = file("a") + ",host,net,host," + file("b"), where = freeAddress();
  const auto member = [&](const char* rank) {
    return run(pipeline, {"--create-source", "2MiB", "--meet", where, "--rank", rank});
  };
  Program lead(member("0")), other(member("1"));
  EXPECT_EQ(lead.finish(), 0) << lead.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  EXPECT_EQ(Json::parse(lead.out()).at("rows").size(), 5U);
  EXPECT_EQ(other.out(), "");
  EXPECT_EQ(files(), 0U);
}

TEST_F(BenchPipeline, TwoCommandsWithDifferentPipelinesDoNotMeasure) {
  const std::string where = freeAddress();
  const auto member = [&](const char* pipeline, const char* rank) {
    return run(pipeline, {kSize, "1MiB", "--meet", where, "--rank", rank});
  };
  Program lead(member("host,net,host", "0")), other(member("host,net,host,file:/b", "1"));
  EXPECT_EQ(lead.finish(), 1);
  EXPECT_EQ(other.finish(), 1);
  EXPECT_TRUE(has(lead.err() + other.err(), "pipeline")) << lead.err() << other.err();
}

// Side B has another destination.
TEST_F(BenchPipeline, TwoPlacesAreComparedInTurns) {
  const auto to = [&](const char* name) { return file("a") + ",host," + file(name); };
  Program both(run(to("b"), {"--create-source", "64K", "--duration", "4ms", "--repeat", "1",
                             "--rounds", "4", "--against", to("c")}));
  EXPECT_EQ(both.finish(), 0) << both.err();
  const Json json = Json::parse(both.out(), nullptr, false);
  EXPECT_EQ(json.at("outcome"), "compared");
  EXPECT_EQ(json.at("runs_a"), 4);
  EXPECT_EQ(json.at("differing"), Json::array({"pipeline: A " + to("b") + ", B " + to("c")}));
  ASSERT_EQ(json.at("rows").size(), 4U);
  EXPECT_EQ(json["rows"][0].at("kind"), to("b") + ", load alone");
  EXPECT_EQ(json["rows"][3].at("kind"), to("b") + ", the pipeline");
  for (const Json& row : json["rows"]) {
    EXPECT_EQ(row.at("block_size"), 64 << 10);
    EXPECT_EQ(row.at("interval_95").size(), 2U) << row;
  }
  EXPECT_EQ(files(), 0U);
}

// At an interrupt, all rows of a pipeline end early together.
TEST_F(BenchPipeline, AnInterruptedComparisonDropsEachUnfinishedRow) {
  Program both(run(file("a") + ",host," + file("b"),
                   {"--create-source", "64K", "--duration", "5ms", "--repeat", "1000000",
                    "--rounds", "4", "--against", "--memory malloc"}));
  ASSERT_TRUE(waitUntilOpen(both.pid(), "b"));
  ::usleep(150'000);  // for the warm-up, behind which rows have figures
  both.interrupt(SIGINT);
  EXPECT_EQ(both.finish(), 130) << both.out();
  EXPECT_TRUE(has(both.err(), "interrupted; runs with rows: 0 of A, 0 of B")) << both.err();
}

TEST_F(BenchPipeline, UnlikePipelinesAreNotCompared) {
  const auto against = [&](const std::string& side) {
    return run("host," + file("b"), {"--rounds", "4", "--against", side});
  };
  refused(2, against("host,net,host"),
          {"--against", "the stages of A are store, and those of B net"});
  refused(2, against("--total-buffer-size 1M"), {"--against", "other sizes", kSize});
  refused(2, against("--meet localhost:1"), {"--against: --meet", "the same value"});
  refused(2, against("host,disk:/b"), {"--against: LIST", "entry 2"});
  refused(2, run("host,net,host", {"--rounds", "4"}), {"--rounds", "needs --against"});
}

TEST_F(BenchPipeline, AWrongPipelineIsRefusedBeforeAnyMeasurement) {
  refused(2, run(""), {"LIST: invalid", "the list is empty"});
  refused(2, run("host,gpu:0"),
          {"LIST: invalid", "entry 2 (\"gpu:0\") names no GPU", "write cuda0"});
  refused(2, run("net,host"), {"LIST: invalid", "entry 1 (\"net\")", "before and behind net"});
  refused(2, run("disk:/a,host"), {"entry 1 (\"disk:/a\") is unknown", "file:PATH"});
}

TEST_F(BenchPipeline, AFlagWithoutEffectIsRefused) {
  refused(2, run("host,net,host", {"--latency"}), {"--latency", "a flag of `viaduct bench`"});
  refused(2, run("host,net,host", {"--output", "csv"}), {"--output", "none of table, json"});
  refused(2, run("host,net,host", {"--backend", "tcp,local"}), {"--backend", "one backend"});
  refused(2, run("host,net,host", {"--backend", "file"}), {"--backend", "not another process"});
  refused(2, run("host,file:/b", {"--backend", "tcp"}), {"--backend", "the pipeline has no net"});
  refused(2, run("host,file:/b", {"--meet", "localhost:1"}), {"--meet", "has no net"});
  refused(2, run("host,net,host", {"--create-source", "1K"}),
          {"--create-source", "begins with memory"});
  refused(2, run("host,net,host", {"--overwrite"}), {"--overwrite", "ends in memory"});
  refused(2, run("file:/a,host", {"--create-source", "1K", kSize, "2K"}), {"smaller"});
  refused(2, run("host,net,host", {kSize, "33GiB"}), {kSize, "at most 32 GiB"});
  refused(2, {"bench", "--overwrite"}, {"--overwrite", "needs --filenames"});
  refused(2, {"bench", "--create-source", "1M"},
          {"--create-source", "it is a flag of `viaduct pipeline`"});
}

TEST_F(BenchPipeline, AWrongFileIsNamed) {
  folder_.write("/old", "content");
  std::filesystem::create_directory(path("folder"));
  const std::string net = ",host,net,host,";
  refused(1, run(file("none") + ",host"), {path("none"), "No such file", "--create-source"});
  refused(1, run(file("folder") + ",host"), {path("folder"), "it is a folder"});
  refused(1, run(file("old") + ",host", {kSize, "1MiB"}), {path("old"), "it has 7 B, fewer than"});
  refused(1, run("host," + file("old")), {path("old"), "the file exists", "--overwrite"});
  refused(1, run("host,net,host," + file("folder")), {"rank 1", path("folder"), "it is a folder"});
  refused(1, run("host,net,host," + file("none/b")), {"rank 1", path("none/b"), "No such file"});
  refused(1, run(file("old") + net + file("old"), {"--overwrite"}), {"it is the source"});
  EXPECT_EQ(std::filesystem::file_size(path("old")), 7U);
  EXPECT_EQ(files(), 2U);
}

TEST_F(BenchPipeline, AnObjectIsWrittenOnlyAsAllowed) {
  refused(1, run("host,object:kv/x", {kSize, "1MiB"}), {"object:kv/x", "--overwrite"});
  refused(1, run("s3://kv/x,host", {"--create-source", "1MiB"}), {"s3://kv/x", "files only"});
}

TEST_F(BenchPipeline, AFileThatMayNotBeReadOrWrittenIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read and write every file";
  folder_.write("/a", "content");
  ::chmod(path("a").c_str(), 0);
  refused(1, run(file("a") + ",host"), {path("a"), "Permission denied", "that you may read"});
  ::chmod(folder_.path().c_str(), 0500);
  refused(1, run("host," + file("b"), {kSize, "1K"}), {path("b"), "Permission denied"});
  ::chmod(folder_.path().c_str(), 0700);
}

// A run that lasts until the test ends it.
class EndlessPipeline : public BenchPipeline {
 protected:
  EndlessPipeline()
      : program_(
            run(file("a") + ",host,net,host," + file("b"),
                {"--create-source", "2MiB", "--repeat", "1000000", "--json", path("result.json")})),
        worker_(program_.waitForWorker("bench-rank-1")) {
    EXPECT_GT(worker_, 0);
    EXPECT_TRUE(waitUntilOpen(program_.pid(), "a"));
    EXPECT_TRUE(waitUntilOpen(worker_, "b"));
  }
  void expectOnlyResults() const {
    EXPECT_TRUE(std::filesystem::exists(path("result.json")));
    EXPECT_EQ(files(), 1U);
  }
  Program program_;
  const pid_t worker_;
};

TEST_F(EndlessPipeline, CtrlCEndsItKeepsTheRoundsAndLeavesNoFile) {
  program_.interrupt(SIGINT);
  EXPECT_EQ(program_.finish(), 130) << program_.err();
  EXPECT_TRUE(has(program_.err(), "interrupted")) << program_.err();
  std::ifstream in(path("result.json"));
  EXPECT_EQ(Json::parse(in).at("end"), "interrupted");
  expectOnlyResults();
}

TEST_F(EndlessPipeline, AKilledWorkerIsNamedAndNoFileStays) {
  ASSERT_GT(worker_, 0);
  ::kill(worker_, SIGKILL);
  EXPECT_EQ(program_.finish(), 3) << program_.err();
  EXPECT_TRUE(has(program_.err(), "rank 1")) << program_.err();
  expectOnlyResults();
}

TEST_F(EndlessPipeline, AKilledCommandLeavesNoFileAndNoWorker) {
  ::kill(program_.pid(), SIGKILL);
  EXPECT_EQ(program_.finish(), 128 + SIGKILL);
  EXPECT_TRUE(waitGone(worker_));
  EXPECT_EQ(files(), 0U) << "results are written at the end";
}

}  // namespace
}  // namespace viaduct::testing
