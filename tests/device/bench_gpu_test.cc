// `viaduct bench`, `nixlbench` and `viaduct p2p` with memory of GPUs, as users type them. The
// driver is the fake one, whose memory crashes a CPU that touches it.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "support/free_port.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

Words withDriver(Words more = {}) {
  more.emplace_back(std::string("VIADUCT_CUDA_LIBRARY=") + kFakeCuda);
  return more;
}

Words joined(Words words, const Words& more) { return withFlags(std::move(words), more); }

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

TEST(BenchOnGpu, WithoutABackendOnlyTheUsableOnesAreMeasured) {
  const auto backends = [](const Words& memory) {
    std::set<std::string> out;
    const Json run = measured(memory);
    for (const Json& row : run.at("rows")) out.insert(row.at("backend"));
    return out;
  };
  EXPECT_EQ(backends({"--initiator_seg_type", "VRAM"}), (std::set<std::string>{"local", "tcp"}));
  EXPECT_EQ(backends(kBothVram), (std::set<std::string>{"cuda", "local", "tcp"}));
}

// Compares no rates: over the fake driver, a row may be faster than the copies that measure
// ceilings.
TEST(BenchOnGpu, TheCeilingIsMeasuredInTheRun) {
  const Json within = measured(joined(kBothVram, {"--backend", "cuda"}));
  EXPECT_TRUE(has(within.at("conclusion").dump(), "copy within GPU 0 (Fake GPU)"))
      << within.dump(1);
  for (const Words& memory : {Words{"--initiator_seg_type", "VRAM"}, kBothVram}) {
    const Json staged = measured(joined(memory, {"--backend", "tcp"}));
    EXPECT_FALSE(has(staged.dump(), "ceiling_unknown")) << staged.dump(1);
    EXPECT_FALSE(has(staged.dump(), "no known ceiling")) << staged.dump(1);
  }
}

TEST(BenchOnGpu, TheCeilingOfTwoGpusNeedsAProcessThatHasBoth) {
  const Words two{"--backend", "cuda", "--scheme", "onetomany", "--num_target_dev=2"};
  const Json both = measured(joined(joined(kBothVram, two), {"--mode", "MG"}));
  EXPECT_FALSE(has(both.dump(), "was not measured")) << both.dump(1);
  const Json apart = measured(joined(kBothVram, two)).at("rows")[0];
  EXPECT_TRUE(has(apart.value("ceiling_unknown", ""), "no process has both GPUs")) << apart.dump(1);
}

TEST(BenchOnGpu, ACeilingThatIsNotMeasuredIsSaidWithTheReason) {
  const Json run = measured({"--backend", "tcp", "--initiator_seg_type", "VRAM"},
                            {"FAKE_CUDA_FAIL=cuMemHostAlloc:1:2"});
  const std::string unknown = run.at("rows")[0].value("ceiling_unknown", "");
  EXPECT_TRUE(has(unknown, "the rate of the copy from GPU 0 (Fake GPU) to pinned host memory"))
      << run.dump(1);
  EXPECT_TRUE(has(unknown, "cuMemHostAlloc") && has(unknown, "CUDA_ERROR_OUT_OF_MEMORY"))
      << unknown;
  EXPECT_TRUE(has(run.at("conclusion").dump(), "was not measured")) << run.dump(1);
}

TEST(BenchOnGpu, ARowSaysWhatCopied) {
  const auto by = [](const std::string& below, const Words& more) {
    return measured(joined(more, {"--batch", "16"}), {"VIADUCT_CUDA_KERNEL_BELOW=" + below})
        .at("rows")[0]
        .value("copied_by", "");
  };
  const Words within = joined(kBothVram, {"--backend", "cuda"});
  EXPECT_EQ(by("128KiB", within), "kernel");
  EXPECT_EQ(by("0", within), "copy engine");
  EXPECT_EQ(by("128KiB", joined(kBothVram, {"--backend", "tcp"})), "kernel");
  EXPECT_EQ(by("128KiB", {"--backend", "tcp"}), "") << "without a GPU";
}

TEST(BenchOnGpu, DeviceIOfAProcessIsGpuI) {
  const Words two{"--backend", "tcp", "--num_initiator_dev=2", "--num_target_dev=2"};
  const Json many = measured(joined(joined(kBothVram, two), {"--mode", "MG"})).at("rows")[0];
  EXPECT_EQ(many.at("memory"), "VRAM 0-1");
  const Json single = measured(joined(kBothVram, two), {"FAKE_CUDA_DEVICES=1"}).at("rows")[0];
  EXPECT_EQ(single.at("memory"), "VRAM 0") << "the only GPU that each process sees";
}

