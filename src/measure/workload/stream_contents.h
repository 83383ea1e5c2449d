// The contents of the memory at both ends of a row's streams. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/workload/contents.h"
#include "measure/workload/kv_cells.h"
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

class StreamContents {
 public:
  StreamContents(const Spec& spec, const Workload& row, const std::vector<Stream>& streams,
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
  std::uint64_t checkedWords() const { return kv_ ? contents_.checkedWords() : 0; }

  // Write the check's words: of its own epoch, of `epoch`, or zeros, which belong to no epoch.
  Status freshen(const StreamEnd& end, const SpotCheck& check) const;
  Status restore(const StreamEnd& end, const SpotCheck& check, std::uint64_t epoch) const;
  Status spoil(const StreamEnd& end, const SpotCheck& check) const;
  // Checks that all of the check's words are of `epoch`.
  Result<Wrong> verify(const StreamEnd& end, const SpotCheck& check, std::uint64_t epoch) const;

 private:
  // Lists the cells of these sets. A sample of blocks has at most 64 MiB.
  CellList cells(const StreamEnd& end, std::uint64_t epoch, SetRange sets,
                 bool sample = false) const;
  // Returns each word of a spot check.
  std::vector<Cells> spots(const StreamEnd& end, const SpotCheck& check, std::uint64_t epoch) const;
  // Lists one cell, so that no other bytes of a GPU's memory change. The list refers to the cell.
  CellList only(const Cells& cell) const;
  // Describes a wrong block, or a part of it.
  Wrong named(const Cells& cell, const std::optional<WrongCell>& wrong) const;
  Cells block(const StreamEnd& end, std::uint64_t epoch, std::uint64_t set, std::uint32_t k) const;

  const Spec& spec_;
  const Workload& row_;
  const std::vector<Stream>& streams_;
  std::vector<Sets> sets_;
  std::vector<Workload> works_;       // the row as each stream moves it
  std::vector<std::uint64_t> first_;  // the number of each stream's first block
  std::vector<std::uint32_t> initiator_order_, target_order_;
  std::optional<KvCells> kv_;  // in the place of blocks
  Contents contents_{{}};
};

}  // namespace viaduct::measure
