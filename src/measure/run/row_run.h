// Runs one member's part of one row. Threads: one, besides the threads that it starts for its
// lanes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "measure/lane/lane.h"
#include "measure/load/contents.h"
#include "measure/rates/meter.h"
#include "measure/run/schedule.h"
#include "measure/run/spot_checks.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

class RowRun {
 public:
  RowRun(WorkerState& worker, const Workload& row);
  Result<Composed> run();

 private:
  struct Own {  // a stream of which this process runs an end
    std::uint32_t stream = 0;
    Role role = Role::kInitiator;
    bool echoes = false;  // the answering end of a ping-pong
    std::unique_ptr<Lane> lane;
    LaneTimes last = {};   // of the last round
    LaneTimes times = {};  // of all timed rounds, without start and parts
    Failure failure = {};
  };

  // These return false if a member failed and the row is over.
  Result<bool> steps();
  Result<bool> warmUp();
  Result<bool> timed();
  Result<bool> timedRound(const Goal& goal);
  Status prepare();
  Status plan(Own& own);
  // Runs all lanes until each has reached the goal, and gathers the reports of all members.
  Result<Rounds::Round> runRound(const Goal& goal);
  Status runLanes(const Goal& goal);
  void runLane(Own& own, const Goal& goal);
  RoundShare roundShare() const;
  Lane& laneOf(std::uint32_t stream, Role role);
  bool watch();  // returns true if the row is over
  void lookForStop();
  bool isHurried();  // true if the run is being stopped, and the time for checks is over
  // Like gather() and allWell() of the worker, but a stop request does not end them at once. So the
  // row can still be composed.
  Result<std::vector<std::string>> gather(std::string value, bool ends_round = false);
  Result<bool> allWell(const Failure& mine);
  std::uint64_t bytesMoved() const;  // bytes moved by this process's streams
  void report(const std::optional<RateInterval>& interval);
  void touchSinks();
  void fill(std::uint64_t epoch);
  void fillNext(std::uint64_t transfers);  // the next sets, for `transfers` of each stream
  void orderAfterAgent();
  void spotChecks();
  Status runSpotChecks(SpotChecks& checks);
  std::uint64_t verify(const std::vector<SetRange>& used);
  void countChecked(const std::vector<SetRange>& used);
  void claim();
  std::vector<StreamEnd> ends(bool sources);
  // Returns the sets that each stream used in this round. They follow the sets of the rounds
  // before.
  std::vector<SetRange> usedIn(const Rounds::Round& round);
  RowShare share() const;
  Result<Composed> finish();

  WorkerState& worker_;
  const Spec& spec_;
  const Workload& row_;
  Contents contents_;
  std::uint64_t epoch_ = 0;  // of the sources' contents
  Schedule schedule_;
  std::vector<Own> own_;
  Orders orders_{Order::kGoOn};
  bool asked_to_stop_ = false;            // has called requestStop(); the others learn it later
  std::optional<std::uint32_t> stop_by_;  // the rank that asked to stop, by a round's reports
  Meter meter_;
  std::vector<RateInterval> intervals_;
  std::uint64_t left_ns_ = 0;         // when this member left the last barrier
  std::vector<std::uint64_t> begun_;  // transfers of each stream so far
  // The highest content epoch that a fill or a spot check has used; the next takes a higher one.
  std::uint64_t last_epoch_;
  Rounds rounds_;  // timed rounds; only rank 0 keeps them
  CpuUse cpu_;
  proof::ClockWatch clock_;
  std::uint64_t checks_ = 0, missed_ = 0;
  std::string mismatch_;
  Failure failure_;
};

}  // namespace viaduct::measure