TEST(BenchOnGpu, SeveralGpusHaveARateEach) {
  const Words two =
      joined(kBothVram, {"--backend", "cuda", "--num_initiator_dev=2", "--num_target_dev=2"});
  for (const char* mode : {"MG", "SG"}) {
    const Json row = measured(joined(two, {"--mode", mode})).at("rows")[0];
    ASSERT_EQ(row.at("devices").size(), 2U) << row.dump(1);
    double sum = 0;
    for (unsigned i = 0; i < 2; ++i) {
      const Json& device = row["devices"][i];
      EXPECT_EQ(device.at("side"), "initiator");
      EXPECT_EQ(device.at("number"), i);
      EXPECT_EQ(device.at("gpu"), "GPU " + std::to_string(i) + " (Fake GPU)");
      sum += device.at("gb_per_s").get<double>();
    }
    EXPECT_GE(sum, row.at("gb_per_s").get<double>() * 0.99);
    EXPECT_EQ(row.at("scaling").at("devices"), 2);
    EXPECT_GT(row["scaling"].at("alone_gb_per_s"), 0);
    EXPECT_GT(row["scaling"].at("of_linear"), 0);
    EXPECT_EQ(row.at("iterations"), 24) << "none of the first device alone";
  }
  Program text(joined({"bench", "--mode", "MG", "--block-sizes", "64K", "--iterations", "12"}, two),
               withDriver());
  EXPECT_EQ(text.finish(), 0) << text.err();
  EXPECT_TRUE(has(text.out(), "\n         initiator 1, GPU 1 (Fake GPU): ")) << text.out();
  EXPECT_TRUE(has(text.out(), "         scaling: ")) << text.out();
  const Json one = measured(joined(kBothVram, {"--backend", "cuda"})).at("rows")[0];
  EXPECT_FALSE(one.contains("devices") || one.contains("scaling")) << one.dump(1);
}

TEST(BenchOnGpu, AMissingGpuOrDriverIsNamed) {
  refused(joined(kBothVram, {"--num_initiator_dev=3", "--num_target_dev=3", "--mode=MG"}),
          "there is no GPU 2; the driver shows 2", withDriver());
  refused(kBothVram, "libno-such.so.1", {"VIADUCT_CUDA_LIBRARY=libno-such.so.1"});
  refused(joined(kBothVram, {"--total_buffer_size", "64M"}), "CUDA_ERROR_OUT_OF_MEMORY",
          withDriver({"FAKE_CUDA_MEMORY=1048576"}));
}

TEST(BenchOnGpu, WorkersOfOneHostAreNotCompared) {
  Program piped({"pipeline", "host,net,cuda0", "--against", "--memory malloc"}, withDriver());
  EXPECT_EQ(piped.finish(), 2);
  EXPECT_TRUE(has(piped.err(), "cannot use GPUs in several turns")) << piped.err();
  refused(joined(kBothVram, {"--against", "--memory malloc"}), "--against and VRAM", withDriver());
}

TEST(BenchOnGpu, AFailedCopyFailsTheRow) {
  Program run(joined({"bench", "--backend", "tcp", "--block-sizes", "64K", "--iterations", "12",
                      "--warmup", "0.01"},
                     kBothVram),
              withDriver({"FAKE_CUDA_FAIL=copy:20:700"}));
  EXPECT_NE(run.finish(), 0) << run.out();
}

Words swapping(const Words& more = {}) {
  return joined(
      {"swap", "--batch", "16", "--block-sizes", "4K", "--duration", "20ms", "--warmup", "1ms"},
      more);
}

// Fails unless the run ends with that code and its output contains the texts `said`.
void swapEnds(int code, const Words& words, const Words& said, const Words& environment) {
  Program run(words, environment);
  EXPECT_EQ(run.finish(), code) << run.out() << run.err();
  for (const std::string& one : said)
    EXPECT_TRUE(has(run.out() + run.err(), one)) << one << "\n" << run.out() << run.err();
}

