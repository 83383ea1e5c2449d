// The end of `viaduct p2p` that is written to: gives memory to one initiator after the other, and
// says what arrived. Threads: one.
#pragma once

#include <viaduct/agent.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "measure/p2p/request.h"
#include "measure/proof/observer.h"

namespace viaduct::measure::p2p {

using base::StopFlag;

class Target {
 public:
  // What happens, in words: "node-b is here", "node-b has left".
  using Told = std::function<void(const std::string& line)>;

  // `rails`: Settings::rails of the agent.
  Target(Agent& agent, std::vector<std::string> rails, Told told);

  // Answers until `stop` is set.
  void serve(const StopFlag& stop);

 private:
  void take(const Note& note);
  Result<std::string> answer(const Request& request);
  Result<std::string> prepare(const Request& request);
  Result<std::string> verify(const Request& request);
  Result<std::string> greet();
  std::string after();
  // A guest that has died, or left without a word, makes room for the next.
  void lookAfterGuest();
  void dismiss(const std::string& why);

  Agent& agent_;
  const Told told_;
  proof::Observer observer_;
  double cpu_before_ = 0;
  std::optional<Peer> guest_;
  std::string guest_name_;
  std::optional<Pin> memory_;
};

}  // namespace viaduct::measure::p2p
