#include "measure/result/row.h"

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

}  // namespace

bool isGood(Verdict verdict) { return verdict == Verdict::kOk || verdict == Verdict::kUnproven; }

std::optional<double> rateAtP50(const Row& row) {
  if (!row.latency_us || row.latency_us->p50 <= 0) return std::nullopt;
  return static_cast<double>(row.block_size) * row.batch_size / (row.latency_us->p50 * 1e3);
}

void addSharesOfBulk(std::vector<Row>& rows) {
  const auto bulkOf = [&](const Row& paged) -> const Row* {
    const auto at = std::ranges::find_if(rows, [&](const Row& row) {
      if (!row.kv || !row.kv->bulk || row.backend != paged.backend || row.op != paged.op)
        return false;
      return row.batch_size == paged.batch_size && sameKvPoint(*row.kv, *paged.kv);
    });
    return at == rows.end() ? nullptr : &*at;
  };
  for (Row& row : rows) {
    if (!row.kv || row.kv->bulk) continue;
    const Row* const bulk = bulkOf(row);
    const auto here = rateAtP50(row), there = bulk == nullptr ? std::nullopt : rateAtP50(*bulk);
    if (here && there) row.kv->of_bulk = *here / *there;
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
