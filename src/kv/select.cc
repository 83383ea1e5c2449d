// Takes blocks of a plan: KvReshard::select.
#include <fmt/format.h>
#include <viaduct/kv.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "core/disjoint_blocks.h"
#include "core/find_twice.h"
#include "kv/layout.h"
#include "kv/reshard_table.h"

namespace viaduct::kv {
namespace {

constexpr auto kSelecting = "KV select";
constexpr std::uint64_t kMaxPieces = std::uint64_t{1} << 32U;

// The tokens to move in a group, counted in chunks.
struct Chunks {
  std::uint64_t first = 0, count = 0;
};

Status checkIds(const Indices& ids, const Pool& pool, const std::string& field) {
  const auto out = std::find_if(ids.begin(), ids.end(), [&](auto id) { return id >= pool.blocks; });
  if (out != ids.end())
    return bad(kSelecting,
               fmt::format("{}[{}] is {}, out of range", field, out - ids.begin(), *out),
               fmt::format("the pool has {} blocks, numbered from 0", pool.blocks));
  if (const auto twice = core::findTwice(ids, pool.blocks))
    return bad(kSelecting, fmt::format("{} names block {} twice", field, *twice),
               "name each block once");
  return Ok{};
}

Status checkFirst(const GroupPlan& plan, const KvBlocks& blocks, std::size_t number) {
  const std::uint64_t first = blocks.first_token;
  const std::uint32_t a = plan.source.block_tokens, b = plan.destination.block_tokens;
  if (first % a == 0 || first % b == 0) return Ok{};
  return bad(
      kSelecting,
      fmt::format("groups[{}].first_token is {}, inside a block of both ends", number, first),
      fmt::format("the nearest one is {}", std::max(first / a * a, first / b * b)));
}

// The chunks that both ends have. Each named block has at least one of them.
Result<Chunks> chunksOf(const GroupPlan& plan, const KvBlocks& blocks, std::size_t number) {
  VIADUCT_CHECK(checkFirst(plan, blocks, number));
  const std::uint64_t first = blocks.first_token / plan.chunk_tokens;
  const std::uint64_t a = plan.source.block_tokens / plan.chunk_tokens;
  const std::uint64_t b = plan.destination.block_tokens / plan.chunk_tokens;
  const std::uint64_t have = blocks.source.size() * a, room = blocks.destination.size() * b;
  if (have == 0 && room == 0) return Chunks{};
  const std::uint64_t count =
      have == 0 || room == 0 ? 0 : std::min(have - first % a, room - first % b);
  const auto used = [&](std::uint64_t each) {
    return count == 0 ? 0 : (first % each + count + each - 1) / each;
  };
  if (used(a) == blocks.source.size() && used(b) == blocks.destination.size())
    return Chunks{first, count};
  return bad(
      kSelecting,
      fmt::format("groups[{}] names {} source blocks of {} tokens and {} destination blocks "
                  "of {}, from token {}",
                  number, blocks.source.size(), plan.source.block_tokens, blocks.destination.size(),
                  plan.destination.block_tokens, blocks.first_token),
      "name the blocks of the same tokens at both ends");
}

// Appends runs of pieces, each relative to the page of block 0. Merges runs that continue.
void appendPieces(const Page& page, std::uint64_t bytes, const Indices& ids, std::uint64_t first,
                  std::uint64_t count, std::vector<Run>& out) {
  for (const std::uint32_t id : ids) {
    const std::uint64_t taken = std::min(page.pieces - first, count);
    const std::uint64_t base = id * page.block_stride + first * page.step;
    if (!out.empty() && out.back().base + out.back().count * page.step == base)
      out.back().count += taken;
    else
      out.push_back({base, page.step, bytes, taken});
    count -= taken;
    first = 0;
  }
}

// One end of a part: the runs of the pieces of one page of each block, and the first pieces of all
// pages of block 0.
struct Pieces {
  std::vector<Run> runs = {};
  std::vector<std::uint64_t> origins = {};
  std::uint64_t bytes = 0, count = 0;  // bytes of a piece; pieces in all runs
};

// Appends the items once for each origin, and adds the origin to their addresses. Copying first and
// adding in the cache is faster than writing each item alone.
template <class Item, class AddressOf>
void appendAtOrigins(const std::vector<Item>& items, std::span<const std::uint64_t> origins,
                     std::vector<Item>& out, AddressOf address_of) {
  for (const std::uint64_t origin : origins) {
    const std::size_t before = out.size();
    out.insert(out.end(), items.begin(), items.end());
    for (std::size_t i = before; i < out.size(); ++i) address_of(out[i]) += origin;
  }
}

class Side {
 public:
  void add(const Page& page, std::uint64_t bytes, const Indices& ids, std::uint64_t first,
           std::uint64_t count, std::vector<std::uint64_t> origins) {
    Pieces pieces{.origins = std::move(origins), .bytes = bytes, .count = count};
    appendPieces(page, bytes, ids, first, count, pieces.runs);
    runs_ += pieces.runs.size() * pieces.origins.size();
    pieces_ += count * pieces.origins.size();
    alike_ = alike_ && (parts_.empty() || parts_.back().bytes == bytes);
    parts_.push_back(std::move(pieces));
  }
  std::uint64_t pieces() const { return pieces_; }
  Blocks blocks() {
    // A run takes up to 40 bytes in a list, and an address 8.
    constexpr std::uint64_t kAddressesPerRun = 4;
    if (!alike_ || runs_ * kAddressesPerRun < pieces_ || pieces_ == 0) return runs();
    return parts_.size() == 1 ? repeated() : addresses();
  }

