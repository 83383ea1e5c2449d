#include "agent/session/lease_ticket.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "agent/session/hello.h"
#include "base/fields.h"
#include "base/net/checked_blob.h"
#include "core/byte_ranges.h"
#include "core/disjoint_blocks.h"

namespace viaduct::agent {
namespace {

constexpr base::BlobKind kTicket{.magic = "VIADLEAS",
                                 .version = 1,
                                 .name = "ticket of a lease",
                                 .maker = "Lease::ticket()",
                                 .taker = "borrow"};

// The fields before the blocks.
auto headOf(auto& t) {
  return base::list(base::line(kMaxNameBytes, t.owner), base::line(kMaxNameBytes, t.borrower),
                    t.owner_id, t.borrower_id, t.epoch, t.number,
                    base::atMost(MemoryAccess::kReadOnly, t.access));
}

// A signed distance as a number that is small if the distance is.
std::uint64_t folded(std::uint64_t distance) { return (distance << 1U) ^ (0 - (distance >> 63U)); }
std::uint64_t unfolded(std::uint64_t number) { return (number >> 1U) ^ (0 - (number & 1U)); }

// Encodes each run by its distance from the end of the run before.
void putRuns(base::Writer& out, const Blocks& blocks) {
  out.varints(blocks.runs());
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < blocks.runs(); ++i) {
    const Run run = blocks.run(i);
    out.varints(folded(run.base - end), run.bytes, run.count);
    if (run.count > 1) out.varints(run.stride);
    end = run.base + (run.count - 1) * run.stride + run.bytes;
  }
}

std::vector<Run> getRuns(base::Reader& in) {
  std::vector<Run> runs;
  std::uint64_t end = 0;
  for (auto left = in.varint(); left > 0 && in.ok(); --left) {
    Run run{.base = end + unfolded(in.varint()),
            .stride = 0,
            .bytes = in.varint(),
            .count = in.varint()};
    run.stride = run.count > 1 ? in.varint() : run.bytes;
    end = run.base + (run.count - 1) * run.stride + run.bytes;
    runs.push_back(run);
  }
  return runs;
}

// Appends a block to a list of runs.
void append(std::vector<Run>& runs, const Extent& block) {
  Run* const last = runs.empty() ? nullptr : &runs.back();
  if (last != nullptr && last->bytes == block.bytes && block.address > last->base) {
    const std::uint64_t distance = block.address - last->base;
    if (last->count == 1 && distance >= block.bytes) last->stride = distance;
    if (distance == last->count * last->stride) {
      ++last->count;
      return;
    }
  }
  runs.push_back({block.address, block.bytes, block.bytes, 1});
}

// Nothing if a run is impossible, there are too many blocks, or two share a byte. Unlike
// Blocks::of(), its time depends on the number of blocks alone, not on their places.
std::optional<TakenBlocks> blocksOf(std::vector<Run> runs) {
  std::uint64_t count = 0;
  for (const Run& run : runs) {
    if (!core::DisjointBlocks::valid(run) || run.count > kMaxLeaseBlocks) return std::nullopt;
    count += run.count;
    if (count > kMaxLeaseBlocks) return std::nullopt;
  }
  Blocks blocks = core::DisjointBlocks::of(std::move(runs));
  auto ranges = core::rangesOf(blocks);
  if (!ranges) return std::nullopt;
  return TakenBlocks{std::move(blocks), *std::move(ranges)};
}

}  // namespace

base::Bytes LeaseTicket::encode() const {
  base::Writer body;
  std::apply([&](const auto&... parts) { base::Fields::put(body, parts...); }, headOf(*this));
  putRuns(body, blocks);
  return base::wrapBlob(kTicket, body.bytes());
}

Result<LeaseTicket> LeaseTicket::decode(std::span<const std::byte> blob) {
  VIADUCT_TRY(const auto body, base::unwrapBlob(kTicket, blob));
  base::Reader in(body);
  LeaseTicket ticket;
  std::apply([&](auto&&... parts) { base::Fields::get(in, parts...); }, headOf(ticket));
  auto runs = getRuns(in);
  if (!in.finished() || ticket.number == 0 || ticket.epoch == 0 || runs.empty())
    return base::corruptedBlob(kTicket,
                               fmt::format("the ticket's content: {}",
                                           in.finished() ? "beyond what is allowed" : in.fault()));
  auto lent = blocksOf(std::move(runs));
  if (!lent) return base::corruptedBlob(kTicket, "the ticket's blocks are impossible");
  ticket.blocks = std::move(lent->blocks);
  return ticket;
}

Result<TakenBlocks> takenBlocks(const Selection& selection) {
  const auto bad = [](std::string detail, std::string remedy) {
    return Error{.code = Code::kInvalid,
                 .operation = "lease",
                 .detail = std::move(detail),
                 .remedy = std::move(remedy)};
  };
  const Blocks& all = selection.blocks;
  const std::uint64_t count = selection.indices.empty() ? all.count() : selection.indices.size();
  if (count == 0 || count > kMaxLeaseBlocks)
    return bad(fmt::format("a lease of {} blocks; the limit is {}", count, kMaxLeaseBlocks),
               "lend at least one block, and many blocks with several leases");
  if (selection.indices.empty())
    // Blocks of a list never overlap.
    return TakenBlocks{all, *core::rangesOf(all)};
  std::vector<Run> runs;
  for (const std::uint32_t index : selection.indices) {
    if (index >= all.count())
      return bad(fmt::format("index {} of {} blocks", index, all.count()),
                 "use indices below the number of blocks");
    append(runs, all[index]);
  }
  auto taken = blocksOf(std::move(runs));
  if (!taken) return bad("an index is named twice", "name each block once");
  return *std::move(taken);
}

}  // namespace viaduct::agent
