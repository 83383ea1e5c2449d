// The initiator of `viaduct p2p`. It measures rate, latency and path for each size. Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/waiting.h"
#include "measure/p2p/request.h"
#include "measure/proof/lane.h"
#include "measure/proof/share.h"
#include "measure/result/report.h"
#include "measure/run/worker.h"

namespace viaduct::measure::p2p {

class P2pInitiator {
 public:
  // `settings` are the agent's.
  P2pInitiator(Agent& agent, const Settings& settings, Peer target, const base::StopFlag& stop);

  // Introduces this end, and returns the target as a member. Waits while the target serves another
  // initiator: `busy` is called once, and `waiting` repeatedly.
  Result<RunMember> greet(Deadline until, const std::function<void(const std::string&)>& busy,
                          const base::SayWaiting& waiting = {});
  // Measures the rows of `spec` one after the other, and passes each to `row`. A row that cannot be
  // measured says why. An error ends the measurement: the target is gone, or one end was
  // interrupted. The interrupted row is passed as far as it was measured.
  Status measure(const Spec& spec, const std::function<void(const Composed&)>& row,
                 const Heard& heard = {});
  // Tells the target that this end leaves, if the target is still there.
  void leave();
  RunMember self() const;  // this end as a member

 private:
  // Sends a request and waits for the answer. Fails with kPeerLost if the target is gone, and with
  // kCancelled if `stop` is set.
  Result<std::string> ask(P2pRequest request, Deadline until);
  Result<Composed> measureRow(const Spec& spec, const Heard& heard);

  Agent& agent_;
  const Settings settings_;
  const base::StopFlag& stop_;
  const NoteSource notes_;
  const Peer target_;
  std::uint64_t last_ = 0;  // the number of the last request
};

}  // namespace viaduct::measure::p2p
