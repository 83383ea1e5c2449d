// `viaduct bench`, `nixlbench` and `viaduct p2p` with memory of GPUs, as users type them. The
// driver is the fake one, whose memory crashes a CPU that touches it.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/program.h"
#include "support/free_port.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words withDriver(Words more = {}) {
  more.emplace_back("VIADUCT_CUDA_LIBRARY=" VIADUCT_FAKE_CUDA);
  return more;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Runs a short benchmark, and returns its result file.
Json measured(const Words& more, const Words& environment = {}) {
  Program run(joined({"bench", "--block-sizes", "64K", "--batch", "4", "--iterations", "12",
                      "--warmup", "0.01", "--output", "json"},
                     more),
              withDriver(environment));
  EXPECT_EQ(run.finish(), 0) << run.err() << run.out();
  return Json::parse(run.out(), nullptr, false);
}

void refused(const Words& more, const std::string& said, const Words& environment) {
  Program run(
      joined({"bench", "--backend", "tcp", "--block-sizes", "64K", "--iterations", "12"}, more),
      environment);
  EXPECT_NE(run.finish(), 0) << run.out();
  EXPECT_TRUE(has(run.err() + run.out(), said)) << run.err() << run.out();
}

bool hasStage(const Json& row, unsigned stage, const std::string& backend) {
  return std::ranges::any_of(row.at("path"), [&](const Json& share) {
    return share.value("stage", 0U) == stage && share.at("backend") == backend;
  });
}

const Words kBothVram{"--initiator_seg_type", "VRAM", "--target_seg_type", "VRAM"};

TEST(BenchOnGpu, ANetworkBackendIsStagedAndTheRowSaysSo) {
  const Json row =
      measured(joined(kBothVram, {"--backend", "tcp", "--verify", "full"})).at("rows")[0];
  EXPECT_EQ(row.at("memory"), "VRAM 0");
  EXPECT_EQ(row.at("backend"), "tcp");
  EXPECT_EQ(row.at("verified"), "full");
  EXPECT_TRUE(hasStage(row, 1, "cuda") && hasStage(row, 2, "tcp") && hasStage(row, 3, "cuda"))
      << row.at("path").dump(1);
  EXPECT_TRUE(has(row.value("remark", ""), "staged through host memory, because tcp"))
      << row.dump(1);
}

TEST(BenchOnGpu, TheBackendOfGpusNeedsNoStages) {
  const Json row = measured(joined(kBothVram, {"--backend", "cuda"})).at("rows")[0];
  EXPECT_EQ(row.at("memory"), "VRAM 0");
  EXPECT_TRUE(hasStage(row, 0, "cuda")) << row.at("path").dump(1);
  EXPECT_FALSE(has(row.value("remark", ""), "staged")) << row.dump(1);
}

TEST(BenchOnGpu, EachSideHasMemoryOfItsOwnKind) {
  const Json to_host = measured({"--backend", "tcp", "--initiator_seg_type", "VRAM"}).at("rows")[0];
  EXPECT_EQ(to_host.at("memory"), "VRAM 0/DRAM");
  EXPECT_FALSE(hasStage(to_host, 3, "cuda"));
  const Json from_gpu =
      measured({"--backend", "tcp", "--target_seg_type", "VRAM", "--op", "read"}).at("rows")[0];
  EXPECT_EQ(from_gpu.at("memory"), "DRAM/VRAM 0");
}

TEST(BenchOnGpu, DeviceIOfAProcessIsGpuI) {
  const Words two{"--backend", "tcp", "--num_initiator_dev=2", "--num_target_dev=2"};
  const Json many = measured(joined(joined(kBothVram, two), {"--mode", "MG"})).at("rows")[0];
  EXPECT_EQ(many.at("memory"), "VRAM 0-1");
  const Json single = measured(joined(kBothVram, two), {"FAKE_CUDA_DEVICES=1"}).at("rows")[0];
  EXPECT_EQ(single.at("memory"), "VRAM 0") << "the only GPU that each process sees";
}

TEST(BenchOnGpu, AMissingGpuOrDriverIsNamed) {
  refused(joined(kBothVram, {"--num_initiator_dev=3", "--num_target_dev=3", "--mode=MG"}),
          "there is no GPU 2; the driver shows 2", withDriver());
  refused(kBothVram, "libno-such.so.1", {"VIADUCT_CUDA_LIBRARY=libno-such.so.1"});
  refused(joined(kBothVram, {"--total_buffer_size", "64M"}), "CUDA_ERROR_OUT_OF_MEMORY",
          withDriver({"FAKE_CUDA_MEMORY=1048576"}));
}

