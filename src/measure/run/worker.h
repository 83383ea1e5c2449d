// One process of a run: its agent, its memory, its peers, and its part of every row. Threads: one,
// besides those that it starts for its lanes.
#pragma once

#include <viaduct/agent.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/waiting.h"
#include "measure/lane/lane.h"
#include "measure/load/buffer.h"
#include "measure/load/spec.h"
#include "measure/proof/observer.h"
#include "measure/rates/share.h"
#include "meet/meeting.h"

namespace viaduct::measure {

using base::StopFlag;

// What the members of a group get to know of an agent when it joins.
std::string aboutOf(const Agent& agent);

// What a worker tells while it goes on.
struct Heard {
  base::SayWaiting waiting = {};  // who is missing, in a long wait
  // Now and then, while a row runs: how fast the streams of this process have moved so far.
  std::function<void(double gb_per_s)> tick = {};
  std::function<void(const RateInterval& interval)> interval = {};  // of this process's streams
};

// A device that this process owns.
struct WorkerDevice {
  Role role = Role::kInitiator;
  std::uint32_t number = 0;
  Buffer memory;
};

class Worker {
 public:
  // `rails` lists the rails that the user named; empty means any.
  Worker(const Spec& spec, Agent& agent, meet::Group& group, const std::vector<std::string>& rails,
         const StopFlag& stop, Heard heard, NoteSource notes = {});

  // A member that is reached already.
  void know(std::uint32_t rank, Peer peer) { peers_.emplace(rank, std::move(peer)); }

  // Makes memory, and reaches the peers that this process initiates to. Every member calls it.
  Status open();
  // Every member calls it for the same rows in the same order; rank 0 gets what they make. An error
  // is the end of the run.
  Result<Composed> measure(const Workload& row);

  // All members' values, by rank.
  Result<std::vector<std::string>> gather(std::string value);
  // Whether all members are well; else everybody knows that somebody is not.
  Result<bool> allWell(const Failure& mine);
  static Result<bool> areWell(const std::vector<std::string>& failures);

 private:
  friend class RowRun;
  Status makeMemory();
  Status reachPeers();
  Status reach(std::uint32_t rank);
  Status measureMemoryRates();
  WorkerDevice* deviceOf(std::uint32_t stream, Role role);
  std::uint32_t rankOf(std::uint32_t stream, Role role) const;
  // When a wish to stop was first seen: now, if it was not yet.
  Clock::time_point stopSeen();
  // Which end of a stream runs it.
  Role initiating(std::uint32_t stream) const;

  const Spec& spec_;
  Agent& agent_;
  meet::Group& group_;
  const StopFlag& stop_;
  std::optional<Clock::time_point> stop_seen_;
  const Heard heard_;
  const NoteSource notes_;  // all that the agent hears, unless given
  const std::vector<Stream> streams_;
  const std::uint32_t rank_;
  DeviceBytes bytes_;
  std::vector<WorkerDevice> devices_;
  std::map<std::uint32_t, Peer> peers_;  // by rank
  proof::Observer observer_;
  std::uint64_t rows_ = 0;  // begun
};

}  // namespace viaduct::measure
