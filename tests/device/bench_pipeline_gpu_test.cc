// `viaduct pipeline` through memory of GPUs. The driver is the fake one, whose memory
// crashes a CPU that touches it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/program.h"
#include "base/fd.h"
#include "support/free_port.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr auto kSize = "--total-buffer-size";

class PipelineOnGpu : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string file(const std::string& name) const { return "file:" + path(name); }
  std::size_t files() const {
    const auto all = std::filesystem::directory_iterator(folder_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  static Words withDriver(Words more = {}) {
    more.emplace_back(std::string("VIADUCT_CUDA_LIBRARY=") + kFakeCuda);
    return more;
  }
  // A short run with small chunks, so that each ring is used many times.
  static Words run(const std::string& pipeline, const Words& more = {}) {
    Words words{"pipeline", pipeline, "--repeat", "1", "--duration", "5ms", "--output", "json"};
    return withFlags(std::move(words), more);
  }
  static Words smallChunks(Words more = {}) {
    more.insert(more.end(), {"VIADUCT_STAGING_CHUNK=64KiB", "VIADUCT_STAGING_CHUNKS=4"});
    return withDriver(std::move(more));
  }
  static Json measured(const Words& words, const Words& environment) {
    Program program(words, environment);
    EXPECT_EQ(program.finish(), 0) << words[2] << program.err();
    return Json::parse(program.out(), nullptr, false);
  }
  // Expects that a pipeline has these stages, and that the bytes of each leg arrive.
  static void expectStages(const std::string& pipeline, const Words& stages, const Words& more) {
    const Json out = measured(run(pipeline, more), smallChunks());
    ASSERT_TRUE(out.is_object()) << pipeline;
    Words found;
    std::uint64_t checked = 0;
    for (const Json& row : out.at("rows")) {
      EXPECT_GT(row.at("gb_per_s"), 0.0) << pipeline;
      checked += row.at("checks").at("transfers").get<std::uint64_t>();
      const Json& kind = row.at("pipeline");
      if (kind.at("run") == "alone") found.push_back(kind.at("stages")[0].at("name"));
      if (kind.at("run") != "whole") continue;
      for (const Json& stage : kind.at("stages")) {
        ASSERT_EQ(stage.at("busy").size(), 1U) << pipeline;
        EXPECT_GT(stage.at("busy")[0], 0.0) << pipeline;
        EXPECT_LE(stage.at("busy")[0], 1.0) << pipeline;
      }
    }
    EXPECT_EQ(found, stages) << pipeline;
    // Each stage is checked alone, together with the others, and as a leg of the pipeline.
    EXPECT_EQ(checked, stages.size() == 1 ? 1 : 3 * stages.size()) << pipeline;
  }
  static void refused(int code, const Words& words, const Words& texts, const Words& environment) {
    Program program(words, environment);
    EXPECT_EQ(program.finish(), code) << program.out() << program.err();
    for (const std::string& text : texts)
      EXPECT_TRUE(has(program.out() + program.err(), text)) << program.out() << program.err();
  }

  TemporaryFolder folder_;
};

TEST_F(PipelineOnGpu, MeasuresEachPartOfTheWholePipelineAndLeavesNoFile) {
  const Words made{"--create-source", "3000001"}, size{kSize, "3000001"};
  const std::string a = file("a"), b = file("b");
  expectStages(a + ",cuda0", {"load"}, made);
  expectStages("cuda1," + b, {"store"}, size);
  expectStages("cuda0,net,cuda0", {"net"}, size);
  expectStages("cuda0,cuda1", {"copy"}, size);
  expectStages(a + ",cuda0," + b, {"load", "store"}, made);
  expectStages("host,cuda0,host", {"copy 1", "copy 2"}, size);
  expectStages(a + ",cuda0,net,cuda0", {"load", "net"}, made);
  expectStages("cuda0,net,host," + b, {"net", "store"}, size);
  expectStages(a + ",net,cuda0," + b, {"net", "store"}, made);
  expectStages(a + ",host,cuda0,net,cuda1,host," + b, {"load", "copy 1", "net", "copy 2", "store"},
               made);
  EXPECT_EQ(files(), 0U);
}

TEST_F(PipelineOnGpu, TheWholeChainNamesItsPathAndItsPlaces) {
  const Json out = measured(
      run(file("a") + ",cuda0,net,cuda1," + file("b"), {"--create-source", "3MiB"}), smallChunks());
  const Json& net = out.at("rows")[1].at("pipeline").at("stages")[0];
  EXPECT_EQ(net.at("route"), "cuda0 -> cuda1");
  EXPECT_TRUE(has(net.at("path"), "tcp/")) << "not the mapped memory of the peer";
  Words backends;
  for (const Json& share : out.at("rows")[4].at("path")) backends.push_back(share.at("backend"));
  for (const char* part : {"file", "cuda", "tcp"})
    EXPECT_NE(std::ranges::find(backends, part), backends.end()) << part << out.at("rows")[4];
}

TEST_F(PipelineOnGpu, TheBackendOfGpusCanCarryTheNetStage) {
  const Json out =
      measured(run("cuda0,net,cuda1", {kSize, "1MiB", "--backend", "cuda"}), withDriver());
  const std::string way = out.at("rows")[0].at("pipeline").at("stages")[0].at("path");
  EXPECT_TRUE(has(way, "cuda/") && !has(way, "tcp/")) << way;
}

TEST_F(PipelineOnGpu, TheMemoryOnAGpuIsARingOfChunks) {
  const std::string whole = file("a") + ",cuda0,net,cuda0," + file("b");
  measured(run(whole, {"--create-source", "32MiB"}),
           withDriver({"FAKE_CUDA_MEMORY=16777216", "VIADUCT_STAGING_CHUNK=512KiB",
                       "VIADUCT_STAGING_CHUNKS=4"}));
}

TEST_F(PipelineOnGpu, ChunksAndRingsMayHaveAnySize) {
  const std::string whole = file("a") + ",cuda0,net,cuda0," + file("b");
  for (const Words& sizes :
       std::vector<Words>{{"VIADUCT_STAGING_CHUNK=100000", "VIADUCT_STAGING_CHUNKS=3"},
                          {"VIADUCT_STAGING_CHUNK=64KiB", "VIADUCT_STAGING_CHUNKS=2"},
                          {"VIADUCT_STAGING_CHUNK=8MiB", "VIADUCT_STAGING_CHUNKS=2"}})
    measured(run(whole, {"--create-source", "1000001"}), withDriver(sizes));
}

TEST_F(PipelineOnGpu, AnExistingSourceArrivesByteForByte) {
  std::string content;
  for (int i = 0; content.size() < 1'500'001; ++i) content += std::to_string(i) + ",";
  folder_.write("/a", content);
  folder_.write("/b", "old");
  measured(run(file("a") + ",cuda0,net,cuda1," + file("b"), {"--overwrite"}), smallChunks());
  std::ostringstream copy;
  copy << std::ifstream(path("b")).rdbuf();
  EXPECT_TRUE(copy.str() == content) << copy.str().size();
}

TEST_F(PipelineOnGpu, TwoCommandsMeetAndTheFirstPrintsTheResults) {
  const std::string pipeline = file("a") + ",cuda0,net,cuda0," + file("b"), where = freeAddress();
  const auto member = [&](const char* rank) {
    return run(pipeline, {"--create-source", "2MiB", "--meet", where, "--rank", rank});
  };
  Program lead(member("0"), smallChunks()), other(member("1"), smallChunks());
  EXPECT_EQ(lead.finish(), 0) << lead.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  EXPECT_EQ(Json::parse(lead.out()).at("rows").size(), 5U);
  EXPECT_EQ(other.out(), "");
}

TEST_F(PipelineOnGpu, AMissingGpuOrDriverIsNamed) {
  const Words size{kSize, "1MiB"};
  refused(1, run("host,cuda7", size), {"there is no GPU 7; the driver shows 2"}, withDriver());
  refused(1, run("host,net,cuda7", size), {"rank 1", "there is no GPU 7"}, withDriver());
  refused(1, run("host,cuda0", size), {"libno-such.so.1"},
          {"VIADUCT_CUDA_LIBRARY=libno-such.so.1"});
  refused(1, run("host,cuda0", {kSize, "64MiB"}), {"CUDA_ERROR_OUT_OF_MEMORY"},
          withDriver({"FAKE_CUDA_MEMORY=4194304"}));
}

TEST_F(PipelineOnGpu, ARequirementIsOneOfTheNetStage) {
  const Words size{kSize, "1MiB", "--require", "no-staging"};
  refused(1, run("cuda0,net,cuda0", size), {"net: ", "the requirement"}, withDriver());
  refused(2, run("cuda0,cuda1", size), {"--require", "has no net"}, withDriver());
}

TEST_F(PipelineOnGpu, AFailedCopyEndsTheCommandWithItsError) {
  const Words words = run(file("a") + ",cuda0,net,cuda0," + file("b"), {"--create-source", "3MiB"});
  for (const char* nth : {"copy:30:700", "copy:400:700"})
    refused(1, words, {"CUDA_ERROR_ILLEGAL_ADDRESS"},
            smallChunks({std::string("FAKE_CUDA_FAIL=") + nth}));
  EXPECT_EQ(files(), 0U);
}

// A run whose whole chain moves bytes until the test ends it.
class EndlessChain : public PipelineOnGpu {
 protected:
  void SetUp() override {
    terminal_ = base::Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal_ || ::grantpt(terminal_.get()) != 0 || ::unlockpt(terminal_.get()) != 0)
      GTEST_SKIP() << "skipped: no pseudo terminals";
    const base::Fd shown(::open(::ptsname(terminal_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    program_.emplace(Words{"pipeline", file("a") + ",cuda0,net,cuda0," + file("b"),
                           "--create-source", "2MiB", "--duration", "200ms", "--repeat", "100000"},
                     smallChunks(), kProgram, shown.get());
    worker_ = program_->waitForWorker("bench-rank-1");
    ASSERT_GT(worker_, 0);
    readUntil("the pipeline");
  }
  // Reads what the terminal shows, up to this text or to the end of the program.
  void readUntil(const std::string& text) {
    std::array<char, 512> part{};
    while (!has(shown_, text)) {
      const ssize_t got = ::read(terminal_.get(), part.data(), part.size());
      ASSERT_GT(got, 0) << shown_;
      shown_.append(part.data(), static_cast<std::size_t>(got));
      ASSERT_LT(shown_.size(), 1'000'000U) << shown_;
    }
  }
  // Returns the exit code once the program and its worker are gone. Reads what they show meanwhile,
  // because a full terminal would block them.
  int finish() {
    std::thread rest([this] { readRest(); });
    const int code = program_->finish();
    const bool gone = waitGone(worker_);
    EXPECT_TRUE(gone);
    if (!gone) ::kill(worker_, SIGKILL);  // until then the terminal has no end
    rest.join();
    return code;
  }
  void readRest() {
    std::array<char, 512> part{};
    for (ssize_t got = 0; (got = ::read(terminal_.get(), part.data(), part.size())) > 0;)
      shown_.append(part.data(), static_cast<std::size_t>(got));
  }
  base::Fd terminal_;
  std::optional<Program> program_;
  std::string shown_;
  pid_t worker_ = 0;
};

TEST_F(EndlessChain, AKilledTargetIsNamed) {
  ::kill(worker_, SIGKILL);
  readUntil("was killed by signal 9");
  EXPECT_EQ(finish(), 3) << shown_;
  EXPECT_TRUE(has(shown_, "rank 1")) << shown_;
  EXPECT_EQ(files(), 0U);
}

TEST_F(EndlessChain, AFrozenTargetIsNamedAndEnded) {
  ::kill(worker_, SIGSTOP);
  const auto stopped = Clock::now();
  readUntil("frozen");
  EXPECT_EQ(finish(), 3) << shown_;
  EXPECT_LT(Clock::now() - stopped, std::chrono::seconds(20)) << "it waited for an answer";
  EXPECT_TRUE(has(shown_, "rank 1")) << shown_;
}

TEST_F(EndlessChain, CtrlCEndsIt) {
  program_->interrupt(SIGINT);
  EXPECT_EQ(finish(), 130) << shown_;
  EXPECT_EQ(files(), 0U);
}

}  // namespace
}  // namespace viaduct::testing