TEST(SwapOnGpu, HasARowForEachDirectionOrderSizeAndWay) {
  Program run(swapping({"--block-sizes", "4K,16K", "--output", "json"}),
              withDriver({"VIADUCT_CUDA_KERNEL_BELOW=8KiB"}));
  ASSERT_EQ(run.finish(), 0) << run.err();
  const Json report = Json::parse(run.out());
  EXPECT_EQ(report.at("end"), "complete");
  EXPECT_FALSE(has(report.at("conclusion").dump(), "--pipeline-depth")) << "swap has no such flag";
  std::set<std::string> seen;
  for (const Json& row : report.at("rows")) {
    const Json& swap = row.at("swap");
    seen.insert(swap.at("direction").get<std::string>() + " " +
                swap.at("order").get<std::string>() + " " + row.at("block_size").dump() + " " +
                swap.at("way").get<std::string>());
    EXPECT_EQ(swap.at("gpu"), "GPU 0 (Fake GPU)");
    EXPECT_EQ(row.at("gb_per_s_parts").size(), 6U);
    EXPECT_GT(row.at("gb_per_s"), 0);
    // The fake driver's GPUs are not devices of this kernel.
    EXPECT_EQ(row.at("verdict"), "unproven") << row.dump(1);
    EXPECT_TRUE(has(row.at("proof"), "GPU 0 (Fake GPU) is known to its driver only: the kernel"))
        << row.dump(1);
    EXPECT_FALSE(row.contains("ceiling_unknown")) << row.dump(1);
    const bool small = swap.at("order") == "random" && row.at("block_size") == 4096;
    EXPECT_EQ(row.at("copied_by"), swap.at("way") == "viaduct" && small ? "kernel" : "copy engine")
        << row.dump(1);
  }
  EXPECT_EQ(seen.size(), 16U);
  EXPECT_EQ(seen.count("in contiguous 4096 one call a block"), 1U);
}

// Too little GPU memory for the copies that measure ceilings, which would take most of the time.
const Words kNoCeilings{"FAKE_CUDA_MEMORY=12582912", "FAKE_CUDA_DEVICES=1"};

// Runs both sides of a comparison in turns, and returns its JSON.
Json compared(const Words& words, const std::string& against) {
  Program run(joined(words, {"--rounds", "4", "--output", "json", "--against", against}),
              withDriver(kNoCeilings));
  EXPECT_EQ(run.finish(), 0) << run.err();
  const Json out = Json::parse(run.out(), nullptr, false);
  EXPECT_EQ(out.value("outcome", ""), "compared") << run.out();
  EXPECT_EQ(out.value("runs_a", 0), 4);
  EXPECT_EQ(out.value("runs_b", 0), 4);
  return out;
}

TEST(SwapOnGpu, TwoSettingsAreComparedInTurns) {
  const Json json = compared(swapping({"--batch", "4", "--duration", "4ms", "--repeat", "1"}),
                             "VIADUCT_CUDA_KERNEL_BELOW=0");
  EXPECT_EQ(json.at("differing"), Json::array({"agent.cuda_kernel_below: A auto, B 0"}));
  ASSERT_EQ(json.at("rows").size(), 8U);
  EXPECT_EQ(json["rows"][0].at("kind"), "in contiguous, viaduct");
  EXPECT_EQ(json["rows"][7].at("kind"), "out random, one call a block");
  for (const Json& row : json["rows"]) EXPECT_EQ(row.at("interval_95").size(), 2U) << row;
}

TEST(SwapOnGpu, ACopyThatWritesOutsideItsBlockIsFound) {
  const std::string guard =
      "in GPU memory, a copy wrote outside its blocks: guard block 17 is wrong";
  const auto found = [](const char* which, const Words& said, const Words& more = {}) {
    swapEnds(1, swapping(more), said,
             withDriver({"VIADUCT_CUDA_KERNEL_BELOW=0",
                         std::string("FAKE_CUDA_FAIL=overrun:") + which + ":1"}));
  };
  // The first check makes one copy of all 16 blocks, and then 16 calls of one block each. Copy 18
  // belongs to the warm-up.
  found("1", {"viaduct: " + guard, "not every row is valid"}, {"--output", "json"});
  found("17", {"one call a block: " + guard}, {"--output", "json"});
  found("18", {guard}, {"--output", "json"});
  found("0", {"^ CORRUPT: 3 of 3", "in host memory", "not every row is valid"});
}

