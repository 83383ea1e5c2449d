#include "nixl/prepared.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/disjoint_blocks.h"

namespace viaduct::nixl {
namespace {

constexpr std::uint64_t kEndOfMemory = std::uint64_t{1} << 63U;

}  // namespace

// Facts about rows of three numbers, found in one pass.
class Prepared::Bounds {
 public:
  explicit Bounds(const Rows& rows) {
    if (rows.count() == 0) return;
    if (rows.bytes().isSame())
      lookAtAlike(rows.addresses(), rows.bytes()[0]);
    else
      look(rows);
  }
  // No row is empty, or ends beyond 2^63.
  bool areValid() const { return shortest_ != 0 && !beyond_; }
  // No row begins before the end of the row before it.
  bool areAscending() const { return ascending_; }
  // The range from the lowest first byte to the highest last byte of all rows. Empty if there is no
  // row, or an invalid one.
  Extent all() const { return areValid() && low_ < high_ ? Extent{low_, high_ - low_} : Extent{}; }

 private:
  void look(const Rows& rows) {
    std::uint64_t before = 0;
    for (std::size_t row = 0; row < rows.count(); ++row) {
      const Extent one = rows.extent(row);
      const std::uint64_t end = one.address + one.bytes;
      shortest_ = std::min(shortest_, one.bytes);
      beyond_ |= one.address >= kEndOfMemory || one.bytes > kEndOfMemory || end > kEndOfMemory;
      ascending_ &= before <= one.address;
      low_ = std::min(low_, one.address);
      high_ = std::max(high_, end);
      before = end;
    }
  }
  // Rows of one size are mostly in ascending order. The first and the last row then give the
  // bounds.
  void lookAtAlike(const std::vector<std::uint64_t>& addresses, std::uint64_t bytes) {
    std::uint64_t before = addresses[0], any = bytes;
    for (std::size_t row = 1; row < addresses.size(); ++row) {
      ascending_ &= before + bytes <= addresses[row];
      before = addresses[row];
      any |= before;
    }
    any |= addresses[0];
    const auto [low, high] =
        ascending_ ? std::pair(addresses.front(), addresses.back()) : lowestAndHighest(addresses);
    shortest_ = bytes;
    low_ = low;
    high_ = high + bytes;
    beyond_ = any >= kEndOfMemory || high_ > kEndOfMemory;
  }
  static std::pair<std::uint64_t, std::uint64_t> lowestAndHighest(
      const std::vector<std::uint64_t>& addresses) {
    const auto [low, high] = std::minmax_element(addresses.begin(), addresses.end());
    return {*low, *high};
  }
  std::uint64_t shortest_ = kEndOfMemory, low_ = kEndOfMemory, high_ = 0;
  bool beyond_ = false, ascending_ = true;
};

namespace {

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

Status checkRange(const char* side, const Chosen& chosen) {
  if (!chosen.indices || chosen.indices->empty()) return Ok{};
  const auto most = std::max_element(chosen.indices->begin(), chosen.indices->end());
  if (*most < chosen.list.count()) return Ok{};
  return refuse(Code::kInvalid,
                fmt::format("{} index {} at place {}, of a list of {} descriptors", side, *most,
                            most - chosen.indices->begin(), chosen.list.count()),
                "use indices below the number of descriptors");
}

}  // namespace

Result<Prepared> Prepared::make(const Rows& rows, const core::PinMap& registered,
                                const std::string& whose) {
  Coverage coverage(registered);
  if (rows.ofRuns()) {
    Prepared prepared;
    VIADUCT_TRY(prepared.blocks_, Blocks::of(rows.runs()));
    VIADUCT_CHECK(checkRuns(prepared.blocks_, coverage, whose));
    prepared.overlaps_.value = Overlaps::kNone;
    return prepared;
  }
  const Bounds bounds(rows);
  if (!coverage.has(bounds.all()))
    for (std::size_t row = 0; row < rows.count(); ++row)
      if (!coverage.has(rows.extent(row))) [[unlikely]]
        return outside(row, rows.extent(row), whose);
  return of(rows, bounds);
}

Result<Prepared> Prepared::of(const Rows& rows) { return of(rows, Bounds(rows)); }

Result<Prepared> Prepared::of(const Rows& rows, const Bounds& bounds) {
  if (rows.count() == 0) return Prepared();
  if (!bounds.areValid()) [[unlikely]]
    return refuse(Code::kInvalid, "a descriptor is empty, or ends beyond 2^63",
                  "check addresses and lengths");
  Prepared prepared;
  if (bounds.areAscending()) prepared.overlaps_.value = Overlaps::kNone;
  if (rows.bytes().isSame()) {
    prepared.blocks_ = core::DisjointBlocks::at(rows.addresses(), rows.bytes()[0]);
    return prepared;
  }
  std::vector<Run> runs(rows.count());
  for (std::size_t row = 0; row < runs.size(); ++row)
    runs[row] = {rows.addresses()[row], rows.bytes()[row], rows.bytes()[row], 1};
  prepared.blocks_ = core::DisjointBlocks::of(std::move(runs));
  return prepared;
}

bool Prepared::isApart() const {
  if (overlaps_.value == Overlaps::kUnknown) {
    const bool apart =
        blocks_.addresses().empty()  // of several sizes
            ? Blocks::list(extentsOf(blocks_, {})).has_value()
            : core::DisjointBlocks::areApart(blocks_.addresses(), blocks_.blockBytes());
    overlaps_.value = apart ? Overlaps::kNone : Overlaps::kSome;
  }
  return overlaps_.value == Overlaps::kNone;
}

Result<Selection> Prepared::select(std::optional<Indices> indices, bool written) const {
  if (!written || isApart()) return Selection{blocks_, indices ? *std::move(indices) : Indices()};
  VIADUCT_TRY(Blocks blocks, Blocks::list(extentsOf(blocks_, indices)));
  return Selection{std::move(blocks), {}};
}

Status checkPairs(const Chosen& local, const Chosen& remote) {
  VIADUCT_CHECK(checkRange("local", local));
  VIADUCT_CHECK(checkRange("remote", remote));
  const std::uint64_t count = local.count();
  if (count != remote.count())
    return refuse(Code::kInvalid,
                  fmt::format("{} local and {} remote descriptors", count, remote.count()),
                  "pass the same number on both sides: descriptors are paired in order");
  if (count == 0)
    return refuse(Code::kInvalid, "no descriptors", "pass at least one descriptor on each side");
  if (local.list.uniformBytes() != 0 && local.list.uniformBytes() == remote.list.uniformBytes())
    return Ok{};
  for (std::uint64_t i = 0; i < count; ++i)
    if (local[i].bytes != remote[i].bytes)
      return refuse(Code::kInvalid,
                    fmt::format("pair {}: the local descriptor has {} bytes, the remote one {}", i,
                                local[i].bytes, remote[i].bytes),
                    "pair descriptors of equal length");
  return Ok{};
}

}  // namespace viaduct::nixl
