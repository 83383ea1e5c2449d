// The end of `viaduct p2p` that is written to: gives memory to one initiator after the other, and
// says what arrived. Threads: one.
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
  // What happens, in words: "node-b connected", "node-b disconnected".
  using Told = std::function<void(const std::string& line)>;

  // `rails`: Settings::rails of the agent.
  P2pTarget(Agent& agent, std::vector<std::string> rails, Told told);

  // Answers until `stop` is set.
  void serve(const StopFlag& stop);

 private:
  void take(const Note& note);
  Result<std::string> answer(const P2pRequest& request);
  Result<std::string> greet();
  Status prepare(const Spec& spec) const;
  // Our part of the measurement that the guest has asked for.
  void run(const StopFlag& stop);
  // The guest's next word about the measurement; what others say is answered meanwhile.
  Result<Note> nextOfGuest(Deadline until);
  // A guest that has died, or left without a word, makes room for the next.
  void lookAfterGuest();
  void dismiss(const std::string& why);

  Agent& agent_;
  const std::vector<std::string> rails_;
  const Told told_;
  std::optional<Peer> guest_;
  std::string guest_name_;
  std::optional<Spec> asked_;  // for a measurement that begins
  std::atomic<bool> left_{false};
};

}  // namespace viaduct::measure::p2p