TEST(SwapOnGpu, SaysThatHostMemoryIsNotPinned) {
  swapEnds(0, swapping({"--output", "json"}), {"\"pageable\"", "\"cuMemcpyAsync\""},
           withDriver({"VIADUCT_CUDA_REGISTER=0"}));
  swapEnds(0, swapping(), {"host memory that is not pinned"},
           withDriver({"VIADUCT_CUDA_REGISTER=0"}));
  swapEnds(0, swapping(), {"swap between pinned host memory and GPU 0"}, withDriver());
}

TEST(SwapOnGpu, ErrorsNameTheCause) {
  swapEnds(1, swapping(), {"libno-such.so.1"}, {"VIADUCT_CUDA_LIBRARY=libno-such.so.1"});
  swapEnds(1, swapping({"--batch", "1024", "--block-sizes", "64K"}),
           {"CUDA_ERROR_OUT_OF_MEMORY", "1024 blocks of 64 KiB and their guards need 128.1 MiB",
            "use a smaller --batch"},
           withDriver({"FAKE_CUDA_MEMORY=8388608"}));
  // At most 480 calls measure the ceilings, so call 520 belongs to a row.
  swapEnds(1, swapping(), {"cuMemcpyAsync", "700"},
           withDriver({"VIADUCT_CUDA_KERNEL_BELOW=0", "FAKE_CUDA_FAIL=cuMemcpyAsync:520:700"}));
  swapEnds(0, swapping(), {"ceiling of out: not measured: ", "cuMemHostAlloc"},
           withDriver({"FAKE_CUDA_FAIL=cuMemHostAlloc:1:2"}));
}

TEST(SwapOnGpu, FlagsWithoutAnEffectAreRefused) {
  const auto wrong = [](const Words& more, const std::string& said) {
    swapEnds(2, swapping(more), {said}, withDriver());
  };
  wrong({"--op", "read"}, "--op: invalid: it is a flag of `viaduct bench`");
  wrong({"--latency"}, "--latency: invalid: it is a flag of `viaduct bench`");
  wrong({"--output", "csv"}, "none of table, json");
  wrong({"--batch", "2000000"}, "a whole number from 1 to 1048576");
  wrong({"--block-sizes", "4K,4K"}, "4 KiB is named twice");
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
  Program run(joined({"matrix", "--block-sizes", "4K", "--iterations", "12", "--warmup", "0.01",
                      "--output", "json"},
                     more),
              withDriver(environment));
  EXPECT_EQ(run.finish(), code) << run.err() << run.out();
  return Json::parse(run.out(), nullptr, false);
}

// Returns the row of the only copy from one place to the other.
Json rowOf(const Json& matrix, const std::string& figure, const std::string& from,
           const std::string& to) {
  Json found;
  for (const Json& row : matrix.at("rows")) {
    const Json& kind = row.at("matrix");
    if (kind.at("figure") != figure || kind.at("from") != from || kind.at("to") != to) continue;
    EXPECT_TRUE(found.is_null()) << "two rows from " << from << " to " << to;
    found = row;
  }
  EXPECT_FALSE(found.is_null()) << "no row from " << from << " to " << to;
  return found;
}
std::string wayOf(const Json& row) { return row.at("matrix").at("way"); }

TEST(GpuMatrix, OneProcessCopiesDirectlyBetweenAllPairs) {
  const Json matrix = matrixOf({"0,2", "--mode", "MG", "--verify", "full"},
                               {"FAKE_CUDA_DEVICES=3", "VIADUCT_CUDA_KERNEL_BELOW=64KiB"});
  EXPECT_EQ(matrix.at("conclusion").size(), 2U) << "the GPUs";
  EXPECT_EQ(matrix.at("rows").size(), 16U);
  for (const Json& row : matrix.at("rows")) {
    EXPECT_EQ(row.at("verified"), "full") << row.dump(1);
    EXPECT_GT(row.at("gb_per_s"), 0);
    EXPECT_GT(row.at("latency_us").at("p50"), 0);
  }
  const Json far = rowOf(matrix, "rate", "GPU 0", "GPU 2");
  EXPECT_EQ(far.at("memory"), "VRAM 0/VRAM 2");
  EXPECT_EQ(wayOf(far), "cuda/direct, kernel, peer access");
  EXPECT_EQ(wayOf(rowOf(matrix, "latency", "GPU 0", "GPU 2")),
            "cuda/direct, copy engine, peer access");
  EXPECT_EQ(wayOf(rowOf(matrix, "rate", "GPU 2", "GPU 2")), "cuda/direct, kernel");
  EXPECT_EQ(wayOf(rowOf(matrix, "rate", "host", "GPU 0")), "cuda/direct, kernel");
}

