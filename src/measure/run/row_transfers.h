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
  // The runs of the row. `warm` is of the last warm-up round.
  virtual Schedule schedule(const WarmUp& warm) = 0;
  // Lets only the first of several devices move. False: the row has no such round.
  virtual bool moveAlone(bool /*on*/) { return false; }
  // Writes new contents after the warm-up.
  virtual Status refill() { return Ok{}; }
  // Path and counts begin here.
  virtual void begin() = 0;

  // Writes the contents that the next run moves.
  virtual Status fill(const Goal& /*goal*/) { return Ok{}; }
  // Moves one round until all its transfers have ended: a run, or a round before the first run.
  virtual Status move(const Goal& goal, const Moving& moving) = 0;
  virtual std::uint64_t bytesMoved() const = 0;  // by this member in all rounds so far
  // Adds this member's part of the last round.
  virtual void tell(RoundShare& round) const = 0;
  // The reports of all members for a round. `run` is null before the first run, and if a member has
  // failed.
  virtual Status ended(const Rounds::Round& /*round*/, const Goal* /*run*/) { return Ok{}; }
  // Returns this member's words to the others about the contents after a run. No member learns them
  // before all have told theirs.
  virtual std::string answer() { return {}; }
  // The answers of all members. Returns true at all members if they have to answer again.
  virtual Result<bool> compare(const std::vector<std::string>& /*answers*/) { return false; }
  // After the last run, before the counters are read.
  virtual Status finish() { return Ok{}; }
  // Checks the contents after the last run. `stopped`: a member has asked to stop.
  virtual Status check(bool /*stopped*/) { return Ok{}; }

  // The bytes that the transfers claim to have moved since begin().
  virtual std::vector<proof::Claim> claims() const = 0;
  // Adds this member's part of the row.
  virtual void tell(RowShare& row) const = 0;
  // Adds what only these transfers know to the row. Only at rank 0.
  virtual void complete(Composed& /*made*/) const {}
};

}  // namespace viaduct::measure
