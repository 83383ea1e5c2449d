// What a measurement found for one backend, block size and batch. docs/results.md says what each
// field means. Threads: plain values.
#pragma once

#include <viaduct/path.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"

namespace viaduct::measure {

enum class Verdict : std::uint8_t {
  kOk,
  kInvalid,      // cannot be true: above its ceiling
  kFallback,     // not the path that its name says
  kSilentRail,   // a rail that was to carry its share carried nothing
  kNotRequired,  // a path was required and not taken
  kCorrupt,      // moved, but what arrived is not what was sent
  kUnproven,     // nobody could look which path it was
  kFailed,       // could not be measured
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
// Whether the row can be used: the exit code of a run is 0 only when all of its rows can.
bool isGood(Verdict verdict);

enum class Proven : std::uint8_t { kUnproven, kYes, kNo };
inline constexpr base::Words<Proven, 3> kProvens{
    {{"yes", Proven::kYes}, {"no", Proven::kNo}, {"unproven", Proven::kUnproven}}};
constexpr const char* provenName(Proven proven) { return base::wordOf(kProvens, proven); }

enum class Verified : std::uint8_t { kOff, kSampled, kFull };
inline constexpr base::Words<Verified, 3> kVerifieds{
    {{"full", Verified::kFull}, {"sampled", Verified::kSampled}, {"off", Verified::kOff}}};
constexpr const char* verifiedName(Verified verified) { return base::wordOf(kVerifieds, verified); }

// Of one transfer, from its intended start until its bytes are visible at the other end; in
// microseconds.
struct Latency {
  double mean = 0, p50 = 0;
  std::optional<double> p90 = {}, p95 = {};  // other tools have none
  double p99 = 0, p99_9 = 0, max = 0;
  friend bool operator==(const Latency&, const Latency&) = default;
};

struct MeanP99 {  // microseconds
  double mean = 0, p99 = 0;
  friend bool operator==(const MeanP99&, const MeanP99&) = default;
};

// What one rail carried, and who says so.
struct ProvenShare {
  std::string backend = {};
  std::string way = {};
  std::string device = {};
  std::uint64_t bytes = 0;
  std::uint64_t ops = 0;
  Proven proven = Proven::kUnproven;
  std::uint64_t injected = 0, batches = 0;  // 0: not counted there
  friend bool operator==(const ProvenShare&, const ProvenShare&) = default;
};
// As a transfer says it: nobody has looked yet.
std::vector<ProvenShare> unproven(const Path& path);

struct Ceiling {  // what binds
  std::string name = {};
  double gb_per_s = 0;
  double percent = 0;  // of it that was reached
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

// A stretch of a row that is still going on: seconds of timed transfers.
struct RateInterval {
  double start = 0, end = 0, gb_per_s = 0;
  friend bool operator==(const RateInterval&, const RateInterval&) = default;
};

// How long a row was to take that was ended early: by one of the two.
struct Interrupted {
  std::uint64_t of_transfers = 0;
  double of_seconds = 0;
  friend bool operator==(const Interrupted&, const Interrupted&) = default;
};

struct PairResult {
  std::uint32_t initiator = 0, target = 0;  // ranks
  std::optional<double> gb_per_s = {};
  std::optional<Latency> latency_us = {};
  friend bool operator==(const PairResult&, const PairResult&) = default;
};

// Transfers whose contents were looked at.
struct Checks {
  std::uint64_t transfers = 0;
  // The smallest part of transfers whose skipping they show in 999 rows of 1,000. 0: any, since
  // every transfer was checked.
  double smallest_caught = 1;
  friend bool operator==(const Checks&, const Checks&) = default;
};

struct Row {
  std::string backend = {};
  OpKind op = OpKind::kWrite;
  std::string scheme = "pairwise";
  std::uint64_t block_size = 0;
  std::uint32_t batch_size = 1;
  std::uint32_t threads = 1, pipeline_depth = 1, initiators = 1, targets = 1;
  bool bidirectional = false;
  std::string memory = {};
  std::string heat = {};  // "hot": the same blocks again and again; "cold"

  // Figures: one that was not measured is not there.
  std::uint64_t iterations = 0;         // transfers that were timed, of all initiators together
  double seconds = 0;                   // that they took
  std::optional<double> gb_per_s = {};  // of all pairs together: the median of the parts
  std::vector<double> gb_per_s_parts = {};
  std::optional<double> gb_per_s_spread = {};
  std::optional<Latency> latency_us = {};
  std::optional<MeanP99> prep_us = {}, post_us = {}, tx_us = {};
  std::optional<double> cpu_s_per_gb = {};
  std::optional<CpuSeconds> cpu_s = {};
  // While the row lasted: by all processes of the benchmark, and by whatever else ran on their
  // hosts.
  std::optional<double> cores_busy = {}, cores_others = {};
  std::optional<double> completions_per_s = {};
  std::optional<OpenLoop> rate = {};
  std::vector<PairResult> pairs = {};
  std::vector<RateInterval> intervals = {};     // where they were asked for
  std::optional<Interrupted> interrupted = {};  // Ctrl-C ended the row before it was complete

  std::uint64_t transfers = 0;  // that the path counts: timed ones, and spot checks among them
  std::vector<ProvenShare> path = {};
  std::string proof = {};  // how `path` was proven: one line for people
  std::optional<Ceiling> ceiling = {};
  Verified verified = Verified::kOff;
  std::optional<Checks> checks = {};
  Verdict verdict = Verdict::kOk;
  std::string why = {};     // when not ok
  std::string remark = {};  // what a reader of the figures has to know besides
  friend bool operator==(const Row&, const Row&) = default;
};

}  // namespace viaduct::measure
