#include "move/staging/staging_chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "move/staging/staging_message.h"

namespace viaduct::move {
namespace {

constexpr std::uint64_t kPage = 4096;

// The first offset from `from` on that equals `address` modulo the page size.
std::uint64_t placeFor(std::uint64_t from, std::uint64_t address) {
  return from + ((address - from) & (kPage - 1));
}

// The rest of the op at `at`.
core::Op restOf(std::span<const core::Op> ops, const OpCursor& at) {
  core::Op rest = ops[at.op];
  rest.local += at.into;
  rest.remote += at.into;
  rest.bytes -= at.into;
  return rest;
}

void add(ChunkPlan& plan, const core::Op& part, std::uint64_t place) {
  plan.pieces.push_back({.op = part, .place = place});
  plan.bytes += part.bytes;
  plan.used = place + part.bytes;
}

// Adds the rest of the op at `at`, or as much of it as the chunk has room for.
void addRest(ChunkPlan& plan, std::span<const core::Op> ops, OpCursor& at,
             std::uint64_t chunk_bytes) {
  core::Op part = restOf(ops, at);
  const std::uint64_t most = chunk_bytes - plan.used;
  if (part.bytes > most) {
    part.bytes = most;
    at.into += most;
  } else {
    ++at.op;
    at.into = 0;
  }
  add(plan, part, plan.used);
}

}  // namespace

ChunkPlan fillChunk(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes,
                    OpEnd storage) {
  ChunkPlan plan;
  while (at.op < ops.size() && plan.pieces.size() < kMostPieces) {
    core::Op part = restOf(ops, at);
    const std::uint64_t place = placeFor(plan.used, addressAt(part, storage));
    if (place >= chunk_bytes) break;
    const bool whole = part.bytes <= chunk_bytes - place;
    // A block that fits into one chunk is not cut: storage is fastest with whole blocks.
    if (!whole && !plan.pieces.empty() && part.bytes <= chunk_bytes - kPage) break;
    part.bytes = std::min(part.bytes, chunk_bytes - place);
    add(plan, part, place);
    if (!whole) {
      at.into += part.bytes;
      break;
    }
    ++at.op;
    at.into = 0;
  }
  return plan;
}

ChunkPlan packPieces(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes) {
  ChunkPlan plan;
  while (at.op < ops.size() && plan.pieces.size() < kMostPieces && plan.used != chunk_bytes)
    addRest(plan, ops, at, chunk_bytes);
  return plan;
}

ChunkPlan packChunk(std::span<const core::Op> ops, OpCursor& at, std::uint64_t chunk_bytes,
                    OpEnd end) {
  ChunkPlan plan;
  const std::uint32_t pin = pinAt(ops[at.op], end);
  while (at.op < ops.size() && pinAt(ops[at.op], end) == pin && plan.used != chunk_bytes)
    addRest(plan, ops, at, chunk_bytes);
  return plan;
}

Result<std::vector<core::Op>> sortForObjects(
    std::span<const core::Op> ops, OpEnd end,
    const std::function<const PinInfo*(std::uint32_t slot)>& pin) {
  std::vector<core::Op> sorted(ops.begin(), ops.end());
  std::ranges::sort(sorted, {}, [end](const core::Op& op) {
    return std::pair(pinAt(op, end), addressAt(op, end));
  });
  for (std::size_t i = 0; i < sorted.size();) {
    const std::uint32_t slot = pinAt(sorted[i], end);
    const PinInfo* const target = pin(slot);
    if (target == nullptr)
      return Error{.code = Code::kDenied, .operation = "staging", .detail = "the pin was released"};
    std::uint64_t covered = target->address;
    for (; i < sorted.size() && pinAt(sorted[i], end) == slot; ++i)
      if (addressAt(sorted[i], end) == covered) covered += sorted[i].bytes;
    if (target->kind == MemoryKind::kObject && covered != target->address + target->bytes)
      return Error{.code = Code::kUnsupported,
                   .operation = "staging",
                   .detail = fmt::format("the transfer writes a part of the {} bytes of an object",
                                         target->bytes),
                   .cause = "S3 has no call that changes a part of an object",
                   .remedy = "write all bytes of the pin in one transfer"};
  }
  return sorted;
}

core::OpList listOf(std::vector<core::Op> ops) {
  core::OpList list;
  list.ops = std::move(ops);
  for (const core::Op& op : list.ops) {
    list.bytes += op.bytes;
    if (list.spans.empty() || list.spans.back().local_pin != op.local_pin ||
        list.spans.back().remote_pin != op.remote_pin)
      list.spans.push_back({.local_pin = op.local_pin, .remote_pin = op.remote_pin});
    ++list.spans.back().ops;
  }
  return list;
}

}  // namespace viaduct::move
