// One process of a run: its agent, memory and peers, and its part of every row. Threads: one,
// besides the threads that it starts for its lanes.
#pragma once

#include <viaduct/agent.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/waiting.h"
#include "measure/proof/lane.h"
#include "measure/proof/observer.h"
#include "measure/proof/share.h"
#include "measure/run/gpu_copies.h"
#include "measure/workload/buffer.h"
#include "measure/workload/spec.h"
#include "measure/workload/storage.h"
#include "meet/groups/group.h"

namespace viaduct::measure {

using base::StopFlag;

// Returns the text that a member publishes about itself when it joins a group: its agent's card.
std::string aboutOf(const Agent& agent);

// Callbacks for a worker's progress.
struct Heard {
  base::SayWaiting waiting = {};  // names the missing members during a long wait
  // As Progress::turn, but `number` counts from 0 for the first of the rows that take turns.
  std::function<void(std::size_t number, const std::string& what)> turn = {};
  // Called repeatedly while a row runs, with the rate of this process's streams so far.
  std::function<void(double gb_per_s)> tick = {};
  std::function<void(const RateInterval& interval)> interval = {};  // of this process's streams
  // Called repeatedly while storage or a pool gets its first contents. `done` of `of` parts have
  // them.
  std::function<void(const char* what, std::uint64_t done, std::uint64_t of)> preparing = {};
};

// A device that this process owns.
struct WorkerDevice {
  Role role = Role::kInitiator;
  std::uint32_t number = 0;
  std::optional<Buffer> memory = {};
  std::unique_ptr<Storage> storage = {};  // instead of memory, if the layout has no targets

  std::span<std::byte> bytes() const { return memory ? memory->bytes() : storage->bytes(); }
  const Mirror* mirror() const { return memory ? memory->mirror() : nullptr; }
};

// The state that a worker shares with its rows.
struct WorkerState {
  const Spec& spec;
  Agent& agent;
  meet::Group& group;
  const Settings settings;  // of the agent
  const StopFlag& stop;
  const Heard heard;
  const NoteSource notes;
  const std::vector<Stream> streams;
  const std::uint32_t rank;
  proof::Observer observer;
  DeviceBytes bytes = {};
  std::vector<WorkerDevice> devices = {};
  std::map<std::uint32_t, Peer> peers = {};  // by rank
  std::uint64_t rows = 0;                    // number of rows that have begun

  WorkerDevice* deviceOf(std::uint32_t stream, Role role);
  std::uint32_t rankOf(std::uint32_t stream, Role role) const;
  // Returns the number of the device at an end of the stream.
  std::uint32_t numberOf(std::uint32_t stream, Role role) const;
  // Returns the role of the end that initiates the stream's transfers.
  Role initiating(std::uint32_t stream) const;
  // Returns the values of all members, by rank.
  Result<std::vector<std::string>> gather(std::string value);
  // Waits until all peers are ready. A peer may have been lost since the last row.
  Status waitForPeers();
};
// Returns whether all members are well, from the failures that they have sent.
Result<bool> areWell(const std::vector<std::string>& failures);

class RowTransfers;
namespace pipeline {
class PipelineFlows;
}
namespace swap {
class Pools;
}

class Worker {
 public:
  // `settings` are the agent's settings. `notes` returns the notes for this worker; by default all
  // notes of the agent.
  Worker(const Spec& spec, Agent& agent, meet::Group& group, const Settings& settings,
         const StopFlag& stop, Heard heard, NoteSource notes = {});

  // Adds a member that is connected already.
  void know(std::uint32_t rank, Peer peer) { state_.peers.emplace(rank, std::move(peer)); }
  // The peers to which this process initiates, by rank. Complete after open().
  const std::map<std::uint32_t, Peer>& peers() const { return state_.peers; }

  // Allocates memory, opens storage, and connects to the peers to which this process initiates.
  // Every member must call this.
  Status open();
  // Measures rows whose rounds take turns; see roundsTakeTurns(). All members call this for the
  // same rows in the same order, and rank 0 gets the results. An error ends the run.
  Result<std::vector<Composed>> measure(std::span<const Workload> rows);

 private:
  // Returns whether all members are well. All members learn of a failure.
  Result<bool> allWell(const Failure& mine);
  std::vector<std::uint32_t> ownDevices(Role role) const;
  std::vector<std::string> files() const;
  Status openGpus();
  Status makeMemory();
  Result<Buffer> makeBuffer(Role role, std::uint32_t number) const;
  Status makeStorage(std::uint32_t number);
  Status reachPeers();
  Status reach(std::uint32_t rank);
  Status measureMemoryRates();
  Status measureGpuRates();
  Result<std::vector<proof::GpuRate>> measured(const std::vector<GpuTurn>& turns);
  Gpu gpuWithId(const std::string& id) const;

  std::unique_ptr<RowTransfers> transfersOf(const Workload& row);

  WorkerState state_;
  std::map<std::uint32_t, Gpu> gpus_;                       // of own devices, by number
  std::shared_ptr<pipeline::PipelineFlows> pipeline_ = {};  // of the rows of a pipeline
  std::shared_ptr<swap::Pools> pools_ = {};                 // of swap rows
};

}  // namespace viaduct::measure
