// The target of `viaduct p2p`. It gives memory to one initiator at a time and reports its events.
// Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "measure/p2p/request.h"

namespace viaduct::measure::p2p {

using base::StopFlag;

class P2pTarget {
 public:
  // Receives a line about each event: "node-b connected", "node-b disconnected".
  using Told = std::function<void(const std::string& line)>;

  // `rails` is the agent's Settings::rails.
  P2pTarget(Agent& agent, std::vector<std::string> rails, Told told);

  // Answers requests until `stop` is set.
  void serve(const StopFlag& stop);

 private:
  void take(const Note& note);
  Result<std::string> answer(const P2pRequest& request);
  Result<std::string> greet();
  Status prepare(const Spec& spec) const;
  // Runs this end's part of the measurement that the guest, the present initiator, asked for.
  void run(const StopFlag& stop);
  // Returns the guest's next note about the measurement. Meanwhile it answers other initiators.
  Result<Note> nextOfGuest(Deadline until);
  // Dismisses a guest that has died or left, so that the next one is served.
  void lookAfterGuest();
  void dismiss(const std::string& why);

  Agent& agent_;
  const std::vector<std::string> rails_;
  const Told told_;
  std::optional<Peer> guest_;
  std::string guest_name_;
  std::optional<Spec> asked_;  // the requested measurement, before it begins
  std::atomic<bool> left_{false};
};

}  // namespace viaduct::measure::p2p