TEST(BenchOnGpu, WorkersOfOneHostAreNotCompared) {
  refused(joined(kBothVram, {"--against", "--memory malloc"}), "--against and VRAM", withDriver());
}

TEST(BenchOnGpu, AFailedCopyFailsTheRow) {
  Program run(joined({"bench", "--backend", "tcp", "--block-sizes", "64K", "--iterations", "12",
                      "--warmup", "0.01"},
                     kBothVram),
              withDriver({"FAKE_CUDA_FAIL=copy:20:700"}));
  EXPECT_NE(run.finish(), 0) << run.out();
}

// The command line that clusters run, without etcd and with less memory.
TEST(NixlbenchOnGpu, TheLineOfAClusterWorks) {
  Program run(joined({"--backend", "tcp", "--benchmark_group", "bg100000", "--local_workers=2"},
                     joined(kBothVram, {"--num_initiator_dev=2", "--num_target_dev=2",
                                        "--total_buffer_size=1048576", "--max_block_size=8192",
                                        "--mode=MG", "--num_iter=16", "--warmup_iter=16"})),
              withDriver(), "/usr/bin/nixlbench");
  EXPECT_EQ(run.finish(), 0) << run.err();
  for (const char* side : {"Initiator", "Target"})
    EXPECT_TRUE(has(run.out(), std::string(side) + " seg type (--")) << run.out();
  EXPECT_EQ(run.out().find("DRAM\n"), std::string::npos) << run.out();
  EXPECT_TRUE(has(run.err(), "staged through host memory")) << run.err();
}

TEST(NixlbenchOnGpu, GdsIsStagedAndDoesNotCallItselfGds) {
  const TemporaryFolder folder;
  Program run(
      {"--backend", "GDS_MT", "--initiator_seg_type", "VRAM", "--filepath", folder.path(),
       "--max_block_size=8192", "--num_iter=16", "--warmup_iter=16", "--total_buffer_size=1048576"},
      withDriver(), "/usr/bin/nixlbench");
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.err(), "GDS_MT: GPUDirect Storage is not used")) << run.err();
}

// Runs a short matrix, and returns its JSON.
Json matrixOf(const Words& more, const Words& environment, int code = 0) {
  Program run(joined({"bench", "--block-sizes", "4K", "--iterations", "12", "--warmup", "0.01",
                      "--output", "json"},
                     more),
              withDriver(environment));
  EXPECT_EQ(run.finish(), code) << run.err() << run.out();
  return Json::parse(run.out(), nullptr, false);
}

// Returns the cell of the only copy from one place to the other.
Json cellOf(const Json& matrix, const std::string& from, const std::string& to) {
  Json found;
  for (const Json& cell : matrix.at("cells"))
    if (cell.at("from") == from && cell.at("to") == to) {
      EXPECT_TRUE(found.is_null()) << "two cells from " << from << " to " << to;
      found = cell;
    }
  EXPECT_FALSE(found.is_null()) << "no cell from " << from << " to " << to;
  return found;
}

TEST(GpuMatrix, OneProcessCopiesDirectlyBetweenAllPairs) {
  const Json matrix = matrixOf({"--gpu-matrix", "0,2", "--mode", "MG", "--verify", "full"},
                               {"FAKE_CUDA_DEVICES=3", "VIADUCT_CUDA_KERNEL_BELOW=64KiB"});
  EXPECT_EQ(matrix.at("gpus").size(), 2U);
  EXPECT_EQ(matrix.at("cells").size(), 8U);
  for (const Json& cell : matrix.at("cells")) {
    EXPECT_EQ(cell.at("rate_row").at("verified"), "full") << cell.dump(1);
    EXPECT_GT(cell.at("gb_per_s"), 0);
    EXPECT_GT(cell.at("p50_us"), 0);
  }
  const Json far = cellOf(matrix, "GPU 0", "GPU 2");
  EXPECT_EQ(far.at("rate_row").at("memory"), "VRAM 0/VRAM 2");
  EXPECT_EQ(far.at("rate_way"), "cuda/direct, kernel, peer access");
  EXPECT_EQ(far.at("latency_way"), "cuda/direct, copy engine, peer access");
  EXPECT_EQ(cellOf(matrix, "GPU 2", "GPU 2").at("rate_way"), "cuda/direct, kernel");
  EXPECT_EQ(cellOf(matrix, "host", "GPU 0").at("rate_way"), "cuda/direct, kernel");
}