 private:
  Blocks runs() const {
    std::vector<Run> out;
    out.reserve(runs_);
    for (const Pieces& part : parts_)
      appendAtOrigins(part.runs, part.origins, out, [](Run& run) -> auto& { return run.base; });
    return core::DisjointBlocks::of(std::move(out));
  }
  // One part needs no list of all pieces.
  Blocks repeated() {
    Pieces& part = parts_.front();
    return core::DisjointBlocks::at(relative(part), part.bytes, std::move(part.origins));
  }
  Blocks addresses() const {
    std::vector<std::uint64_t> out;
    out.reserve(pieces_);
    for (const Pieces& part : parts_)
      appendAtOrigins(relative(part), part.origins, out,
                      [](std::uint64_t& at) -> auto& { return at; });
    return core::DisjointBlocks::at(std::move(out), parts_.front().bytes);
  }
  static std::vector<std::uint64_t> relative(const Pieces& part) {
    std::vector<std::uint64_t> out;
    out.reserve(part.count);
    for (const Run& run : part.runs)
      for (std::uint64_t i = 0; i < run.count; ++i) out.push_back(run.base + i * run.stride);
    return out;
  }

  std::vector<Pieces> parts_;
  std::uint64_t runs_ = 0, pieces_ = 0;
  bool alike_ = true;  // all pieces have one size
};

// Both ends of a selection, group after group.
struct Sides {
  Side source = {}, destination = {};

  void add(const GroupPlan& plan, const KvBlocks& blocks, const Chunks& chunks) {
    const std::uint64_t a = plan.source.block_tokens / plan.chunk_tokens;
    const std::uint64_t b = plan.destination.block_tokens / plan.chunk_tokens;
    for (const Part& part : plan.parts) {
      const std::uint64_t each = part.cut.source.pieces / a;  // pieces of a chunk
      source.add(part.cut.source, part.cut.bytes, blocks.source, chunks.first % a * each,
                 chunks.count * each, base::mapped(part.origins, &Origin::source));
      destination.add(part.cut.destination, part.cut.bytes, blocks.destination,
                      chunks.first % b * each, chunks.count * each,
                      base::mapped(part.origins, &Origin::destination));
    }
  }
};

}  // namespace
}  // namespace viaduct::kv

namespace viaduct {

Result<KvSelections> KvReshard::select(std::span<const KvBlocks> groups) const {
  if (table_ == nullptr || groups.size() != table_->groups.size())
    return kv::bad(kv::kSelecting,
                   fmt::format("blocks of {} groups are given, and the plan has {}", groups.size(),
                               table_ == nullptr ? 0 : table_->groups.size()),
                   "give a KvBlocks for each group, without blocks if nothing is moved");
  kv::Sides sides;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const kv::GroupPlan& plan = table_->groups[i];
    VIADUCT_CHECK(kv::checkIds(groups[i].source, plan.source, fmt::format("groups[{}].source", i)));
    VIADUCT_CHECK(kv::checkIds(groups[i].destination, plan.destination,
                               fmt::format("groups[{}].destination", i)));
    VIADUCT_TRY(const auto chunks, kv::chunksOf(plan, groups[i], i));
    if (chunks.count != 0) sides.add(plan, groups[i], chunks);
  }
  if (sides.source.pieces() > kv::kMaxPieces)
    return kv::bad(kv::kSelecting, "more than 2^32 pieces", "take fewer blocks at once");
  return KvSelections{.source = {.blocks = sides.source.blocks()},
                      .destination = {.blocks = sides.destination.blocks()}};
}

}  // namespace viaduct
