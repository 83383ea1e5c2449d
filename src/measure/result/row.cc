#include "measure/result/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace viaduct::measure {
namespace {

// True for the paged and the bulk row of one trial.
bool sameKvPoint(const KvWorkload& a, const KvWorkload& b) {
  const auto key = [](const KvWorkload& kv) {
    return std::tie(kv.model, kv.tokens, kv.source_block, kv.destination_block, kv.source_tp,
                    kv.destination_tp, kv.order, kv.arrangement, kv.trial);
  };
  return key(a) == key(b);
}

std::string textOfKind(const std::monostate& /*blocks*/) { return {}; }
std::string textOfKind(const Operation& /*its scheme tells*/) { return {}; }
std::string textOfKind(const KvWorkload& kv) {
  if (kv.replay)
    return fmt::format("{}, replay at speed {:g}, block {}, TP {}, {}, {}", kv.model,
                       kv.replay->speed, kv.source_block, kv.source_tp, kv.order, kv.arrangement);
  return fmt::format("{}, {} tokens, block {} to {}, TP {} to {}, {}, {}", kv.model, kv.tokens,
                     kv.source_block, kv.destination_block, kv.source_tp, kv.destination_tp,
                     kv.order, kv.arrangement);
}
std::string textOfKind(const PipelineRow& row) {
  return fmt::format("{}, {}", row.pipeline, stagesText(row));
}
std::string textOfKind(const SwapRow& row) {
  return fmt::format("{} {}, {}", row.direction, row.order, row.way);
}
std::string textOfKind(const MatrixRow& row) {
  return fmt::format("{} to {}, {} of {}", row.from, row.to, row.figure,
                     row.processes == 1 ? "one process" : "two processes");
}

// 0 iterations: another program's log does not say how many transfers there were.
std::optional<double> ofEnough(const Row& row, double Latency::* which, std::uint64_t enough) {
  if (!row.latency_us || (row.iterations != 0 && row.iterations < enough)) return std::nullopt;
  return (*row.latency_us).*which;
}

// The bulk row of the paged row's trial. Null: there is none.
const Row* bulkOf(const Row& paged, const std::vector<Row>& rows) {
  const auto at = std::ranges::find_if(rows, [&](const Row& row) {
    const auto* const kv = row.as<KvWorkload>();
    if (kv == nullptr || !kv->bulk || row.backend != paged.backend || row.op != paged.op)
      return false;
    return row.batch_size == paged.batch_size && sameKvPoint(*kv, *paged.as<KvWorkload>());
  });
  return at == rows.end() ? nullptr : &*at;
}

}  // namespace

std::string stagesText(const PipelineRow& row) {
  if (row.run == StagesRun::kWhole) return "the pipeline";
  if (row.run == StagesRun::kTogether) return "all stages together";
  return fmt::format("{} alone", row.stages.empty() ? "a stage" : row.stages.front().name);
}

std::string kindText(const Row& row) {
  return std::visit([](const auto& kind) { return textOfKind(kind); }, row.kind);
}

std::uint64_t chosenSize(const Row& row) {
  const auto* const operation = row.as<Operation>();
  return operation == nullptr ? row.block_size : operation->size;
}

bool isGood(Verdict verdict) { return verdict == Verdict::kOk || verdict == Verdict::kUnproven; }

std::optional<double> p99Of(const Row& row) { return ofEnough(row, &Latency::p99, 100); }
std::optional<double> p999Of(const Row& row) { return ofEnough(row, &Latency::p99_9, 1'000); }

std::optional<double> rateAtP50(const Row& row) {
  if (!row.latency_us || row.latency_us->p50 <= 0) return std::nullopt;
  return static_cast<double>(row.block_size) * row.batch_size / (row.latency_us->p50 * 1e3);
}

void addSharesOfBulk(std::vector<Row>& rows) {
  for (Row& row : rows) {
    auto* const kv = row.as<KvWorkload>();
    if (kv == nullptr || kv->bulk) continue;
    const Row* const bulk = bulkOf(row, rows);
    const auto here = rateAtP50(row), there = bulk == nullptr ? std::nullopt : rateAtP50(*bulk);
    if (here && there) kv->of_bulk = *here / *there;
  }
}

bool usesGpu(const Row& row) { return row.memory.find("VRAM") != std::string::npos; }

std::vector<ProvenShare> unproven(const Path& path) {
  std::vector<ProvenShare> out;
  out.reserve(path.shares.size());
  for (const PathShare& s : path.shares)
    out.push_back({s.backend, s.way, s.rail, s.bytes, s.ops, Proven::kUnproven, s.injected,
                   s.batches, s.stage, s.by_kernel});
  return out;
}

}  // namespace viaduct::measure
