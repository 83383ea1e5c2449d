// The flags of `viaduct bench`, and those that nixlbench shares with it.
#include <array>

#include "measure/workload/layout.h"
#include "viaduct/command_line.h"
#include "viaduct/generated_files.h"
#include "viaduct/nixlbench.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

using measure::StorageChoice;
using BenchFlag = Flag<BenchOptions>;

constexpr base::Words<OutputForm, 4> kBenchForms{{{"table", OutputForm::kTable},
                                                  {"nixlbench", OutputForm::kNixlbench},
                                                  {"json", OutputForm::kJson},
                                                  {"csv", OutputForm::kCsv}}};
constexpr base::Words<bool, 2> kArrivals{{{"constant", false}, {"poisson", true}}};

Status intoBatches(std::string_view text, std::vector<std::uint32_t>& into) {
  return intoCounts<std::numeric_limits<std::uint32_t>::max()>(text, into);
}

constexpr std::array kBenchSizes{
    BenchFlag{"block_sizes", "SIZE,...",
              "4K, 16K, 64K and so on to 64M; nixlbench: doubled from start_block_size",
              "block sizes: 64K, 65536, 1MiB (1MB is 10^6); 4K..1M doubles from 4K to 1M",
              set<intoSizes, &BenchOptions::block_sizes>},
    BenchFlag{"batch", "N,...",
              "64, or fewer to stay at 64 MiB; nixlbench: doubled from start_batch_size",
              "blocks per transfer; 1..16 doubles from 1 to 16",
              set<intoBatches, &BenchOptions::batches>},
};
constexpr std::array kBenchStorage{
    BenchFlag{"filepath", "FOLDER", "", "folder for the files of a run with POSIX (file)",
              set<intoText, &BenchOptions::spec, &measure::Spec::storage, &StorageChoice::place>},
    BenchFlag{"filenames", "NAME,...", "",
              "files to use, below --filepath; a read leaves them as they are",
              set<intoWords, &BenchOptions::storage, &StorageOptions::filenames>},
    BenchFlag{"num_files", "N", "1", "files per device; the blocks go to them in turns",
              count<1, &BenchOptions::spec, &measure::Spec::storage, &StorageChoice::files>},
    BenchFlag{"storage_enable_direct", "", "VIADUCT_FILE_DIRECT; nixlbench: false",
              "bypass the page cache (O_DIRECT)",
              [](std::string_view text, BenchOptions& into) -> Status {
                bool direct = false;
                VIADUCT_CHECK(intoYesNo(text, direct));
                into.storage.direct = direct;
                return Ok{};
              }},
    BenchFlag{"overwrite", "", "false", "overwrite existing --filenames of a write",
              set<intoYesNo, &BenchOptions::storage, &StorageOptions::overwrite>},
};
// nixlbench has names of its own for these.
constexpr std::array kBenchObjects{
    BenchFlag{"object_bucket", "NAME", "AWS_DEFAULT_BUCKET",
              "bucket for the objects of a run with object",
              set<intoText, &BenchOptions::storage, &StorageOptions::bucket>},
    BenchFlag{"object_endpoint", "URL", "VIADUCT_OBJECT_ENDPOINT, AWS_ENDPOINT_OVERRIDE",
              "object store, http[s]://host[:port]; by default Amazon S3 in the region",
              set<intoText, &BenchOptions::storage, &StorageOptions::endpoint>},
};
constexpr std::array kBenchWorkers{
    BenchFlag{"scheme", "pairwise|manytoone|onetomany|tp", "pairwise",
              "pairing of initiators and targets",
              oneOf<measure::kSchemes, &BenchOptions::spec, &measure::Spec::layout,
                    &measure::Layout::scheme>},
    BenchFlag{"num_initiator_dev", "N", "1", "number of initiator devices",
              count<1, &BenchOptions::spec, &measure::Spec::layout, &measure::Layout::initiators>},
    BenchFlag{"num_target_dev", "N", "1", "number of target devices",
              count<1, &BenchOptions::spec, &measure::Spec::layout, &measure::Layout::targets>},
    BenchFlag{"local_workers", "N", "as many as the devices need",
              "run N workers, all on this machine", count<2, &BenchOptions::local_workers>},
    BenchFlag{"latency", "", "false", "measure ping-pong: half the time of a write and its echo",
              set<intoYesNo, &BenchOptions::spec, &measure::Spec::ping_pong>},
    BenchFlag{"reregister_mem", "", "false", "register the memory again for each transfer",
              set<intoYesNo, &BenchOptions::spec, &measure::Spec::reregister>},
};
constexpr std::array kBenchRates{
    BenchFlag{"rate", "PER_SECOND", "",
              "open loop: each thread starts this many transfers per second, even while earlier "
              "ones run; latency counts from the intended start",
              set<intoRate, &BenchOptions::spec, &measure::Spec::rate>},
    BenchFlag{"arrivals", "constant|poisson", "constant", "spacing of the starts that --rate sets",
              oneOf<kArrivals, &BenchOptions::spec, &measure::Spec::poisson>},
};
constexpr std::array kBenchBackground{BenchFlag{
    "background", "SIZE", "",
    "keep background transfers of this size in flight beside the timed ones, which become urgent",
    set<intoSize, &BenchOptions::spec, &measure::Spec::background>}};
