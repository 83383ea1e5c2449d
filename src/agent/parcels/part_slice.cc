#include "agent/parcels/part_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "agent/session/lease_ticket.h"
#include "core/byte_ranges.h"

namespace viaduct::agent {
namespace {

Error bad(ParcelPart part, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = fmt::format("fetch part {} of rank {}", part.component, part.rank),
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

// The offset of each block in the part, and the end.
std::vector<std::uint64_t> offsetsOf(const Blocks& part) {
  std::vector<std::uint64_t> out{0};
  for (std::uint64_t i = 0; i < part.count(); ++i) out.push_back(out.back() + part[i].bytes);
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

// No byte here may be written twice.
Status checkApart(const std::vector<PartInto>& into) {
  std::vector<Extent> extents;
  std::set<ParcelPart> parts;
  for (const PartInto& one : into) {
    if (!parts.insert(one.part).second)
      return bad(one.part, "it is taken twice",
                 "take each part once; a slice may have many ranges");
    VIADUCT_TRY(const Blocks here, takenBlocks(one.into));
    VIADUCT_CHECK(checkHave(one, here.count()));
    for (std::uint64_t i = 0; i < here.count(); ++i) extents.push_back(here[i]);
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
  const std::vector<std::uint64_t> offsets = offsetsOf(part);
  std::vector<Extent> out;
  for (std::uint64_t i = 0; i < slice.count(); ++i) {
    const Extent wanted = slice[i];
    if (wanted.address > offsets.back() || wanted.bytes > offsets.back() - wanted.address)
      return Error{.code = Code::kInvalid,
                   .operation = "fetch",
                   .detail = fmt::format("the slice has bytes {} to {} of a part of {} bytes",
                                         wanted.address, core::endOf(wanted), offsets.back()),
                   .remedy = "give offsets within the part"};
    auto block = static_cast<std::size_t>(std::ranges::upper_bound(offsets, wanted.address) -
                                          offsets.begin() - 1);
    for (std::uint64_t at = wanted.address; at < core::endOf(wanted); ++block) {
      const std::uint64_t bytes = std::min(offsets[block + 1], core::endOf(wanted)) - at;
      out.push_back({part[block].address + (at - offsets[block]), bytes});
      at += bytes;
    }
  }
  return Blocks::list(out);
}

Result<PartCopy> copyOf(const Blocks& part, std::vector<Digest> digests, PartInto into) {
  if (digests.empty()) {
    VIADUCT_TRY(Blocks there, sliceOf(part, into.slice));
    return PartCopy{.here = std::move(into.into), .there = {.blocks = std::move(there)}};
  }
  VIADUCT_TRY(Blocks here, takenBlocks(into.into));
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
