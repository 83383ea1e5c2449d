// Checks descriptors against registered memory, so that transfers can select them by index.
// Threads: plain values.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "nixl/rows.h"

namespace viaduct::nixl {

class Prepared {
 public:
  // Refuses an empty descriptor, and a descriptor that does not lie inside one registration.
  // `whose` names the agent in errors.
  static Result<Prepared> make(const Rows& rows, const core::PinMap& registered,
                               const std::string& whose);

  // For descriptors that the caller has checked. They may overlap.
  static Prepared unchecked(std::vector<Extent> extents);

  std::uint64_t count() const {
    return overlapping_.empty() ? blocks_.count() : overlapping_.size();
  }
  std::uint64_t bytesOf(std::uint64_t index) const {
    return overlapping_.empty() ? blocks_[index].bytes : overlapping_[index].bytes;
  }
  // Returns the size of each descriptor in bytes, or 0 if the sizes differ.
  std::uint64_t uniformBytes() const { return overlapping_.empty() ? blocks_.blockBytes() : 0; }
  Extent operator[](std::uint64_t index) const {
    return overlapping_.empty() ? blocks_[index] : overlapping_[index];
  }
  // Selects the descriptors at `indices`, or all descriptors. Cuts overlapping descriptors into
  // pieces that do not overlap, because Blocks refuses overlaps.
  Result<Selection> select(std::optional<Indices> indices) const;

 private:
  Blocks blocks_;                    // holds the descriptors if none of them overlap
  std::vector<Extent> overlapping_;  // holds the descriptors if some of them may overlap
};

// Refuses indices out of range, and pairs of unequal length. Without indices, the whole list
// counts.
Status checkPairs(const Prepared& local, const std::optional<Indices>& local_indices,
                  const Prepared& remote, const std::optional<Indices>& remote_indices);

}  // namespace viaduct::nixl
