// Transfers of class background that stay in flight beside the timed transfers of a row. Threads:
// one, besides those that it starts.
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
  // Two devices between which the transfers go, at these addresses.
  struct Ends {
    Peer peer;
    std::uint64_t here = 0, there = 0;
    proof::Claim claim = {};  // without its path
  };
  // Plans a flow: `bytes` is the size of each transfer.
  Status add(Agent& agent, const Ends& ends, std::uint64_t bytes, std::string require);
  // Starts a thread for each flow.
  void start();
  // Returns when no transfer is in flight: the failure of a flow, if one has failed.
  Failure stop();

  void mark();  // counts begin here
  std::vector<proof::Claim> claims() const;
  BackgroundShare figures() const;

 private:
  struct Flow {
    proof::Claim claim = {};
    std::uint64_t bytes = 0;
    std::vector<Transfer> transfers = {};
    std::thread thread = {};
    Failure failure = {};
    Path before = {};           // carried at mark()
    std::uint64_t ended = 0;    // transfers since mark()
    std::uint64_t counted = 0;  // of these, those that ended before stop()
    double seconds = 0;         // in which these ended
    double longest_gap_s = 0;   // between two ends
  };
  void run(Flow& flow) const;

  std::deque<Flow> flows_;  // threads refer to them
  std::atomic<bool> stopped_ = false;
};

}  // namespace viaduct::measure
