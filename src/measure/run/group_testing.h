// A group whose members are threads of one process, for tests.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meet/groups/group.h"

namespace viaduct::measure {

class ThreadGroup final : public meet::Group {
 public:
  // The state that the threads share.
  struct Table {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::uint64_t, std::map<std::uint32_t, std::string>> rounds;
    std::optional<Error> trouble;
    std::optional<std::uint32_t> stop_requested_by;
  };
  ThreadGroup(std::shared_ptr<Table> table, meet::Roster roster)
      : table_(std::move(table)), roster_(std::move(roster)) {}

  const meet::Roster& roster() const override { return roster_; }
  Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                          const meet::StopFlag& stop) override {
    std::unique_lock held(table_->mutex);
    if (!std::exchange(given_, true)) {
      table_->rounds[++round_][roster_.rank] = std::move(value);
      table_->changed.notify_all();
    }
    auto& round = table_->rounds[round_];
    while (round.size() < roster_.members.size()) {
      if (table_->trouble) return *table_->trouble;
      if (stop.load() || until.passed()) return Error{.code = Code::kCancelled};
      table_->changed.wait_for(held, std::chrono::milliseconds(10));
    }
    given_ = false;
    std::vector<std::string> all;
    for (const auto& [rank, text] : round) all.push_back(text);
    return all;
  }
  std::optional<Error> trouble() const override {
    const std::lock_guard held(table_->mutex);
    return table_->trouble;
  }
  void requestStop() override {
    const std::lock_guard held(table_->mutex);
    table_->stop_requested_by = roster_.rank;
  }
  std::optional<std::uint32_t> stopRequestedBy() override {
    const std::lock_guard held(table_->mutex);
    return table_->stop_requested_by;
  }
  void abandon(const std::string& reason) override {
    const std::lock_guard held(table_->mutex);
    table_->trouble = Error{.code = Code::kCancelled, .operation = "group", .detail = reason};
    table_->changed.notify_all();
  }
  Status finish(Deadline /*until*/) override { return Ok{}; }

 private:
  std::shared_ptr<Table> table_;
  meet::Roster roster_;
  std::uint64_t round_ = 0;
  bool given_ = false;  // this member has already given its value of the round
};

}  // namespace viaduct::measure
