// The contents of the memory at both ends of a row's streams. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
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
  const Mirror* mirror = nullptr;  // if transfers move a GPU's memory; null: they move `memory`
};

// A range of sets. Consecutive transfers of a stream use consecutive sets.
struct SetRange {
  std::uint64_t first = 0;  // taken modulo the number of sets
  std::uint64_t count = 0;
};

// A word of a set that changes from one transfer to the next.
struct ChangedWord {
  std::uint32_t block = 0;
  std::uint64_t offset = 0;  // in the block
  std::uint64_t value = 0;
};

// The contents of a set at its source: words of the pattern with this seed, and the changed ones.
struct SetContents {
  std::uint32_t stream = 0;
  std::uint64_t set = 0, seed = 0, epoch = 0;
  std::vector<ChangedWord> changed = {};
};

class StreamContents {
 public:
  // `seed` is the seed of the contents that this process writes. No other process knows the seed.
  StreamContents(const Spec& spec, const Workload& row, const std::vector<Stream>& streams,
                 const DeviceBytes& bytes, std::uint64_t seed);

  // Returns the end from which a stream's bytes come.
  Role source(std::uint32_t stream) const;
  const Sets& sets(std::uint32_t stream) const { return sets_[stream]; }

  SetRange all(std::uint32_t stream) const { return {.count = sets_[stream].count}; }
  std::uint64_t fewestSets() const;
  // Writes to each page of all sets in host memory.
  void touch(const StreamEnd& end) const;
  // The calls below fail only if the memory is a GPU's and the driver fails.
  Status fill(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const;
  // As fill() for one set, with words of another seed.
  Status refill(const StreamEnd& end, std::uint64_t seed, std::uint64_t set) const;
  // Checks all words of these sets if Spec::verify is kFull, otherwise a sample. In a KV row, the
  // sample has words of each page.
  Result<Wrong> verify(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const;
  // Sums up the contents of a set. In a KV row, only some words of each page are added, unless
  // Spec::verify is kFull.
  Result<WordSum> sum(const StreamEnd& end, std::uint64_t key, std::uint64_t set) const;
  // Describes the first bytes of a set that differ from those at the source.
  Result<Wrong> differences(const StreamEnd& end, const SetContents& source) const;

  // Returns the bytes of a set's word that changes, at this end.
  std::span<std::byte> wordAt(const StreamEnd& end, std::uint64_t set,
                              const ChangedWord& word) const;
  // Chooses random words to change. Both ends of a ping-pong change words, so the end with `parity`
  // 0 takes even words, and the other end odd words. Nothing: any words. Returns none for a KV row,
  // or if a block has no such word.
  std::vector<ChangedWord> places(std::uint32_t stream, base::Random& random,
                                  std::optional<std::uint64_t> parity = {}) const;
  // Writes these words. In a GPU's memory, no other bytes change.
  Status change(const StreamEnd& end, std::uint64_t set, std::span<const ChangedWord> words) const;

 private:
  // Lists the cells of these sets. If `sample` is set, lists less than 128 MiB of the blocks.
  CellList cells(const StreamEnd& end, std::uint64_t epoch, SetRange sets,
                 bool sample = false) const;
  // Lists the cells of these sets of a row of KV blocks.
  CellList kvCells(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const;
  // Describes a wrong block, or a part of it.
  std::string named(const Cells& cell, const WrongCell& wrong) const;
  Cells block(const StreamEnd& end, std::uint64_t epoch, std::uint64_t set, std::uint32_t k) const;

  const Spec& spec_;
  const Workload& row_;
  const std::vector<Stream>& streams_;
  std::vector<Sets> sets_;
  std::vector<Workload> works_;       // the part of the row that each stream moves
  std::vector<std::uint64_t> first_;  // the number of each stream's first block
  std::vector<std::uint32_t> initiator_order_, target_order_;
  std::optional<KvCells> kv_;  // of a KV row, which has no plain blocks
  Pattern pattern_;
  Contents contents_{{}};
};

}  // namespace viaduct::measure