TEST(GpuMatrix, TheEndThatReceivesCanInitiate) {
  const Json matrix = matrixOf({"1", "--mode", "MG", "--op", "read"}, {});
  EXPECT_EQ(rowOf(matrix, "rate", "GPU 1", "host").at("memory"), "DRAM/VRAM 1");
}

TEST(GpuMatrix, TwoProcessesMapMemoryOnlyWithPeerAccess) {
  const Json peers = matrixOf({"all", "--mode", "SG"}, {});
  EXPECT_EQ(wayOf(rowOf(peers, "rate", "GPU 1", "GPU 0")), "cuda/vmm, copy engine, peer access");
  const Json legacy = matrixOf({"--mode", "SG"}, {"FAKE_CUDA_PEERS=0", "FAKE_CUDA_VMM=0"});
  EXPECT_EQ(wayOf(rowOf(legacy, "rate", "GPU 1", "GPU 1")), "cuda/ipc, copy engine");
  const std::string apart = wayOf(rowOf(legacy, "rate", "GPU 1", "GPU 0"));
  EXPECT_TRUE(has(apart, "staged: cuda/direct -> host -> ")) << apart;
}

TEST(GpuMatrix, OneGpuHasOneRowAndTheTextSaysSo) {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/matrix.json";
  Program run({"matrix", "all", "--mode", "MG", "--block-sizes", "4K", "--iterations", "12",
               "--json", file},
              withDriver({"FAKE_CUDA_DEVICES=1"}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_TRUE(has(run.out(), "with one GPU there is no pair of two GPUs")) << run.out();
  EXPECT_EQ(run.out().find("GPU 1"), std::string::npos) << run.out();
  EXPECT_EQ(Json::parse(std::ifstream(file)).at("rows").size(), 6U);
}

TEST(GpuMatrix, TwoSettingsAreComparedInTurns) {
  const Words words{"matrix",       "0", "--mode",   "MG", "--block-sizes", "4K",
                    "--iterations", "4", "--warmup", "0"};
  const Json json = compared(words, "--memory malloc");
  EXPECT_EQ(json.at("differing"), Json::array({"memory: A allocate, B malloc"}));
  ASSERT_EQ(json.at("rows").size(), 6U);
  EXPECT_EQ(json["rows"][0].at("kind"), "host to GPU 0, rate of one process");
  EXPECT_EQ(json["rows"][0].at("block_size"), 4096);
  EXPECT_EQ(json["rows"][5].at("kind"), "GPU 0 to GPU 0, latency of one process");
  for (const Json& row : json["rows"]) EXPECT_EQ(row.at("interval_95").size(), 2U) << row;
  for (const char* side : {"1", "--mode SG", "--block-sizes 8K"}) {
    Program run(joined(words, {"--against", side}), withDriver());
    EXPECT_EQ(run.finish(), 2) << run.out();
    EXPECT_TRUE(has(run.err(), "both sides need the same value")) << run.err();
  }
}

TEST(GpuMatrix, AFailedPairFailsTheCommand) {
  const Json matrix = matrixOf({"0", "--mode", "MG"}, {"FAKE_CUDA_FAIL=copy:20:700"}, 1);
  EXPECT_TRUE(has(rowOf(matrix, "rate", "GPU 0", "GPU 0").at("why"), "(700)")) << matrix.dump(1);
}

TEST(GpuMatrix, AMissingGpuOrDriverAndOtherWorkAreNamed) {
  const auto refusal = [](const Words& more, const Words& environment) {
    Program run(joined({"matrix"}, more), environment);
    EXPECT_NE(run.finish(), 0) << run.out();
    return run.err();
  };
  const Words all{"all"};
  EXPECT_TRUE(has(refusal({"0,7"}, withDriver()), "there is no GPU 7; the driver shows 2"));
  EXPECT_TRUE(has(refusal(all, withDriver({"FAKE_CUDA_DEVICES=0"})), "CUDA_ERROR_NO_DEVICE"));
  EXPECT_TRUE(has(refusal(all, {"VIADUCT_CUDA_LIBRARY=libno-such.so.1"}), "libno-such.so.1"));
  EXPECT_TRUE(has(refusal(joined(all, {"--scheme", "tp"}), withDriver()),
                  "--scheme: invalid: it is a flag of `viaduct bench`"));
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
