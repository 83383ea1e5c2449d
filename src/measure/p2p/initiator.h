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
#include "measure/p2p/ask.h"
#include "measure/proof/judge.h"
#include "measure/proof/observer.h"
#include "measure/result/report.h"

namespace viaduct::measure::p2p {

struct Plan {
  std::vector<std::uint64_t> sizes = {};
  std::uint64_t iterations = 100;  // timed
  std::uint64_t warmup = 10;       // before them
  std::string require = {};        // as TransferOptions::require
  std::vector<proof::LinkRate> link_rates = {};
};

class Initiator {
 public:
  // `rails`: Settings::rails of the agent.
  Initiator(Agent& agent, std::vector<std::string> rails, Peer target, const base::StopFlag& stop);

  // Introduces us; waits while the target is busy with another, which `busy` hears at once and
  // `waiting` again and again. Gives the target as a member.
  Result<Member> greet(Deadline until, const std::function<void(const std::string&)>& busy,
                       const base::SayWaiting& waiting = {});
  // One row for each size, handed over as soon as it is known. What cannot be measured is a row
  // that says why; an error is the end: the target is gone, or `stop` was set.
  Status measure(const Plan& plan, const std::function<void(const Row&, const std::string&)>& row);
  void leave() { asker_.leave(); }
  Member self() const;  // this end, as a member

 private:
  struct Timed;
  Result<Row> measureSize(const Plan& plan, std::uint64_t bytes);
  Result<Row> prepareAndTime(const Plan& plan, std::uint64_t bytes);
  Status time(Transfer& transfer, const Plan& plan, std::uint64_t bytes, Timed& into);
  Status once(Transfer& transfer);
  Result<Row> rowOf(const Plan& plan, std::uint64_t bytes, const Timed& timed);
  Result<std::string> ask(Request request);

  Agent& agent_;
  const base::StopFlag& stop_;
  Asker asker_;
  proof::Observer observer_;
  std::uint64_t labels_ = 0;
  std::string conclusion_;
};

}  // namespace viaduct::measure::p2p
