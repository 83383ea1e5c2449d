// The results for one backend, block size and batch. docs/results.md defines each field. Threads:
// plain values.
#pragma once

#include <viaduct/path.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/words.h"
#include "measure/result/counts.h"

namespace viaduct::measure {

enum class Verdict : std::uint8_t {
  kOk,
  kInvalid,      // cannot be true, such as a rate above its ceiling
  kFallback,     // another path than the backend's name says
  kSilentRail,   // a rail that should have carried a share carried nothing
  kNotRequired,  // the row did not take a required path
  kCorrupt,      // the arrived bytes differ from the sent ones
  kUnproven,     // the counters could not show the path
  kFailed,       // the row could not be measured
};
inline constexpr base::Words<Verdict, 8> kVerdicts{{{"ok", Verdict::kOk},
                                                    {"invalid", Verdict::kInvalid},
                                                    {"fallback", Verdict::kFallback},
                                                    {"silent-rail", Verdict::kSilentRail},
                                                    {"not-required", Verdict::kNotRequired},
                                                    {"corrupt", Verdict::kCorrupt},
                                                    {"unproven", Verdict::kUnproven},
                                                    {"failed", Verdict::kFailed}}};
constexpr const char* verdictName(Verdict verdict) { return base::wordOf(kVerdicts, verdict); }
// True if the row can be used. A run's exit code is 0 only if all of its rows can be used.
bool isGood(Verdict verdict);

enum class Proven : std::uint8_t { kUnproven, kYes, kNo };
inline constexpr base::Words<Proven, 3> kProvens{
    {{"yes", Proven::kYes}, {"no", Proven::kNo}, {"unproven", Proven::kUnproven}}};
constexpr const char* provenName(Proven proven) { return base::wordOf(kProvens, proven); }

enum class Verified : std::uint8_t { kOff, kSampled, kFull };
inline constexpr base::Words<Verified, 3> kVerifieds{
    {{"full", Verified::kFull}, {"sampled", Verified::kSampled}, {"off", Verified::kOff}}};
constexpr const char* verifiedName(Verified verified) { return base::wordOf(kVerifieds, verified); }

// The latency of one transfer in microseconds: from its intended start until its bytes are visible
// at the other end.
struct Latency {
  double mean = 0, p50 = 0;
  std::optional<double> p90 = {}, p95 = {};  // some tools do not report these
  double p99 = 0, p99_9 = 0, max = 0;
  std::optional<double> min = {};
  friend bool operator==(const Latency&, const Latency&) = default;
};

struct MeanP99 {  // microseconds
  double mean = 0, p99 = 0;
  friend bool operator==(const MeanP99&, const MeanP99&) = default;
};

// The bytes that one rail carried, and whether counters prove it.
struct ProvenShare {
  std::string backend = {};
  std::string way = {};
  std::string device = {};
  std::uint64_t bytes = 0;
  std::uint64_t ops = 0;
  Proven proven = Proven::kUnproven;
  std::uint64_t injected = 0, batches = 0;  // 0: not counted
  std::uint32_t stage = 0;                  // as PathShare::stage
  std::uint64_t by_kernel = 0;              // as PathShare::by_kernel
  friend bool operator==(const ProvenShare&, const ProvenShare&) = default;
};
// Returns a transfer's path as unproven shares.
std::vector<ProvenShare> unproven(const Path& path);

struct Ceiling {  // the limit of the row's rate
  std::string name = {};
  double gb_per_s = 0;
  double percent = 0;  // the reached part of the ceiling
  friend bool operator==(const Ceiling&, const Ceiling&) = default;
};

struct CpuSeconds {  // user and system time of all processes of a side
  double initiators = 0, targets = 0;
  friend bool operator==(const CpuSeconds&, const CpuSeconds&) = default;
};

struct OpenLoop {
  double asked_per_s = 0, reached_per_s = 0;  // transfers
  std::string arrivals = {};                  // "constant", "poisson"
  friend bool operator==(const OpenLoop&, const OpenLoop&) = default;
};

// The transfers with Priority::kBackground that ran beside the row's timed ones: docs/priority.md.
struct BackgroundTraffic {
  std::uint64_t size = 0;     // bytes of one transfer
  double gb_per_s = 0;        // of all pairs together
  double longest_gap_ms = 0;  // the longest time between two completions of one pair
  friend bool operator==(const BackgroundTraffic&, const BackgroundTraffic&) = default;
};

// An interval of a running row, in seconds of timed transfers.
struct RateInterval {
  double start = 0, end = 0, gb_per_s = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const RateInterval&, const RateInterval&) = default;
};

