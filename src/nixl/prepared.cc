#include "nixl/prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace viaduct::nixl {
namespace {

// Limits the pieces into which overlapping descriptors are cut. A larger number of pieces is a
// mistake or an attack.
constexpr std::size_t kMostPieces = std::size_t{1} << 26U;

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

// Cuts overlapping extents into pieces that do not overlap. The selection lists the pieces of each
// extent, in the order of the extents.
Result<Selection> cut(std::span<const Extent> extents) {
  std::vector<std::uint64_t> edges;
  edges.reserve(2 * extents.size());
  for (const Extent& extent : extents) {
    edges.push_back(extent.address);
    edges.push_back(extent.address + extent.bytes);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  // Two neighbouring edges bound a piece. Only a piece inside an extent gets a number.
  constexpr std::uint32_t kUnused = ~std::uint32_t{0};
  std::vector<std::uint32_t> number(edges.size(), kUnused);
  std::vector<Extent> pieces;
  Indices indices;
  for (const Extent& extent : extents) {
    auto at = static_cast<std::size_t>(
        std::lower_bound(edges.begin(), edges.end(), extent.address) - edges.begin());
    for (; edges[at] < extent.address + extent.bytes; ++at) {
      if (indices.size() == kMostPieces)
        return refuse(Code::kInvalid, "the descriptors overlap in too many pieces",
                      "divide the transfer into smaller transfers");
      if (number[at] == kUnused) {
        number[at] = static_cast<std::uint32_t>(pieces.size());
        pieces.push_back({edges[at], edges[at + 1] - edges[at]});
      }
      indices.push_back(number[at]);
    }
  }
  VIADUCT_TRY(Blocks blocks, Blocks::list(pieces));
  return Selection{std::move(blocks), std::move(indices)};
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
    return prepared;
  }
  for (std::size_t row = 0; row < rows.extents.size(); ++row)
    if (!coverage.has(rows.extents[row])) [[unlikely]]
      return outside(row, rows.extents[row], whose);
  // Blocks::list() refuses checked descriptors only if some of them overlap.
  if (auto blocks = Blocks::list(rows.extents))
    prepared.blocks_ = *std::move(blocks);
  else
    prepared.overlapping_ = rows.extents;
  return prepared;
}

Prepared Prepared::unchecked(std::vector<Extent> extents) {
  Prepared prepared;
  prepared.overlapping_ = std::move(extents);
  return prepared;
}

Result<Selection> Prepared::select(std::optional<Indices> indices) const {
  if (overlapping_.empty()) return Selection{blocks_, indices ? *std::move(indices) : Indices()};
  std::vector<Extent> taken;
  if (indices) {
    taken.reserve(indices->size());
    for (const std::uint32_t index : *indices) taken.push_back(overlapping_[index]);
  } else {
    taken = overlapping_;
  }
  if (auto blocks = Blocks::list(taken)) return Selection{*std::move(blocks), {}};
  return cut(taken);
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
    const std::uint64_t mine = local.bytesOf(local_indices ? (*local_indices)[i] : i);
    const std::uint64_t theirs = remote.bytesOf(remote_indices ? (*remote_indices)[i] : i);
    if (mine != theirs)
      return refuse(Code::kInvalid,
                    fmt::format("pair {}: the local descriptor has {} bytes, the remote one {}", i,
                                mine, theirs),
                    "pair descriptors of equal length");
  }
  return Ok{};
}

}  // namespace viaduct::nixl
