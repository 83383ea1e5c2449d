// Transfers with Priority::kBackground that stay in flight beside the timed transfers of a row.
// Threads: one, besides those that it starts.
#pragma once

#include <viaduct/transfer.h>

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "measure/proof/observation.h"
#include "measure/proof/share.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

class Background {
 public:
  // The peer, and the addresses of the memory at both ends of a flow's transfers.
  struct Ends {
    Peer peer;
    std::uint64_t here = 0, there = 0;
    proof::Claim claim = {};  // its path is empty; claims() fills it in
  };
  // Plans a flow of transfers of `bytes` bytes each.
  Status add(Agent& agent, const Ends& ends, std::uint64_t bytes, const std::string& require);
  // Starts a thread for each flow.
  void start();
  // Stops posting, and waits for the transfers in flight. Returns the first failure of a flow, if
  // any. A flow that has failed does not wait for its other transfers.
  Failure stop();

  void mark();  // resets the counts of claims() and figures()
  std::vector<proof::Claim> claims() const;
  BackgroundShare figures() const;

 private:
  struct Flow {
    proof::Claim claim = {};
    std::uint64_t bytes = 0;
    std::vector<Transfer> transfers = {};
    std::thread thread = {};
    Failure failure = {};
    Path before = {};           // path of the bytes carried before mark()
    std::uint64_t ended = 0;    // transfers since mark()
    std::uint64_t counted = 0;  // the part of `ended` before stop()
    double seconds = 0;         // the time of the `counted` transfers
    double longest_gap_s = 0;   // longest time between two completions
  };
  void run(Flow& flow) const;

  std::deque<Flow> flows_;  // threads refer to them
  std::atomic<bool> stopped_ = false;
};

}  // namespace viaduct::measure