// The planned length of a row that ended early: either transfers or seconds.
struct Interrupted {
  std::uint64_t of_transfers = 0;
  double of_seconds = 0;
  friend bool operator==(const Interrupted&, const Interrupted&) = default;
};

struct PairResult {
  std::uint32_t initiator = 0, target = 0;  // ranks
  std::optional<double> gb_per_s = {};
  std::optional<Latency> latency_us = {};
  std::vector<TimedBytes> repeats = {};
  friend bool operator==(const PairResult&, const PairResult&) = default;
};

// One GPU of a row's side (initiator or target) that uses several GPUs.
struct DeviceResult {
  std::string side = {};  // "initiator", "target"
  std::uint32_t number = 0;
  std::string gpu = {};  // "GPU 3 (NVIDIA H100)"
  double gb_per_s = 0;   // of all its streams
  std::vector<TimedBytes> repeats = {};
  friend bool operator==(const DeviceResult&, const DeviceResult&) = default;
};

// How the rate grows with the number of GPUs, on the side of the row that uses several GPUs.
struct Scaling {
  std::uint32_t devices = 0;
  // The rate of the first device while the others are idle, and the row's rate divided by
  // `devices` times alone_gb_per_s.
  std::optional<double> alone_gb_per_s = {}, of_linear = {};
  double slowest_of_fastest = 0;  // the slowest device's rate as a part of the fastest one's
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

// One operation of a pattern, with the figures of nccl-tests.
struct Operation {
  std::uint64_t size = 0;
  std::optional<double> time_us = {};
  std::optional<double> algbw = {}, busbw = {};  // 10^9 bytes a second
  std::optional<std::uint64_t> wrong = {};       // checked transfers with wrong bytes
  // The bytes that all members moved, and the bytes of the member that moved most.
  std::uint64_t moved_bytes = 0, busiest_bytes = 0;
  friend bool operator==(const Operation&, const Operation&) = default;
};

// A known cause of a slow row: docs/measuring.md.
struct SlowCause {
  std::string name = {};  // "shaped-interface"
  std::string what = {}, remedy = {};
  friend bool operator==(const SlowCause&, const SlowCause&) = default;
};

// Transfers whose contents were checked.
struct Checks {
  std::uint64_t transfers = 0;
  // If this part of a row's transfers is skipped, the checks notice it in 999 rows of 1,000. 0:
  // every transfer was checked, so any skipped transfer is noticed.
  double smallest_caught = 1;
  double seconds = 0;  // time of the checks, which is not part of the timed runs
  friend bool operator==(const Checks&, const Checks&) = default;
};

// A replayed trace: docs/kv-trace.md.
struct KvReplayed {
  std::string trace = {}, format = {};  // the name and the format of its file
  double speed = 1;
  std::uint64_t requests = 0, left_out = 0;  // replayed requests, and requests too large for a pool
  std::uint64_t hash_ids = 0, hit_ids = 0;
  double hit_rate = 0;  // hit_ids / hash_ids
  std::uint64_t tokens = 0, hit_tokens = 0;
  std::optional<double> prefill_tokens_per_s = {};
  std::optional<Latency> ttft_us = {};  // time of prefill (tokens without a hit) and transfer
  std::optional<double> of_ttft = {};   // the transfer's mean part of the TTFT
  std::optional<double> of_ttft_p99 = {};
  std::optional<Distribution> ttft_ns = {}, of_ttft_millionths = {};
  friend bool operator==(const KvReplayed&, const KvReplayed&) = default;
};

// The workload of a KV row: docs/kv-bench.md.
struct KvWorkload {
  std::string model = {};
  std::uint32_t tokens = 0;
  std::uint32_t source_block = 0, destination_block = 0;  // tokens; 0: the model's block size
  std::uint32_t source_tp = 1, destination_tp = 1;
  std::string order = {}, arrangement = {};
  bool bulk = false;  // each request is one block: the ceiling of paged rows
  std::uint32_t trial = 0, trials = 1, table_sets = 1;
  std::uint64_t pool_bytes = 0;             // of the larger pool
  std::uint64_t descriptors = 0, runs = 0;  // of a burst: pages, and ops after coalescing
  std::uint64_t checked_words = 0;
  std::optional<double> of_bulk = {};     // rate at p50 divided by that of this trial's bulk row
  std::optional<KvReplayed> replay = {};  // only of a trace's row
  friend bool operator==(const KvWorkload&, const KvWorkload&) = default;
};

struct BusyTime {
  double seconds = 0, of_seconds = 0;
  friend bool operator==(const BusyTime&, const BusyTime&) = default;
};

// A stage of a pipeline in one of its rows: docs/pipeline.md.
struct StageResult {
  std::string name = {};               // "load"
  std::string route = {};              // "file:/a -> host"
  std::string path = {};               // "file/uring"
  std::vector<double> gb_per_s = {};   // of each round
  std::vector<double> busy = {};       // part of each round in which the stage had work
  std::vector<TimedBytes> moved = {};  // in each round
  std::vector<BusyTime> worked = {};
  friend bool operator==(const StageResult&, const StageResult&) = default;
};

enum class StagesRun : std::uint8_t {
  kAlone,     // one stage, while nothing else runs
  kTogether,  // all stages at once, each with its own memory
  kWhole,     // one transfer through all stages
};
inline constexpr base::Words<StagesRun, 3> kStagesRuns{{{"alone", StagesRun::kAlone},
                                                        {"together", StagesRun::kTogether},
                                                        {"whole", StagesRun::kWhole}}};

// A row of a pipeline. The rounds of a pipeline's rows take turns.
struct PipelineRow {
  std::string pipeline = {};  // as the user wrote it
  StagesRun run = StagesRun::kAlone;
  std::uint32_t rows = 1;  // number of rows of this pipeline
  std::vector<StageResult> stages = {};
  friend bool operator==(const PipelineRow&, const PipelineRow&) = default;
};

inline constexpr auto kOneCallABlock = "one call a block";  // the baseline's SwapRow::way

// Copies of many small blocks between host memory and a GPU: docs/bench-gpu.md.
struct SwapRow {
  std::string direction = {};     // "in", "out"
  std::string order = {};         // "contiguous", "random"
  std::string way = {};           // "viaduct", "one call a block"
  std::string gpu = {};           // "GPU 0 (NVIDIA H100)"
  std::uint64_t guard_bytes = 0;  // checked bytes outside of the blocks, of both memories
  friend bool operator==(const SwapRow&, const SwapRow&) = default;
};

// Copies between two memories of one host: docs/bench-gpu.md.
struct MatrixRow {
  std::string from = {}, to = {};  // "host", "GPU 0"
  std::uint32_t processes = 1;     // 1: one process has both ends
  std::string figure = {};         // "rate", "latency"
  std::string way = {};            // "cuda/direct, copy engine, peer access"
  friend bool operator==(const MatrixRow&, const MatrixRow&) = default;
};

struct Row {
  std::string run = {};  // a random id, the same in all rows of one run of a command
  std::string backend = {};
  OpKind op = OpKind::kWrite;
  std::string scheme = "pairwise";
  std::uint64_t block_size = 0;
  std::uint32_t batch_size = 1;
  std::uint32_t threads = 1, pipeline_depth = 1, initiators = 1, targets = 1;
  bool bidirectional = false;
  std::string memory = {};
  // How GPUs copied the bytes: "kernel", "copy engine", "kernel and copy engine"; empty: none did.
  std::string copied_by = {};
  std::string heat = {};  // "hot": repeats the same blocks; "cold": does not

