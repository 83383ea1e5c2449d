// The members of a run as threads of one process, over the fake fabric, for tests. Threads: one,
// unless a function's comment allows more.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "measure/run/group_testing.h"
#include "measure/run/worker.h"

namespace viaduct::measure {

class Members {
 public:
  // Every member gets `heard`. `fake` configures the fake backend of all members.
  explicit Members(Spec spec, const std::string& faults = {}, const Heard& heard = {},
                   const std::string& fake = {})
      : spec_(std::move(spec)), stops_(spec_.layout.processes()), stop_by_(stops_.size()) {
    meet::Roster roster{.group = "test"};
    for (std::uint32_t rank = 0; rank < spec_.layout.processes(); ++rank) {
      agents_.push_back(*Agent::open({.listen = {},
                                      .backends = {"fake"},
                                      .faults = faults,
                                      .faults_allowed = true,
                                      .others = {{"VIADUCT_FAKE", fake}}}));
      roster.members.push_back({.rank = rank, .name = "m", .about = aboutOf(agents_.back())});
    }
    const auto table = std::make_shared<ThreadGroup::Table>();
    for (std::uint32_t rank = 0; rank < spec_.layout.processes(); ++rank) {
      roster.rank = rank;
      groups_.push_back(std::make_unique<ThreadGroup>(table, roster));
      workers_.push_back(std::make_unique<Worker>(spec_, agents_[rank], *groups_[rank], Settings{},
                                                  stops_[rank], heard));
    }
  }

  // Returns rank 0's rows.
  std::vector<Row> measure() {
    std::vector<Row> rows;
    std::vector<std::thread> threads;
    for (std::uint32_t rank = 0; rank < workers_.size(); ++rank)
      threads.emplace_back([&, rank] {
        const auto opened = workers_[rank]->open();
        EXPECT_TRUE(opened) << opened.error().text();
        if (!opened) return;
        for (const Workload& row : spec_.rows) {
          auto made = workers_[rank]->measure({&row, 1});
          EXPECT_TRUE(made) << made.error().text();
          if (made && rank == 0) rows.push_back(std::move(made->front().row));
          if (made) stop_by_[rank] = made->front().stop_by;
        }
      });
    for (std::thread& thread : threads) thread.join();
    return rows;
  }
  // Sets the member's stop flag, as a signal would. Any thread.
  void stop(std::uint32_t rank) { stops_[rank].store(true); }
  // Returns the rank that ended the last row, as member `rank` knows it.
  std::optional<std::uint32_t> stopBy(std::uint32_t rank) const { return stop_by_[rank]; }

 private:
  Spec spec_;
  std::vector<StopFlag> stops_;
  std::vector<std::optional<std::uint32_t>> stop_by_;
  std::vector<Agent> agents_;
  std::vector<std::unique_ptr<ThreadGroup>> groups_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

inline bool well(const Row& row) {
  return row.verdict == Verdict::kOk || row.verdict == Verdict::kUnproven;
}

}  // namespace viaduct::measure
