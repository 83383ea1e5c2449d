// The group of the two ends of `viaduct p2p`. Members of other benchmarks exchange values at a
// meeting place. These two members exchange values as notes of their session. Threads: one, besides
// trouble().
#pragma once

#include <viaduct/agent.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "measure/proof/lane.h"
#include "meet/groups/group.h"

namespace viaduct::measure::p2p {

class PairGroup final : public meet::Group {
 public:
  // `rank` is ours; 0 is the initiator. `notes` returns the other end's notes. `has_left` says
  // whether the other end has left.
  PairGroup(std::uint32_t rank, Peer other, const NoteSource& notes,
            std::function<bool()> has_left);

  const meet::Roster& roster() const override { return roster_; }
  Result<std::vector<std::string>> gather(std::string value, Deadline until,
                                          const meet::StopFlag& stop) override;
  std::optional<Error> trouble() const override;
  void requestStop() override;
  std::optional<std::uint32_t> stopRequestedBy() override;
  // Sends nothing: the other end notices that the session has ended.
  void abandon(const std::string& /*reason*/) override {}
  Status finish(Deadline /*until*/) override { return Ok{}; }

  // Returns the other end's notes, without its requests to stop. Notes that arrived earlier come
  // first.
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
  std::string own_;  // this end's value of the round
};

}  // namespace viaduct::measure::p2p
