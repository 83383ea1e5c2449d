#include "measure/result/row.h"

namespace viaduct::measure {

bool isGood(Verdict verdict) { return verdict == Verdict::kOk || verdict == Verdict::kUnproven; }

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
