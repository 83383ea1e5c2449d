// The contents of the memory that a row moves: fills sources, and checks the arrived bytes.
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/workload/kv_contents.h"
#include "measure/workload/mirror.h"
#include "measure/workload/pattern.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// One end of a stream, and the memory of its device.
struct StreamEnd {
  std::uint32_t stream = 0;  // the stream's number
  Role role = Role::kInitiator;
  std::span<std::byte> memory = {};
  // The memory of the other end, if the contents are the user's. Checks compare with these bytes
  // instead of the pattern.
  std::span<std::byte> original = {};
  const Mirror* mirror = nullptr;  // of a GPU's memory; null: `memory` is what transfers move
};

// A description of the first wrong bytes, or nothing.
using Wrong = std::optional<std::string>;

// A range of sets. Consecutive transfers of a stream use consecutive sets.
struct SetRange {
  std::uint64_t first = 0;  // modulo the number of sets
  std::uint64_t count = 0;
};

// One transfer with fresh words at a few random places. The epoch seeds the places.
struct SpotCheck {
  std::uint32_t stream = 0;
  std::uint64_t set = 0;
  std::uint64_t epoch = 0;  // this check's own epoch
};

class Contents {
 public:
  Contents(const Spec& spec, const Workload& row, const std::vector<Stream>& streams,
           const DeviceBytes& bytes);

  // Returns the end from which a stream's bytes come.
  Role source(std::uint32_t stream) const;
  const Sets& sets(std::uint32_t stream) const { return sets_[stream]; }

  bool has(const SpotCheck& check) const {
    return check.stream < sets_.size() && check.set < sets_[check.stream].count;
  }
  SetRange all(std::uint32_t stream) const { return {.count = sets_[stream].count}; }
  std::uint64_t fewestSets() const;
  // Writes to each page of all sets in host memory.
  void touch(const StreamEnd& end) const;
  // This and the other calls fail only if the memory is a GPU's, and its driver fails.
  Status fill(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const;
  // Checks the blocks of these sets, or a sample of them unless Spec::verify is kFull. Of a KV row,
  // the sample has words of each page.
  Result<Wrong> verify(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const;
  // The words that verify() has checked; 0 unless the row is a KV row.
  std::uint64_t checkedWords() const { return kv_ ? kv_->checkedWords() : 0; }

  // Write the check's words: of its own epoch, of `epoch`, or zeros, which belong to no epoch.
  Status freshen(const StreamEnd& end, const SpotCheck& check) const;
  Status restore(const StreamEnd& end, const SpotCheck& check, std::uint64_t epoch) const;
  Status spoil(const StreamEnd& end, const SpotCheck& check) const;
  // Checks that all of the check's words are of `epoch`.
  Result<Wrong> verify(const StreamEnd& end, const SpotCheck& check, std::uint64_t epoch) const;

 private:
  struct Spot {
    std::uint32_t block = 0;
    std::uint64_t offset = 0;  // in the block
  };
  KvSide kvSide(const StreamEnd& end) const {
    return end.role == source(end.stream) ? KvSide::kSource : KvSide::kDestination;
  }
  Result<Wrong> verifyKv(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const;
  std::vector<Spot> spots(const SpotCheck& check) const;
  std::span<std::byte> memoryOf(const StreamEnd& end, const SpotCheck& check, Spot spot) const;
  Pattern pattern(std::uint64_t epoch) const;
  std::span<std::byte> blocks(const StreamEnd& end, std::uint64_t set) const;
  std::span<std::byte> block(const StreamEnd& end, std::uint64_t set, std::uint32_t k) const;
  std::span<std::byte> original(const StreamEnd& end, std::uint64_t set, std::uint32_t k) const;
  std::uint64_t number(std::uint32_t stream, std::uint64_t set, std::uint32_t k) const;
  std::span<std::byte> checkedPart(const StreamEnd& end, std::uint64_t set, std::uint32_t k) const;
  Wrong check(const StreamEnd& end, const Pattern& now, std::uint64_t set, std::uint32_t k) const;
  Wrong check(const StreamEnd& end, const SpotCheck& check, const Pattern& now, Spot spot) const;

  const Spec& spec_;
  const Workload& row_;
  const std::vector<Stream>& streams_;
  std::vector<Sets> sets_;
  std::vector<Workload> works_;       // the row as each stream moves it
  std::vector<std::uint64_t> first_;  // the number of each stream's first block
  std::uint64_t blocks_ = 0;
  std::vector<std::uint32_t> initiator_order_, target_order_;
  std::optional<KvContents> kv_;  // in the place of blocks
};

}  // namespace viaduct::measure
