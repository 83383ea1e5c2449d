// Runs one stream's transfers for one row, at the initiating end. In a ping-pong, the other end has
// a lane too. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "measure/result/histogram.h"
#include "measure/workload/buffer.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// An order from the watching thread to the lanes.
enum class Order : std::uint8_t {
  kGoOn,
  kFinish,  // start no further transfer, and end as if the goal were reached
  kCancel,  // end at once, and fail with kCancelled
};
using Orders = std::atomic<Order>;

constexpr auto kLaneSlice = std::chrono::milliseconds(100);  // until a lane sees an order, at most

// Returns the next note of a member of this run, as Agent::waitNote() does.
using NoteSource = std::function<Result<Note>(Deadline until)>;

struct LaneSides {
  Selection own = {}, remote = {};
};

// Changes words of the blocks before a lane's transfers, and checks words after them. `number` is
// the transfer's number. Threads: the lane's.
class LaneMarks {
 public:
  virtual ~LaneMarks() = default;
  // Called before a transfer is posted. Returns true if the call took so long that its time must
  // not count as latency of the transfer.
  virtual bool posting(std::uint64_t number, std::uint64_t set) = 0;
  virtual void ended(std::uint64_t number) = 0;
};

// The inputs of a lane.
struct LaneSeed {
  const Spec& spec;
  Workload row;  // the part of the row's workload that this stream moves
  Agent& agent;
  Peer peer;
  const NoteSource& notes;
  Buffer& memory;            // the memory of the device that initiates
  std::uint64_t own_at = 0;  // offset of the lane's first set in `memory`
  // Returns the blocks of a set at the peer, in the order in which they lie there.
  std::function<Result<Blocks>(std::uint64_t set)> remote;
  // Returns both sides of one of the row's transfers in a set. Null: the sides are `remote` and the
  // same blocks of `memory`.
  std::function<Result<LaneSides>(std::uint64_t set, std::uint32_t number)> sides = {};
  std::uint64_t sets = 1, stride = 0;
  Role role = Role::kInitiator;  // the role of this end in the layout
  std::uint64_t number = 0;  // the stream's number; it seeds the arrivals, so that streams differ
  LaneMarks* marks = nullptr;
};

// Times of each transfer, in nanoseconds.
struct LaneCounts {
  Histogram latency, post, tx;
};

struct LaneTimes {
  struct Part {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  Clock::time_point start = {};
  std::vector<Part> parts;  // consecutive, without gaps
  std::uint64_t iterations = 0;
  std::uint64_t transfers = 0;  // includes the transfers before `start`
};

// The goal of one run of a lane. The run ends when it has reached both `iterations` and `time`, or
// by an Order.
struct Goal {
  std::uint64_t iterations = 0;
  Duration time{0};
  std::uint64_t lead = 0;   // additional transfers, which end before the clock starts
  std::uint64_t parts = 3;  // number of parts that the run is split into
  bool timed = true;
};
Goal warmGoal(const Spec& spec, const Workload& row);

// Returns the bytes that the transfers have carried, added to those of `more`.
Path carriedBy(std::span<const Transfer> transfers, Path more = {});

class Lane {
 public:
  // Plans every transfer.
  static Result<std::unique_ptr<Lane>> plan(const LaneSeed& seed);

  // Resets the counts of path() and transfers().
  void mark() {
    before_ = carried();
    transfers_ended_ = 0;
  }
  // Runs transfers, from the set after the last one that run() used. Fails with kCancelled after
  // Order::kCancel.
  Result<LaneTimes> run(const Goal& goal, const Orders& orders);
  // The counts of all timed runs.
  const LaneCounts& counts() const { return counts_; }
  // Runs a ping-pong. Its latency is half of the time for a write and its echo. The other end runs
  // echo() until this call has ended.
  Result<LaneTimes> pingPong(const Goal& goal, const Orders& orders);
  Result<LaneTimes> echo(const Orders& orders);  // returns only the number of iterations

  const Histogram& prep() const { return prep_; }  // nanoseconds of each plan() call
  Path path() const { return carried().since(before_); }
  // Counts timed and untimed transfers. Threads: any.
  std::uint64_t transfers() const { return transfers_ended_.load(std::memory_order_relaxed); }
  std::uint64_t sets() const { return seed_.sets; }
  std::uint64_t bytes() const { return seed_.row.bytes(); }
  // Returns the number of ops of a set's transfers, after coalescing. Sets differ little.
  std::uint64_t ops() const;

 private:
  class Drive;
  explicit Lane(const LaneSeed& seed);
  Result<LaneSides> sidesOf(std::uint64_t set, std::uint32_t number) const;
  Result<Transfer> planOne(std::uint64_t set, std::uint32_t number);
  Status planAgain(std::uint64_t slot);
  Path carried() const { return carriedBy(transfers_, retired_); }
  // Returns the transfers that are posted together for one number.
  std::span<Transfer> flight(std::uint64_t number) {
    const std::size_t together = seed_.row.transfers();
    return std::span(transfers_).subspan(number % slots_ * together, together);
  }
  Transfer& transfer(std::uint64_t number) { return flight(number).front(); }
  Status post(std::uint64_t number);
  // Waits for all transfers of a flight. After kTimeout it can be called again.
  Status wait(std::uint64_t number, Deadline until);
  Result<Note> waitNote(const Orders& orders);
  Status bounce(std::uint64_t number, const Orders& orders);
  std::uint64_t setOf(std::uint64_t number) const { return number % slots_ % seed_.sets; }
  // Only one thread at a time counts, so no atomic addition is needed.
  void countTransfer() { transfers_ended_.store(transfers() + 1, std::memory_order_relaxed); }

  LaneSeed seed_;
  std::vector<std::uint32_t> own_order_, remote_order_;
  std::uint64_t slots_;              // each slot holds the transfers that are posted together
  std::vector<Transfer> transfers_;  // the same number for each slot
  Path retired_;                     // bytes of transfers that were replaced by newly planned ones
  Path before_;                      // the bytes carried before mark()
  std::uint64_t begun_ = 0;          // transfers that all runs have started
  std::atomic<std::uint64_t> transfers_ended_{0};  // since mark()
  Histogram prep_;
  LaneCounts counts_;
  base::Random arrivals_;
};

}  // namespace viaduct::measure
