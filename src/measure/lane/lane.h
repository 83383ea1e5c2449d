// One stream's transfers of one row, at the side that initiates them. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/random.h"
#include "measure/load/buffer.h"
#include "measure/load/spec.h"
#include "measure/stats/histogram.h"

namespace viaduct::measure {

// What the thread that watches the lanes asks of them.
enum class Order : std::uint8_t {
  kGoOn,
  kFinish,  // begin no further transfer, and end as if the goal were reached
  kCancel,  // give up at once
};
using Orders = std::atomic<Order>;

constexpr auto kLaneSlice = std::chrono::milliseconds(100);  // how late a lane notices an order

// As Agent::waitNote(): the next note of a member of this run.
using NoteSource = std::function<Result<Note>(Deadline until)>;

// What a lane has to know of its surroundings.
struct LaneSeed {
  const Spec& spec;
  const Workload& row;
  Agent& agent;
  Peer peer;
  const NoteSource& notes;
  Buffer& memory;                  // of the device that initiates
  std::uint64_t own_at = 0;        // where its sets begin: here, an offset
  std::uint64_t remote_start = 0;  // and there, an address
  std::uint64_t sets = 1, stride = 0;
  Role role = Role::kInitiator;  // of this end in the layout
  std::uint64_t number = 0;      // of the stream: arrivals of two streams differ
};

struct LaneTimes {
  struct Part {
    std::uint64_t bytes = 0;
    double seconds = 0;
  };
  Histogram latency, post, tx;  // nanoseconds
  Clock::time_point start = {};
  std::vector<Part> parts;  // one behind another, without gaps
  std::uint64_t iterations = 0;
};

// When a lane has moved enough: both have to be reached.
struct Goal {
  std::uint64_t iterations = 0;
  Duration time{0};
};
Goal warmGoal(const Spec& spec, const Workload& row);

class Lane {
 public:
  // Plans every transfer.
  static Result<std::unique_ptr<Lane>> plan(const LaneSeed& seed);

  // From here on path() and transfers() count.
  void mark() {
    before_ = carried();
    transfers_ended_ = 0;
  }
  // A transfer of that set, untimed. kCancelled when `ended` says so.
  Status once(std::uint64_t set, const std::function<bool()>& ended);
  // Goes on with the set behind those that run() has used before. kCancelled after kCancel.
  Result<LaneTimes> run(const Goal& goal, const Orders& orders);
  // The same as ping-pong: latency is half of what a write and its echo take. The other end runs
  // echo() until this one has ended.
  Result<LaneTimes> pingPong(const Goal& goal, const Orders& orders);
  Result<LaneTimes> echo(const Orders& orders);  // only iterations are told

  const Histogram& prep() const { return prep_; }  // nanoseconds, of every planning
  Path path() const { return carried().since(before_); }
  // Timed or not. Any thread.
  std::uint64_t transfers() const { return transfers_ended_.load(std::memory_order_relaxed); }
  std::uint64_t sets() const { return seed_.sets; }
  std::uint64_t bytes() const { return seed_.row.bytes(); }

 private:
  class Drive;
  explicit Lane(const LaneSeed& seed);
  Result<Transfer> planOne(std::uint64_t set);
  Status planAgain(std::uint64_t slot);
  Path carried() const;
  Transfer& transfer(std::uint64_t number) { return transfers_[number % transfers_.size()]; }
  Result<Note> waitNote(const Orders& orders);
  Status bounce(std::uint64_t number, const Orders& orders);
  // One thread at a time counts, so that it needs no atomic addition.
  void countTransfer() { transfers_ended_.store(transfers() + 1, std::memory_order_relaxed); }

  LaneSeed seed_;
  std::vector<std::uint32_t> own_order_, remote_order_;
  std::vector<Transfer> transfers_;
  Path retired_;             // what transfers that were planned again had carried
  Path before_;              // what had been when mark() was called
  std::uint64_t begun_ = 0;  // transfers of all runs
  std::atomic<std::uint64_t> transfers_ended_{0};  // since mark()
  Histogram prep_;
  base::Random arrivals_;
};

}  // namespace viaduct::measure
