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

// The orders for moving transfers, and the callback by which the engine watches them.
struct Moving {
  Orders& orders;
  // Watches the row. The transfers must call this again no later than at the returned time.
  std::function<Clock::time_point()> look;
  bool over() const {
    look();
    return orders.load() == Order::kCancel;
  }
};

// The interface of a row's transfers. All members of a run have the same rows. At all members the
// engine makes the same calls in the same order, with barriers between runs.
class RowTransfers {
 public:
  virtual ~RowTransfers() = default;

  // The row, with what prepare() has found out, such as the size of a source.
  virtual const Workload& row() const = 0;
  // Returns a name that tells the row from the rows with which it takes turns.
  virtual std::string name() const { return {}; }
  // True if rows may take turns in any order. The engine then reverses the order in every second
  // round.
  virtual bool anyOrder() const { return false; }
  // Plans all transfers, and writes the first contents.
  virtual Status prepare() = 0;
  // Returns the goals of the untimed rounds before the first run.
  virtual std::vector<Goal> warmUp() const { return {}; }
  // Returns the runs of the row. `warm` has the results of the last warm-up round.
  virtual Schedule schedule(const WarmUp& warm) = 0;
  // Lets only the first of several devices move, until called with false. Returns false if all
  // devices move.
  virtual bool moveAlone(bool /*on*/) { return false; }
  // Writes new contents after the warm-up.
  virtual Status refill() { return Ok{}; }
  // Resets path and counts, before the first run.
  virtual void begin() = 0;

  // Writes the contents that the next run moves.
  virtual Status fill(const Goal& /*goal*/) { return Ok{}; }
  // Moves one round until all its transfers have ended: a run, or a round before the first run.
  virtual Status move(const Goal& goal, const Moving& moving) = 0;
  virtual std::uint64_t bytesMoved() const = 0;  // by this member in all rounds so far
  // Adds this member's part of the last round.
  virtual void tell(RoundShare& round) const = 0;
  // Takes the reports of all members for a round that has ended. `run` is null before the first
  // run, and if a member has failed.
  virtual Status ended(const Rounds::Round& /*round*/, const Goal* /*run*/) { return Ok{}; }
  // Returns this member's answer to the others about the contents after a run. Members get the
  // answers only after all members have given theirs.
  virtual std::string answer() { return {}; }
  // Takes the answers of all members. Returns true, then at all members, if they must answer again.
  virtual Result<bool> compare(const std::vector<std::string>& /*answers*/) { return false; }
  // Called after the last run. If the row is alone, the device counters still count its transfers.
  virtual Status finish() { return Ok{}; }
  // Checks the contents after the last run. `stopped`: a member has asked to stop.
  virtual Status check(bool /*stopped*/) { return Ok{}; }

  // Returns the bytes that the transfers claim to have moved since begin().
  virtual std::vector<proof::Claim> claims() const = 0;
  // Adds this member's part of the row.
  virtual void tell(RowShare& row) const = 0;
  // Adds the figures that only this kind of transfers has to the composed row. Only at rank 0.
  virtual void complete(Composed& /*made*/) const {}
};

}  // namespace viaduct::measure
