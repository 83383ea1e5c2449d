// Descriptors that were checked against registered memory, ready to be taken by index. Threads:
// plain values; nothing here needs the GIL.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "rows.h"

namespace viaduct::python::nixl {

class Prepared {
 public:
  // Refuses empty descriptors and those that do not lie inside one of the registrations. `whose`
  // names the agent in errors.
  static Result<Prepared> make(const Rows& rows, const core::PinMap& registered,
                               const std::string& whose);

  std::uint64_t count() const {
    return overlapping_.empty() ? blocks_.count() : overlapping_.size();
  }
  std::uint64_t bytesOf(std::uint64_t index) const {
    return overlapping_.empty() ? blocks_[index].bytes : overlapping_[index].bytes;
  }
  // The bytes of every descriptor, if all have equally many; else 0.
  std::uint64_t uniformBytes() const { return overlapping_.empty() ? blocks_.blockBytes() : 0; }
  Extent operator[](std::uint64_t index) const {
    return overlapping_.empty() ? blocks_[index] : overlapping_[index];
  }
  // The descriptors at `indices`, or all. Overlapping descriptors become pieces that do not
  // overlap.
  Result<Selection> select(std::optional<Indices> indices) const;

 private:
  Blocks blocks_;                    // where no two overlap
  std::vector<Extent> overlapping_;  // else
};

// Refuses indices out of range, and pairs of unequal length. Nothing: all of the list.
Status checkPairs(const Prepared& local, const std::optional<Indices>& local_indices,
                  const Prepared& remote, const std::optional<Indices>& remote_indices);

}  // namespace viaduct::python::nixl
