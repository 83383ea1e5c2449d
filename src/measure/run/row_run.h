// One member's part of one row. Threads: one, besides those that it starts for its lanes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/run/contents.h"
#include "measure/run/lane.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

class RowRun {
 public:
  RowRun(Worker& worker, const Workload& row);
  Result<Composed> run();

 private:
  enum class Phase : std::uint8_t { kWarm, kTimed };
  struct Own {  // a stream that this process runs an end of
    std::uint32_t stream = 0;
    Role role = Role::kInitiator;
    bool echoes = false;  // the far end of a ping-pong
    std::unique_ptr<Lane> lane;
    LaneTimes times = {};  // of all repeats, besides start and parts
    std::vector<Stretch> stretches = {};
    std::uint64_t most = 0;  // transfers of the longest repeat
    Failure failure = {};
  };

  // False: somebody failed, and the row is over.
  Result<bool> steps();
  Result<bool> timed();
  Status prepare();
  Status plan(Own& own);
  Status runLanes(Phase phase);
  void runLane(Own& own, Phase phase);
  void keep(Own& own, LaneTimes times, Phase phase);
  void watch();
  void fill(std::uint64_t epoch);
  void orderAfterAgent();
  // `all`: how much each stream was used, as its members say.
  Result<bool> verify(const std::vector<std::string>& all);
  void claim();
  std::vector<StreamEnd> ends(bool sources);
  RowShare share() const;
  Result<Composed> finish();

  Worker& worker_;
  const Spec& spec_;
  const Workload& row_;
  Contents contents_;
  std::vector<Own> own_;
  StopFlag stop_lanes_{false};
  std::vector<std::uint64_t> left_ns_;  // when each repeat's barrier let us go
  CpuUse cpu_;
  std::string mismatch_;
  Failure failure_;
};

}  // namespace viaduct::measure