constexpr std::array kBenchOutput{
    outputFlag<kBenchForms>("table|nixlbench|json|csv", "table; nixlbench: nixlbench")};

const std::string kBenchMore = std::string(kSpelling) +
                               "NIXL_BACKEND, NIXL_TARGET_SEG_TYPE and NIXL_LOG_LEVEL stand for "
                               "flags that are not typed.\n\n" +
                               kExitCodes;

const Workload<BenchOptions> kBench{
    "viaduct bench",
    "Measure transfers between workers, and to and from storage.\n\n"
    "Each row names the path that the bytes took, the proof of that path, and the ceiling of the "
    "rate. Without flags, two workers on this machine measure 4 KiB to 64 MiB over local and tcp, "
    "in less than a minute.\n",
    "  Measure this machine:\n"
    "    viaduct bench\n"
    "  Measure two hosts (on node1: --rank 1):\n"
    "    viaduct bench --meet node0:7000 --secret WORD --rank 0\n"
    "  Fail unless the bytes provably go over RDMA between two hosts:\n"
    "    viaduct bench --meet node0:7000 --secret WORD --rank 0 \\\n"
    "        --backend ucx --require rdma,proven\n"
    "  Compare two settings:\n"
    "    viaduct bench --backend tcp --against 'VIADUCT_SOCKETS=4 --batch 16'\n"
    "  Measure the disk of a folder, without leaving a file:\n"
    "    viaduct bench --backend file --filepath /nvme --op read\n"
    "  Sweep block and batch sizes:\n"
    "    viaduct bench --backend tcp --block-sizes 4K..1M --batch 1..16 --json sweep.json\n",
    benchSheet,
    planBench,
    nullptr,
    kBenchMore.c_str()};

}  // namespace

FlagSheet sharedSheet(BenchOptions& o) {
  const auto ours = runFlags();
  FlagSheet out;
  out.add("Data", ours, o, {"backend", "op"})
      .add<BenchOptions>("Data", kBenchSizes, o)
      .add("Data", ours, o,
           {"memory", "initiator_seg_type", "target_seg_type", "use_hugepages", "total_buffer_size",
            "cold", "working_set", "device_list", "seed"})
      .add<BenchOptions>("Storage", kBenchStorage, o)
      .add<BenchOptions>("Workers", kBenchWorkers, o)
      .add("Workers", ours, o,
           {"mode", "num_threads", "pipeline_depth", "bidirectional", "recreate_xfer"})
      .add<BenchOptions>("Workers", kBenchBackground, o);
  addDuration(out, o);
  out.add<BenchOptions>("Duration", kBenchRates, o);
  addChecks(out, o);
  addMeeting(out, o);
  addComparison(out, o);
  addOutput(out, o, kBenchOutput, {"interval", "json", "explain"});
  return out;
}

FlagSheet benchSheet(BenchOptions& o) {
  return sharedSheet(o).add<BenchOptions>("Storage", kBenchObjects, o);
}

std::span<const BenchFlag> pairFlags() { return kBenchWorkers; }

bool isStorageFlag(std::string_view name) {
  return std::ranges::find(kBenchStorage, name, &BenchFlag::name) != kBenchStorage.end() ||
         std::ranges::find(kBenchObjects, name, &BenchFlag::name) != kBenchObjects.end();
}

Command benchCommand() {
  Command out = commandOf(kBench);
  out.run = [run = out.run](const CommandWords& words) {
    if (words != CommandWords{"--help=markdown"}) return run(words);
    fmt::print("{}", flagsPage());
    return static_cast<int>(kExitOk);
  };
  return out;
}

}  // namespace viaduct::app
