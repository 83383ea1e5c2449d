#include "measure/run/pipeline_memory.h"

#include <algorithm>
#include <cstring>
#include <span>

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

// Writes the mirror of a GPU's memory to the GPU.
Status Memories::push(const Buffer& memory) {
  return memory.mirror() == nullptr ? Ok{} : memory.mirror()->push(memory.bytes());
}

Status Memories::fill(const End& end, const Expected& contents) {
  Buffer* const memory = find(end);
  if (memory == nullptr) return Ok{};
  contents.fill(memory->bytes());
  return push(*memory);
}

Status Memories::clear(const End& end) {
  Buffer* const memory = find(end);
  if (memory == nullptr) return Ok{};
  std::memset(memory->bytes().data(), 0, memory->bytes().size());
  return push(*memory);
}

Result<std::optional<std::string>> Memories::mismatch(const End& end, const Expected& contents) {
  const Buffer& memory = *find(end);
  if (memory.mirror() != nullptr) VIADUCT_CHECK(memory.mirror()->pull(memory.bytes()));
  if (end.kind == End::Kind::kMemory) return contents.check(memory.bytes());
  return mismatchOfRing(memory.bytes(), contents);
}

std::optional<std::string> Memories::mismatchOfRing(std::span<const std::byte> ring,
                                                    const Expected& contents) const {
  const std::uint64_t count = chunks_.countOf(bytes_);
  for (std::uint64_t i = count - std::min(count, chunks_.ring_chunks); i < count; ++i) {
    const Chunk chunk = chunks_.chunk(bytes_, i);
    if (auto wrong = contents.check(ring.subspan(chunk.in_ring, chunk.bytes), i)) return wrong;
  }
  return std::nullopt;
}

}  // namespace viaduct::measure::pipeline
