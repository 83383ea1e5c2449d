// Exchanges failures, reports and stop requests between this member of a row and the others. After
// a stop request, the members still compose the row. Threads: one.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "measure/proof/share.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

// After a stop request, the members have this long to compose the row.
inline constexpr std::chrono::seconds kLastWords{10};

class RowMember {
 public:
  explicit RowMember(WorkerState& worker) : worker_(worker) {}

  // Keeps the first failure of this member.
  void keep(const Status& done);
  // Keeps the error "another failed" for a row that another member has ended.
  void keepFailureOfOthers();
  const Failure& failure() const { return failure_; }

  // Returns true once a member has asked to stop. If this process's stop flag is set, tells the
  // other members.
  bool lookForStop();
  // Returns when a stop request was first seen here. The first call records the present time.
  Clock::time_point stopSeen();

  // Like WorkerState::gather(), but after a stop request continues for up to kLastWords.
  Result<std::vector<std::string>> gather(std::string value);
  // Returns whether all members are well. All members learn of a failure.
  Result<bool> allWell();
  // Like allWell(), and returns the values `told` of all members. Nothing: a member has failed.
  Result<std::optional<std::vector<std::string>>> exchange(const std::string& told);
  // Exchanges the reports of a round, with this member's failure and the stop request that it
  // knows.
  Result<Rounds::Round> report(RoundShare share);
  // The rank that asked to stop, from the reports of a round. So all members return the same rank.
  std::optional<std::uint32_t> stopBy() const { return stop_by_; }
  // Exchanges the shares of the row, with this member's failure. Rank 0 gets the row.
  Result<Composed> finish(RowShare share, const Workload& row, const Rounds& rounds);

 private:
  Result<std::vector<std::string>> gather(std::string value, bool ends_round);
  void requestStop();

  WorkerState& worker_;
  Failure failure_;
  double exchange_s_ = 0;       // the duration of the last exchange
  bool asked_to_stop_ = false;  // has called requestStop(); the others learn it later
  bool stopping_ = false;       // lookForStop() has seen a request
  std::optional<Clock::time_point> stop_seen_;
  std::optional<std::uint32_t> stop_by_;
};

}  // namespace viaduct::measure
