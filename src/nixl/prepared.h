// Checks descriptors against registered memory, so that transfers can select them by index.
// Threads: plain values.
#pragma once

#include <viaduct/blocks.h>
#include <viaduct/result.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan.h"
#include "nixl/rows.h"

namespace viaduct::nixl {

// Descriptors may overlap, unless a transfer writes them. So overlaps are searched for when a
// list is first written, and never in a list that is only read.
class Prepared {
 public:
  // Refuses an empty descriptor, and a descriptor that does not lie inside one registration.
  // `whose` names the agent in errors.
  static Result<Prepared> make(const Rows& rows, const core::PinMap& registered,
                               const std::string& whose);
  // For rows of three numbers. The caller has checked where they lie.
  static Result<Prepared> of(const Rows& rows);

  std::uint64_t count() const { return blocks_.count(); }
  // Returns the size of each descriptor in bytes, or 0 if the sizes differ.
  std::uint64_t uniformBytes() const { return blocks_.blockBytes(); }
  Extent operator[](std::uint64_t index) const { return blocks_[index]; }
  // Selects the descriptors at `indices`, or all descriptors. Refuses to write overlapping ones.
  Result<Selection> select(std::optional<Indices> indices, bool written) const;

 private:
  class Bounds;
  static Result<Prepared> of(const Rows& rows, const Bounds& bounds);
  enum class Overlaps : std::uint8_t { kUnknown, kNone, kSome };
  // Threads may search at the same time, and find the same.
  struct Found {
    Found() = default;
    Found(const Found& other) : value(other.value.load()) {}
    Found& operator=(const Found& other) {
      value = other.value.load();
      return *this;
    }
    ~Found() = default;
    std::atomic<Overlaps> value = Overlaps::kUnknown;
  };
  bool isApart() const;

  Blocks blocks_;
  mutable Found overlaps_;
};

// The descriptors of a list at some indices, or all of them.
struct Chosen {
  const Prepared& list;
  const std::optional<Indices>& indices;

  std::uint64_t count() const { return indices ? indices->size() : list.count(); }
  std::uint64_t at(std::uint64_t i) const { return indices ? (*indices)[i] : i; }
  Extent operator[](std::uint64_t i) const { return list[at(i)]; }
};

// Refuses indices out of range, and pairs of unequal length.
Status checkPairs(const Chosen& local, const Chosen& remote);

}  // namespace viaduct::nixl
