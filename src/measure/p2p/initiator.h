// The end of `viaduct p2p` that measures: for each size, how fast and how soon its blocks arrive
// at the target, and what carried them. Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/waiting.h"
#include "measure/lane/lane.h"
#include "measure/p2p/ask.h"
#include "measure/rates/share.h"
#include "measure/result/report.h"
#include "measure/run/worker.h"

namespace viaduct::measure::p2p {

class P2pInitiator {
 public:
  // `rails`: Settings::rails of the agent.
  P2pInitiator(Agent& agent, std::vector<std::string> rails, Peer target,
               const base::StopFlag& stop);

  // Introduces us; waits while the target is busy with another, which `busy` hears at once and
  // `waiting` again and again. Gives the target as a member.
  Result<RunMember> greet(Deadline until, const std::function<void(const std::string&)>& busy,
                          const base::SayWaiting& waiting = {});
  // Measures what `spec` says with the target; its rows one after the other, each handed over as
  // soon as it is known. A row that cannot be measured says why; an error is the end: the target is
  // gone, or one of the two was interrupted, whose row is handed over as far as it was measured.
  Status measure(const Spec& spec, const std::function<void(const Composed&)>& row,
                 const Heard& heard = {});
  void leave() { asker_.leave(); }
  RunMember self() const;  // this end, as a member

 private:
  Result<Composed> measureRow(const Spec& spec, const Heard& heard);

  Agent& agent_;
  const std::vector<std::string> rails_;
  const base::StopFlag& stop_;
  const NoteSource notes_;
  Asker asker_;
};

}  // namespace viaduct::measure::p2p
