// The transfers of one member in one row, which the engine prepares, times and checks. Threads: one
// at a time.
#pragma once

#include <viaduct/deadline.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/proof/lane.h"
#include "measure/proof/observation.h"
#include "measure/proof/share.h"
#include "measure/run/schedule.h"
#include "measure/workload/workload.h"

namespace viaduct::measure {

// What moving transfers listen to.
struct Moving {
  Orders& orders;
  // Watches the row: call it again at the returned time at the latest.
  std::function<Clock::time_point()> look;
  // True: the run is being stopped, and the time for further checks is over.
  std::function<bool()> hurried;

  bool over() const {
    look();
    return orders.load() == Order::kCancel;
  }
};

// All members of a run have the same rows. The engine makes the same calls in the same order at all
// of them, with a barrier between them.
class RowTransfers {
 public:
  virtual ~RowTransfers() = default;

  // The row, with what prepare() has found out, such as the size of a source.
  virtual const Workload& row() const = 0;
  // Tells the row from those with which it takes turns.
  virtual std::string name() const { return {}; }
  // True if the rows that take turns may do so in any order: then every second round is backwards.
  virtual bool anyOrder() const { return false; }
  // Plans all transfers, and writes the first contents.
  virtual Status prepare() = 0;
  // The rounds before the timed ones.
  virtual std::vector<Goal> warmUp() const { return {}; }
  // The timed rounds. `seconds` is the time of one transfer in the last warm-up round.
  virtual Schedule schedule(double seconds) = 0;
  // Lets only the first of several devices move. False: the row has no such round.
  virtual bool moveAlone(bool /*on*/) { return false; }
  // Writes new contents after the warm-up.
  virtual Status refill() { return Ok{}; }
  // Path and counts begin here.
  virtual void begin() = 0;

  // Checks between two rounds: before each timed one, and after the last. `last`: the latter.
  virtual Status between(const Moving& /*moving*/, bool /*last*/) { return Ok{}; }
  // Writes the contents that the next round moves.
  virtual Status fill(const Goal& /*goal*/) { return Ok{}; }
  // One round. Goes on until all transfers have ended.
  virtual Status move(const Goal& goal, const Moving& moving) = 0;
  virtual std::uint64_t bytesMoved() const = 0;  // by this member in all rounds so far
  // Adds this member's part of the last round.
  virtual void tell(RoundShare& round) const = 0;
  // The reports of all members for a round. `timed`: it counts, and no member has failed.
  virtual Status ended(const Rounds::Round& /*round*/, bool /*timed*/) { return Ok{}; }
  // Checks the contents after the last round. `stopped`: a member has asked to stop.
  virtual Status check(bool stopped) = 0;

  // The bytes that the transfers claim to have moved since begin().
  virtual std::vector<proof::Claim> claims() const = 0;
  // Adds this member's part of the row.
  virtual void tell(RowShare& row) const = 0;
  // Adds what only these transfers know to the row. Only at rank 0.
  virtual void complete(Composed& /*made*/) const {}
};

}  // namespace viaduct::measure
