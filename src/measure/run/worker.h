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

// What a worker and its rows share.
struct WorkerState {
  const Spec& spec;
  Agent& agent;
  meet::Group& group;
  const StopFlag& stop;
  const Heard heard;
  const NoteSource notes;
  const std::vector<Stream> streams;
  const std::uint32_t rank;
  proof::Observer observer;
  DeviceBytes bytes = {};
  std::vector<WorkerDevice> devices = {};
  std::map<std::uint32_t, Peer> peers = {};  // by rank
  std::uint64_t rows = 0;                    // begun
  std::optional<Clock::time_point> stop_seen = {};

  WorkerDevice* deviceOf(std::uint32_t stream, Role role);
  std::uint32_t rankOf(std::uint32_t stream, Role role) const;
  // Which end of a stream runs it.
  Role initiating(std::uint32_t stream) const;
  // When a wish to stop was first seen: now, if it was not yet.
  Clock::time_point stopSeen();
  // All members' values, by rank.
  Result<std::vector<std::string>> gather(std::string value);
};
// Whether all members, who have told their failures, are well.
Result<bool> areWell(const std::vector<std::string>& failures);

class Worker {
 public:
  // `rails` lists the rails that the user named; empty means any. `notes`: all that the agent
  // hears, unless given.
  Worker(const Spec& spec, Agent& agent, meet::Group& group, const std::vector<std::string>& rails,
         const StopFlag& stop, Heard heard, NoteSource notes = {});

  // A member that is reached already.
  void know(std::uint32_t rank, Peer peer) { state_.peers.emplace(rank, std::move(peer)); }

  // Makes memory, and reaches the peers that this process initiates to. Every member calls it.
  Status open();
  // Every member calls it for the same rows in the same order; rank 0 gets what they make. An error
  // is the end of the run.
  Result<Composed> measure(const Workload& row);

 private:
  // Whether all members are well; else everybody knows that somebody is not.
  Result<bool> allWell(const Failure& mine);
  Status makeMemory();
  Status reachPeers();
  Status reach(std::uint32_t rank);
  Status measureMemoryRates();

  WorkerState state_;
};

}  // namespace viaduct::measure