  // Figures. A missing one was not measured.
  std::uint64_t iterations = 0;         // timed transfers of all initiators together
  double seconds = 0;                   // duration of the timed transfers
  std::optional<double> gb_per_s = {};  // of all pairs together: the median of parts or repeats
  std::vector<double> gb_per_s_parts = {};
  std::optional<double> gb_per_s_spread = {};
  std::optional<Latency> latency_us = {};
  std::optional<MeanP99> prep_us = {}, post_us = {}, tx_us = {};
  std::optional<double> cpu_s_per_gb = {};
  std::optional<CpuSeconds> cpu_s = {};
  // Average number of busy cores during the row: of all processes of the benchmark, and of all
  // other programs on their hosts.
  std::optional<double> cores_busy = {}, cores_others = {};
  std::optional<double> completions_per_s = {};
  std::optional<OpenLoop> rate = {};
  std::optional<BackgroundTraffic> background = {};
  std::vector<PairResult> pairs = {};
  std::vector<DeviceResult> devices = {};  // only of rows with several GPUs
  std::optional<Scaling> scaling = {};
  // The row's kind of workload. monostate: plain blocks between memory and memory or storage.
  std::variant<std::monostate, Operation, KvWorkload, PipelineRow, SwapRow, MatrixRow> kind = {};
  std::vector<RateInterval> intervals = {};     // if the user asked for intervals
  std::optional<Interrupted> interrupted = {};  // a stop request ended the row early

