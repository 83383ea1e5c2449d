#include "measure/run/pipeline_memory.h"

#include <algorithm>

#include "measure/workload/mirror.h"

namespace viaduct::measure::pipeline {

Result<Buffer::Kind> Memories::kindOf(const End& end) const {
  Buffer::Kind out = end.kind == End::Kind::kRing ? Buffer::Kind{} : kind_;
  if (!end.gpu) return out;
  out.huge_pages = false;
  VIADUCT_TRY(out.gpu, gpuOf(settings_, Mode::kMg, *end.gpu, 0));
  return out;
}

Status Memories::make(Agent& agent, const End& end, std::uint64_t bytes) {
  bytes_ = bytes;
  if (find(end) != nullptr) return Ok{};
  VIADUCT_TRY(const Buffer::Kind kind, kindOf(end));
  const std::uint64_t size = end.kind == End::Kind::kRing ? chunks_.ringBytes() : bytes;
  VIADUCT_TRY(Buffer memory, Buffer::make(agent, size, kind, end.label));
  all_.emplace(end.label, std::move(memory));
  return Ok{};
}

Buffer* Memories::find(const End& end) {
  const auto found = all_.find(end.label);
  return found == all_.end() ? nullptr : &found->second;
}

Status Memories::fill(const End& end, const Expected& contents) {
  Buffer* const memory = find(end);
  if (memory == nullptr) return Ok{};
  return contents.fill(memory->bytes(), 0, memory->mirror());
}

Status Memories::clear(const End& end) {
  Buffer* const memory = find(end);
  if (memory == nullptr) return Ok{};
  const CellList all = [&](const CellVisit& visit) {
    visit({.memory = memory->bytes()});
    return Wrong();
  };
  return Contents::clear(all, memory->mirror());
}

Result<Wrong> Memories::mismatch(const End& end, const Expected& contents) {
  const Buffer& memory = *find(end);
  if (end.kind == End::Kind::kMemory) return contents.verify(memory.bytes(), 0, memory.mirror());
  const std::uint64_t count = chunks_.countOf(bytes_);
  for (std::uint64_t i = count - std::min(count, chunks_.ring_chunks); i < count; ++i) {
    const Chunk chunk = chunks_.chunk(bytes_, i);
    const auto in_ring = memory.bytes().subspan(chunk.in_ring, chunk.bytes);
    VIADUCT_TRY(Wrong wrong, contents.verify(in_ring, i, memory.mirror()));
    if (wrong) return wrong;
  }
  return Wrong();
}

}  // namespace viaduct::measure::pipeline
