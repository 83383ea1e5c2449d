// The two ends of a measurement as a group. What the members of a benchmark tell each other at a
// meeting place, these tell each other over their session. Threads: one, besides trouble().
#pragma once

#include <viaduct/agent.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "measure/lane/lane.h"
#include "meet/meeting.h"

namespace viaduct::measure::p2p {

class PairGroup final : public meet::Group {
 public:
  // `rank`: ours; 0 is the initiator. `notes`: what the other end says. `has_left`: whether it said
  // goodbye.
  PairGroup(std::uint32_t rank, Peer other, const NoteSource& notes,
            std::function<bool()> has_left);

  const meet::Roster& roster() const override { return roster_; }
  Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                          const meet::StopFlag& stop) override;
  std::optional<Error> trouble() const override;
  void requestStop() override;
  std::optional<std::uint32_t> stopRequestedBy() override;
  void abandon(const std::string& /*reason*/) override {}  // the session's end says so
  Status finish(Deadline /*until*/) override { return Ok{}; }

  // What the other end says besides requests to stop, also what came while one was looked for.
  NoteSource notes() {
    return [this](Deadline until) { return next(until); };
  }

 private:
  Result<Note> next(Deadline until);
  bool takeStop(const Note& note);

  const Peer other_;
  const std::uint64_t life_;
  const NoteSource& notes_;
  const std::function<bool()> has_left_;
  meet::Roster roster_;
  std::deque<Note> early_;
  bool stop_requested_ = false;  // by the other end
  std::uint64_t round_ = 0, told_ = 0;
  std::string own_;  // our value in the round
};

}  // namespace viaduct::measure::p2p