  std::uint64_t transfers = 0;  // transfers that the path counts, timed or not
  std::vector<ProvenShare> path = {};
  std::string proof = {};  // how `path` was proven, as one line for people
  std::optional<Ceiling> ceiling = {};
  std::string ceiling_unknown = {};  // a limit on the path that could not be measured, and why
  Verified verified = Verified::kOff;
  std::optional<Checks> checks = {};
  Verdict verdict = Verdict::kOk;
  std::string why = {};     // the reason, unless the verdict is ok
  std::string remark = {};  // other facts that explain the figures
  std::vector<SlowCause> causes = {};
  // The figures above follow from these counts. Missing: another tool measured the row, or the row
  // failed.
  std::optional<RowCounts> counts = {};

  // Returns the row's workload, or null if the row is of another kind.
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&kind);
  }
  template <class Kind>
  Kind* as() {
    return std::get_if<Kind>(&kind);
  }
  friend bool operator==(const Row&, const Row&) = default;
};

// "load alone", "all stages together", "the pipeline".
std::string stagesText(const PipelineRow& row);
// Describes the row's kind: "Llama-3.1-8B, 8192 tokens, ...", "in random, viaduct". Empty for rows
// of plain blocks, and for patterns, whose name is in Row::scheme.
std::string kindText(const Row& row);
// Returns the size that the user chose: the block size, or the size of a pattern's operation.
std::uint64_t chosenSize(const Row& row);
// Return nothing below 100 (p99) or 1,000 (p99.9) transfers: too few for that quantile. A row with
// an unknown number of transfers, from another tool, has both.
std::optional<double> p99Of(const Row& row);
std::optional<double> p999Of(const Row& row);
// The payload at the median latency, in 10^9 bytes a second.
std::optional<double> rateAtP50(const Row& row);
// Sets KvWorkload::of_bulk of each paged KV row.
void addSharesOfBulk(std::vector<Row>& rows);
// True if an end of the row is GPU memory.
bool usesGpu(const Row& row);

}  // namespace viaduct::measure
