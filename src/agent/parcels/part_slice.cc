#include "agent/parcels/part_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/session/lease_ticket.h"
#include "core/byte_ranges.h"
#include "core/disjoint_blocks.h"

namespace viaduct::agent {
namespace {

Error bad(ParcelPart part, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = fmt::format("fetch part {} of rank {}", part.component, part.rank),
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

// The blocks of a part, and the offset of each in the part, with the end.
struct PartBlocks {
  std::vector<std::uint64_t> addresses = {}, offsets = {0};
  std::uint64_t each = 0;  // the size of every block, if all have the same

  std::size_t at(std::uint64_t offset) const {
    if (each != 0) return offset / each;
    return static_cast<std::size_t>(std::ranges::upper_bound(offsets, offset) - offsets.begin() -
                                    1);
  }
};

// Calls `visit(extent)` for each block, which is quicker than to index each.
template <class Visit>
void forEachBlock(const Blocks& blocks, const Visit& visit) {
  for (std::size_t number = 0; number < blocks.runs(); ++number) {
    const Run run = blocks.run(number);
    for (std::uint64_t i = 0; i < run.count; ++i)
      visit(Extent{run.base + i * run.stride, run.bytes});
  }
}

PartBlocks blocksOf(const Blocks& part) {
  PartBlocks out{.each = part.blockBytes()};
  out.addresses.reserve(part.count());
  out.offsets.reserve(part.count() + 1);
  forEachBlock(part, [&](const Extent& block) {
    out.addresses.push_back(block.address);
    out.offsets.push_back(out.offsets.back() + block.bytes);
  });
  return out;
}

Status checkHave(const PartInto& into, std::uint64_t blocks) {
  if (into.have.empty() || into.have.size() == blocks) return Ok{};
  return bad(into.part,
             fmt::format("{} digests of what is here, for {} blocks", into.have.size(), blocks),
             "give one digest for each block, or none");
}

Status checkSameBlocks(const Blocks& part, const Blocks& here, const PartInto& into) {
  bool same = into.slice.count() == 0 && here.count() == part.count();
  for (std::uint64_t i = 0; same && i < part.count(); ++i) same = here[i].bytes == part[i].bytes;
  if (same) return Ok{};
  return bad(into.part,
             fmt::format("the part has digests of {} blocks, and the memory here has {} blocks",
                         part.count(), here.count()),
             "take whole parts into blocks of the publisher's sizes, or publish without digests");
}

// Makes blocks of these extents. Skips the search for overlaps if all have one size: neither a
// slice nor a part has a byte twice.
Result<Blocks> apartBlocks(const std::vector<Extent>& extents) {
  const std::uint64_t bytes = extents.front().bytes;
  if (!std::ranges::all_of(extents, [&](const Extent& one) { return one.bytes == bytes; }))
    return Blocks::list(extents);
  std::vector<std::uint64_t> addresses;
  addresses.reserve(extents.size());
  for (const Extent& one : extents) addresses.push_back(one.address);
  return core::DisjointBlocks::at(std::move(addresses), bytes);
}

// Fails if a fetch would write a byte here twice.
Status checkApart(const std::vector<PartInto>& into) {
  std::vector<Extent> extents;
  std::set<ParcelPart> parts;
  for (const PartInto& one : into) {
    if (!parts.insert(one.part).second)
      return bad(one.part, "it is taken twice",
                 "take each part once; a slice may have many ranges");
    VIADUCT_TRY(const TakenBlocks here, takenBlocks(one.into));
    VIADUCT_CHECK(checkHave(one, here.blocks.count()));
    extents.insert(extents.end(), here.ranges.begin(), here.ranges.end());
  }
  if (auto apart = Blocks::list(extents); !apart && !extents.empty())
    return bad(into.back().part, fmt::format("memory for parts overlaps: {}", apart.error().detail),
               "give each part memory of its own");
  return Ok{};
}

}  // namespace

Result<PartInto> intoOf(const FetchOptions& options, const PartOffer& offer) {
  const auto found = std::ranges::find(options.into, offer.part, &PartInto::part);
  if (found != options.into.end()) return *found;
  VIADUCT_TRY(PartInto into, options.place(offer));
  into.part = offer.part;
  return into;
}

Result<Blocks> sliceOf(const Blocks& part, const Blocks& slice) {
  if (slice.count() == 0) return part;
  const PartBlocks blocks = blocksOf(part);
  std::vector<Extent> out;
  out.reserve(slice.count());
  std::optional<Extent> outside;
  forEachBlock(slice, [&](const Extent& wanted) {
    if (wanted.address > part.bytes() || wanted.bytes > part.bytes() - wanted.address) {
      outside = wanted;
      return;
    }
    std::size_t block = blocks.at(wanted.address);
    for (std::uint64_t at = wanted.address; at < core::endOf(wanted); ++block) {
      const std::uint64_t bytes = std::min(blocks.offsets[block + 1], core::endOf(wanted)) - at;
      out.push_back({blocks.addresses[block] + (at - blocks.offsets[block]), bytes});
      at += bytes;
    }
  });
  if (outside)
    return Error{.code = Code::kInvalid,
                 .operation = "fetch",
                 .detail = fmt::format("the slice has bytes {} to {} of a part of {} bytes",
                                       outside->address, core::endOf(*outside), part.bytes()),
                 .remedy = "give offsets within the part"};
  return apartBlocks(out);
}

Result<PartCopy> copyOf(const Blocks& part, std::vector<Digest> digests, PartInto into) {
  if (digests.empty()) {
    VIADUCT_TRY(Blocks there, sliceOf(part, into.slice));
    return PartCopy{.here = std::move(into.into), .there = {.blocks = std::move(there)}};
  }
  VIADUCT_TRY(TakenBlocks taken, takenBlocks(into.into));
  Blocks& here = taken.blocks;
  VIADUCT_CHECK(checkSameBlocks(part, here, into));
  VIADUCT_CHECK(checkHave(into, here.count()));
  if (digests.size() != part.count())
    return bad(into.part,
               fmt::format("{} digests came for {} blocks", digests.size(), part.count()),
               "the publisher breaks the rules of parcels, or runs another version");
  if (into.have.empty()) return PartCopy{{std::move(here), {}}, {part, {}}, std::move(digests)};
  PartCopy out;
  for (std::uint32_t i = 0; i < digests.size(); ++i)
    if (digests[i] != into.have[i]) {
      out.there.indices.push_back(i);
      out.digests.push_back(digests[i]);
    }
  if (out.digests.empty()) return out;
  out.here = {std::move(here), out.there.indices};
  out.there.blocks = part;
  return out;
}

Status checkFetch(const std::string& name, const FetchOptions& options) {
  const ParcelGroup& group = options.group;
  const auto invalid = [&](std::string detail, std::string remedy) -> Status {
    return Error{.code = Code::kInvalid,
                 .operation = fmt::format("fetch parcel {}", name),
                 .detail = std::move(detail),
                 .remedy = std::move(remedy)};
  };
  if (name.empty() || name.size() > kMaxParcelName || group.name.size() > kMaxParcelName)
    return invalid("the name of the parcel is empty, or a name is too long",
                   fmt::format("give names of at most {} bytes", kMaxParcelName));
  if (group.size > kMaxParcelParts || group.rank >= group.size || group.at_least > group.size)
    return invalid(fmt::format("rank {} of a group of {}, which may shrink to {}", group.rank,
                               group.size, group.at_least),
                   fmt::format("give ranks from 0 on, and at most {}", kMaxParcelParts));
  if (group.size > 1 && group.name.empty())
    return invalid(fmt::format("a group of {} ranks has no name", group.size),
                   "give all its ranks one name");
  if (options.into.empty() && !options.place)
    return invalid("it has no memory", "set `into` or `place`");
  if (options.into.size() > kMaxParcelParts)
    return invalid(fmt::format("{} parts", options.into.size()),
                   fmt::format("a parcel has at most {}", kMaxParcelParts));
  return checkApart(options.into);
}

}  // namespace viaduct::agent
