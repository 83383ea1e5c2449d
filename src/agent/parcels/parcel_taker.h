// One rank that fetches a parcel: which parts it reads, and how its fetch ends. No I/O: an event
// changes the state and leaves actions. docs/design/0069-parcels.md has the table. Threads: one at
// a time.
#pragma once

#include <viaduct/parcel.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "agent/parcels/parcel_messages.h"

namespace viaduct::agent {

struct TellOwner {
  ParcelMessage message = {};
};
// Borrow, plan and post. readEnded() follows.
struct ReadPart {
  ReadyMessage ready = {};
};
// Cancel all reads that run. Each still ends with readEnded().
struct CancelReads {};
// No read runs any more. The last action.
struct FetchOver {
  ParcelEnd end = {};
};
using TakerAction = std::variant<TellOwner, ReadPart, CancelReads, FetchOver>;

class ParcelTaker {
 public:
  explicit ParcelTaker(WantMessage want);

  void offered(const OfferMessage& offer);
  void ready(ReadyMessage ready);
  // `why`: none if all bytes have arrived, and their digests are right.
  void readEnded(ParcelPart part, std::optional<Error> why);
  void heardVerdict(ParcelEnd end);
  void ownerLost(const Error& why);
  // The deadline of the fetch has passed, or the caller has cancelled the fetch.
  void giveUp(ParcelOutcome outcome, Error why);

  std::vector<TakerAction> takeActions() { return std::exchange(actions_, {}); }

  const WantMessage& want() const { return want_; }
  std::uint64_t version() const { return version_; }
  bool has(ParcelPart part) const { return is(part, ReadState::kRead); }
  std::vector<ParcelPart> missing() const;
  bool isOffered() const { return state_ != State::kAsking; }
  const std::optional<ParcelEnd>& end() const { return end_; }

 private:
  enum class State : std::uint8_t {
    kAsking,   // the owner has not offered a version
    kReading,  //
    kJudged,   // has reported, and the owner decides
    kEnding,   // the end is known, and reads still run
    kEnded,
  };
  enum class ReadState : std::uint8_t { kWanted, kReading, kRead };
  bool isUndecided() const { return state_ < State::kEnding; }
  bool is(ParcelPart part, ReadState state) const {
    const auto found = parts_.find(part);
    return found != parts_.end() && found->second == state;
  }
  bool hasAll() const { return !parts_.empty() && read_ == parts_.size(); }
  void fail(ParcelEnd end);
  void finish(ParcelEnd end);
  void report(ParcelEnd end);
  void endIfIdle();

  const WantMessage want_;
  State state_ = State::kAsking;
  bool decides_;  // it knows all the facts: it takes every part, and its group has no other rank
  std::uint64_t version_ = 0;
  std::map<ParcelPart, ReadState> parts_;  // known once there is an offer
  std::size_t reading_ = 0, read_ = 0;     // parts in these states
  std::optional<ParcelEnd> end_;
  std::vector<TakerAction> actions_;
};

}  // namespace viaduct::agent
