// The words of a stream that change before each of its transfers, so that no two transfers of a set
// carry equal bytes. Threads: the lane's during a run, the engine's between runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"
#include "measure/proof/lane.h"
#include "measure/workload/stream_contents.h"

namespace viaduct::measure {

class ChangingWords final : public LaneMarks {
 public:
  enum class Way : std::uint8_t {
    kWrite,   // a word of the source gets a new value
    kRead,    // a word of the destination is spoilt, and the transfer has to overwrite it
    kBounce,  // as kWrite, and the echo must bring back the new value
    kEcho,    // as kWrite, at the answering end of a ping-pong
  };
  struct Facts {
    const StreamContents& contents;
    StreamEnd end;
    Way way = Way::kWrite;
    std::uint64_t depth = 1;  // transfers in flight
    std::uint64_t dice = 0;   // a secret seed of the values
    bool whole = false;       // whole blocks change before each transfer, not only a word
    bool by_transfer = true;  // false: nothing changes within a run
  };
  explicit ChangingWords(const Facts& facts);

  bool posting(std::uint64_t number, std::uint64_t set) override;
  void ended(std::uint64_t number) override;

  // Gives all changing words of a set new values, between two runs.
  Status change(std::uint64_t set);
  // Returns the changing words of a set, with their present values.
  std::vector<ChangedWord> words(std::uint64_t set) const;
  // Returns the seed of a set's present contents. 0: the set does not change in whole blocks, or
  // has not changed yet.
  std::uint64_t seedOf(std::uint64_t set) const { return seeds_.empty() ? 0 : seeds_[set]; }

  // Resets the counts of checked() and missed().
  void mark() { checked_ = missed_ = 0; }
  // Return how many transfers were checked (only for kRead and kBounce), and how many of them
  // brought nothing.
  std::uint64_t checked() const { return checked_; }
  std::uint64_t missed() const { return missed_; }
  // Returns the first error of a change during a run. Only a GPU's driver can fail.
  const Status& failure() const { return failure_; }

 private:
  struct Expected {
    std::byte* at = nullptr;
    std::uint64_t value = 0;
  };

  const Facts facts_;
  const std::uint64_t stride_;
  base::Random random_;
  std::vector<ChangedWord> places_;
  std::vector<std::byte*> first_;   // the words of set 0
  std::size_t width_ = 0;           // bytes of a word
  std::uint64_t next_ = 0;          // index in places_ of the word that changes next
  std::vector<Expected> expected_;  // of the transfers in flight
  std::vector<std::uint64_t> seeds_;
  std::uint64_t checked_ = 0, missed_ = 0;
  Status failure_ = Ok{};
};

}  // namespace viaduct::measure
