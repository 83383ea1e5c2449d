// One member's part of a pipeline: its files, objects and memory, and the flows between them. All
// rows of the pipeline share one PipelineFlows. Threads: one at a time, besides the threads that
// run() starts for flows.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/proof/observation.h"
#include "measure/run/flow.h"
#include "measure/run/pipeline_memory.h"
#include "measure/run/pipeline_storage.h"
#include "measure/run/row_transfers.h"
#include "measure/run/worker.h"
#include "measure/workload/pipeline_contents.h"
#include "measure/workload/pipeline_routes.h"

namespace viaduct::measure::pipeline {

// The results of a flow in one round.
struct FlowReport {
  std::uint32_t route = 0;
  std::uint64_t times = 0, bytes = 0, start_ns = 0, ns = 0;
  std::string way = {};
  std::vector<std::uint64_t> busy_ns = {};  // of each stage of the pipeline that the flow carries
};
auto fields(base::Is<FlowReport> auto& r) {
  return std::tie(r.route, r.times, r.bytes, r.start_ns, r.ns, r.way, r.busy_ns);
}

class PipelineFlows {
 public:
  explicit PipelineFlows(WorkerState& worker);
  // Opens the storage, allocates the memory, and connects to the other member. All members
  // call this, and each returns the first failure of any member.
  Status open();

  const Pipeline& pipeline() const { return *worker_.spec.pipeline; }
  std::uint64_t bytes() const { return bytes_; }  // of each transfer
  const Case& caseOf(std::uint32_t number) const { return cases_[number]; }
  std::size_t cases() const { return cases_.size(); }

  // Writes fresh contents into source memory, and zeros into all other memory. A destination file
  // is not cleared: each round has its own epoch, so the file's old contents are not accepted. The
  // whole pipeline may store equal contents in every round, but in each round a case with other
  // contents runs before it.
  Status fill(const Case& one);
  // Runs this member's flows of the case, at the same time as those of the other member.
  Status run(const Case& one, const Goal& goal, const Moving& moving);
  // Returns the reports of this member's flows in the last run.
  std::vector<FlowReport> reports(const Case& one) const;
  // Returns the flows' claims for the last run.
  std::vector<proof::Claim> claims(const Case& one) const;
  std::uint64_t bytesMoved() const;

  struct Checked {
    std::uint64_t transfers = 0;
    std::string wrong = {};  // the first wrong bytes
  };
  // Checks the contents that the last run delivered to this member.
  Result<Checked> check(const Case& one);

 private:
  struct Opening;
  template <class T>
  Result<std::vector<T>> exchange(const T& own);
  Error atRank(Error error, std::uint32_t rank) const;
  Status firstFailure(const std::vector<Failure>& by_rank) const;
  Status allWell(const Status& mine);
  const Chunking& chunks() const { return worker_.spec.pipeline_data.chunks; }
  std::uint32_t last() const { return pipeline().processes() - 1; }

  Status shareSource();
  Status openSource(Opening& own);
  Status openDestination();
  Status prepare();
  Status connect();
  Status reach(const Peer& peer, std::uint32_t rank) const;
  Status planRoutes();
  Result<Wrong> readUnlessStopped(const PinnedStorage& storage, const PinnedStorage::Visit& visit);
  Expected contentsOf(const Route& route) const;
  const Route& originOf(const Case& one, std::uint32_t i) const;
  Result<Wrong> mismatchOf(const Route& route, const Expected& expected);
  std::uint64_t placesIn(const End& end) const;

  WorkerState& worker_;
  const std::vector<Route> routes_;
  const std::vector<Case> cases_;
  std::uint64_t bytes_ = 0;
  std::uint64_t epoch_ = PinnedStorage::kSourceEpoch;  // of the last fill()
  std::unique_ptr<PinnedStorage> source_, destination_;
  std::string source_identity_;
  Expected source_contents_;
  Memories memories_;
  std::optional<Peer> self_, other_;
  std::vector<std::unique_ptr<Flow>> flows_;  // by route; null: the other member initiates the flow
};

}  // namespace viaduct::measure::pipeline