TEST(GpuMatrix, TheEndThatReceivesCanInitiate) {
  const Json matrix = matrixOf({"--gpu-matrix", "1", "--mode", "MG", "--op", "read"}, {});
  EXPECT_EQ(cellOf(matrix, "GPU 1", "host").at("rate_row").at("memory"), "DRAM/VRAM 1");
}

TEST(GpuMatrix, TwoProcessesMapMemoryOnlyWithPeerAccess) {
  const Json peers = matrixOf({"--gpu-matrix", "all", "--mode", "SG"}, {});
  EXPECT_EQ(cellOf(peers, "GPU 1", "GPU 0").at("rate_way"), "cuda/vmm, copy engine, peer access");
  const Json legacy =
      matrixOf({"--gpu-matrix", "all", "--mode", "SG"}, {"FAKE_CUDA_PEERS=0", "FAKE_CUDA_VMM=0"});
  EXPECT_EQ(cellOf(legacy, "GPU 1", "GPU 1").at("rate_way"), "cuda/ipc, copy engine");
  const std::string apart = cellOf(legacy, "GPU 1", "GPU 0").at("rate_way");
  EXPECT_TRUE(has(apart, "staged: cuda/direct -> host -> ")) << apart;
}

TEST(GpuMatrix, OneGpuHasOneRowAndTheTextSaysSo) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/matrix.json";
  Program run({"bench", "--gpu-matrix", "all", "--mode", "MG", "--block-sizes", "4K",
               "--iterations", "12", "--json", file},
              withDriver({"FAKE_CUDA_DEVICES=1"}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "with one GPU there is no pair of two GPUs")) << run.out();
  EXPECT_EQ(run.out().find("GPU 1"), std::string::npos) << run.out();
  EXPECT_EQ(Json::parse(std::ifstream(file)).at("cells").size(), 3U);
}

TEST(GpuMatrix, AFailedPairFailsTheCommand) {
  const Json matrix =
      matrixOf({"--gpu-matrix", "0", "--mode", "MG"}, {"FAKE_CUDA_FAIL=copy:20:700"}, 1);
  EXPECT_TRUE(has(cellOf(matrix, "GPU 0", "GPU 0").at("problem"), "(700)")) << matrix.dump(1);
}

TEST(GpuMatrix, AMissingGpuOrDriverAndOtherWorkAreNamed) {
  const auto refusal = [](const Words& more, const Words& environment) {
    Program run(joined({"bench"}, more), environment);
    EXPECT_NE(run.finish(), 0) << run.out();
    return run.err();
  };
  const Words all{"--gpu-matrix", "all"};
  EXPECT_TRUE(
      has(refusal({"--gpu-matrix", "0,7"}, withDriver()), "there is no GPU 7; the driver shows 2"));
  EXPECT_TRUE(has(refusal(all, withDriver({"FAKE_CUDA_DEVICES=0"})), "CUDA_ERROR_NO_DEVICE"));
  EXPECT_TRUE(has(refusal(all, {"VIADUCT_CUDA_LIBRARY=libno-such.so.1"}), "libno-such.so.1"));
  EXPECT_TRUE(
      has(refusal(joined(all, {"--scheme", "tp"}), withDriver()), "--gpu_matrix and --scheme"));
  EXPECT_TRUE(has(refusal(joined(all, {"--block-sizes", "1K,2K,4K"}), withDriver()),
                  "a matrix has two sizes"));
}

TEST(P2pOnGpu, EitherSideHasMemoryOfAGpu) {
  const std::string port = std::to_string(freePort());
  const auto words = [&](const char* mode, const Words& more) {
    return joined({"p2p", "--mode", mode, "--ip", "127.0.0.1", "--port", port}, more);
  };
  Program target(words("target", {"--cuda", "--gpu_id", "1"}), withDriver());
  ASSERT_TRUE(target.readUntil("waiting for"));
  const Words sizes{"--buffer_sizes", "64KB", "--iterations", "10", "--warmup", "2"};
  Program from_host(words("initiator", sizes), withDriver());
  EXPECT_EQ(from_host.finish(), 0) << from_host.err();
  EXPECT_TRUE(has(from_host.out(), "memory of initiator/target: DRAM/VRAM 1")) << from_host.out();
  Program from_gpu(words("initiator", joined(sizes, {"--cuda"})), withDriver());
  EXPECT_EQ(from_gpu.finish(), 0) << from_gpu.err();
  EXPECT_TRUE(has(from_gpu.out(), "memory of initiator/target: VRAM 0/VRAM 1")) << from_gpu.out();
  ::kill(target.pid(), SIGINT);
  EXPECT_EQ(target.finish(), 0);
}

}  // namespace
}  // namespace viaduct::testing
