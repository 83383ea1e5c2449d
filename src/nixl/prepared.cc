#include "nixl/prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/sort_numbers.h"
#include "core/disjoint_blocks.h"

namespace viaduct::nixl {
namespace {

constexpr std::uint64_t kEndOfMemory = std::uint64_t{1} << 63U;

Error refuse(Code code, std::string detail, std::string remedy) {
  return {.code = code,
          .operation = "prepare descriptors",
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

Error outside(std::size_t row, const Extent& extent, const std::string& whose) {
  if (extent.bytes == 0)
    return refuse(Code::kInvalid,
                  fmt::format("descriptor {} at {:#x} has 0 bytes", row, extent.address),
                  "omit empty descriptors");
  return refuse(
      Code::kNotFound,
      fmt::format("descriptor {} at {:#x}, {} bytes, does not lie inside memory that {} has "
                  "registered",
                  row, extent.address, extent.bytes, whose),
      "register the memory first; a remote agent's metadata lists only memory that was registered "
      "before the metadata was made");
}

// Caches the registration of the last address, because the next descriptor mostly lies in the same
// registration.
class Coverage {
 public:
  explicit Coverage(const core::PinMap& registered) : registered_(registered) {}
  bool has(const Extent& extent) {
    if (extent.address < here_.low || extent.address >= here_.high) {
      here_ = registered_.stretch(extent.address);
      end_ = here_.pin == nullptr ? 0 : here_.pin->address + here_.pin->bytes;
    }
    return extent.bytes != 0 && extent.address < end_ && extent.bytes <= end_ - extent.address;
  }

 private:
  const core::PinMap& registered_;
  core::PinMap::PinStretch here_{};
  std::uint64_t end_ = 0;
};

// Looks up the whole run first, then each block, because a run may cross several registrations.
Status checkRuns(const Blocks& blocks, Coverage& coverage, const std::string& whose) {
  for (std::size_t number = 0; number < blocks.runs(); ++number) {
    const Run run = blocks.run(number);
    const std::uint64_t stride = run.stride == 0 ? run.bytes : run.stride;
    if (coverage.has({run.base, (run.count - 1) * stride + run.bytes})) continue;
    for (std::uint64_t i = 0; i < run.count; ++i)
      if (const Extent block{run.base + i * stride, run.bytes}; !coverage.has(block))
        return outside(blocks.firstOf(number) + i, block, whose);
  }
  return Ok{};
}

std::vector<Extent> extentsOf(const Blocks& blocks, const std::optional<Indices>& indices) {
  std::vector<Extent> out(indices ? indices->size() : blocks.count());
  for (std::uint64_t i = 0; i < out.size(); ++i) out[i] = blocks[indices ? (*indices)[i] : i];
  return out;
}

Status checkRange(const char* side, const Prepared& list, const std::optional<Indices>& indices) {
  if (!indices || indices->empty()) return Ok{};
  const auto most = std::max_element(indices->begin(), indices->end());
  if (*most < list.count()) return Ok{};
  return refuse(Code::kInvalid,
                fmt::format("{} index {} at place {}, of a list of {} descriptors", side, *most,
                            most - indices->begin(), list.count()),
                "use indices below the number of descriptors");
}

}  // namespace

Result<Prepared> Prepared::make(const Rows& rows, const core::PinMap& registered,
                                const std::string& whose) {
  Prepared prepared;
  Coverage coverage(registered);
  if (!rows.runs.empty()) {
    VIADUCT_TRY(prepared.blocks_, Blocks::of(rows.runs));
    VIADUCT_CHECK(checkRuns(prepared.blocks_, coverage, whose));
    prepared.overlaps_.value = Overlaps::kNone;
    return prepared;
  }
  for (std::size_t row = 0; row < rows.extents.size(); ++row)
    if (!coverage.has(rows.extents[row])) [[unlikely]]
      return outside(row, rows.extents[row], whose);
  return of(rows.extents);
}

Result<Prepared> Prepared::of(std::span<const Extent> extents) {
  if (extents.empty()) return Prepared();
  Prepared prepared;
  const std::uint64_t bytes = extents[0].bytes;
  std::vector<std::uint64_t> addresses(extents.size());
  bool alike = true, ascending = true, valid = true;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent& one = extents[i];
    alike = alike && one.bytes == bytes;
    ascending = ascending && end <= one.address;
    end = one.address + one.bytes;
    valid = valid && one.bytes != 0 && one.address < kEndOfMemory && end <= kEndOfMemory;
    addresses[i] = one.address;
  }
  if (!valid) [[unlikely]]
    return refuse(Code::kInvalid, "a descriptor is empty, or ends beyond 2^63",
                  "check addresses and lengths");
  if (ascending) prepared.overlaps_.value = Overlaps::kNone;
  prepared.blocks_ = alike ? core::DisjointBlocks::at(std::move(addresses), bytes)
                           : core::DisjointBlocks::of(base::mapped(extents, [](const Extent& one) {
                               return Run{one.address, one.bytes, one.bytes, 1};
                             }));
  return prepared;
}

bool Prepared::isApart() const {
  if (overlaps_.value == Overlaps::kUnknown) {
    const auto given = blocks_.addresses();
    std::vector<std::uint64_t> sorted(given.begin(), given.end());
    base::sortNumbers(sorted);
    const auto meet = [&](auto a, auto b) { return b - a < blocks_.blockBytes(); };
    const bool apart = sorted.empty()
                           ? Blocks::list(extentsOf(blocks_, {})).has_value()  // of several sizes
                           : std::adjacent_find(sorted.begin(), sorted.end(), meet) == sorted.end();
    overlaps_.value = apart ? Overlaps::kNone : Overlaps::kSome;
  }
  return overlaps_.value == Overlaps::kNone;
}

Result<Selection> Prepared::select(std::optional<Indices> indices, bool written) const {
  if (!written || isApart()) return Selection{blocks_, indices ? *std::move(indices) : Indices()};
  VIADUCT_TRY(Blocks blocks, Blocks::list(extentsOf(blocks_, indices)));
  return Selection{std::move(blocks), {}};
}

Status checkPairs(const Prepared& local, const std::optional<Indices>& local_indices,
                  const Prepared& remote, const std::optional<Indices>& remote_indices) {
  VIADUCT_CHECK(checkRange("local", local, local_indices));
  VIADUCT_CHECK(checkRange("remote", remote, remote_indices));
  const std::uint64_t here = local_indices ? local_indices->size() : local.count();
  const std::uint64_t there = remote_indices ? remote_indices->size() : remote.count();
  if (here != there)
    return refuse(Code::kInvalid, fmt::format("{} local and {} remote descriptors", here, there),
                  "pass the same number on both sides: descriptors are paired in order");
  if (here == 0)
    return refuse(Code::kInvalid, "no descriptors", "pass at least one descriptor on each side");
  if (local.uniformBytes() != 0 && local.uniformBytes() == remote.uniformBytes()) return Ok{};
  for (std::uint64_t i = 0; i < here; ++i) {
    const std::uint64_t mine = local[local_indices ? (*local_indices)[i] : i].bytes;
    const std::uint64_t theirs = remote[remote_indices ? (*remote_indices)[i] : i].bytes;
    if (mine != theirs)
      return refuse(Code::kInvalid,
                    fmt::format("pair {}: the local descriptor has {} bytes, the remote one {}", i,
                                mine, theirs),
                    "pair descriptors of equal length");
  }
  return Ok{};
}

}  // namespace viaduct::nixl
