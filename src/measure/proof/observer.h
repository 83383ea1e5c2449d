// A member's eyes: reads the counters before and after a row. Threads: one at a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

// How long others' traffic is looked at before each row.
inline constexpr std::chrono::milliseconds kLookAround{5};
// Some drivers bring their counters up to date only every second.
inline constexpr std::chrono::milliseconds kLag{1200};

class Observer {
 public:
  // `rails`: Settings::rails or the list of devices that was asked for.
  explicit Observer(std::vector<std::string> rails, std::string root = "/");

  // Measures how fast this host copies memory, in about 100 ms. For one member of each host, while
  // the others wait: together they would measure each other.
  void measureMemory();

  // Both while all members stand still: behind a barrier, or the answer to a message. before()
  // takes kLookAround; after() a fraction of a millisecond, or up to kLag where the devices seem to
  // have carried less than the transfers say.
  void before();
  // `claims`: of the transfers that this member began since before().
  void after(std::vector<Claim> claims);

  const Observation& observation() const { return seen_; }
  // For the member that judges.
  std::string encoded() const { return encode(seen_); }

 private:
  Reading read() const;
  bool carriedWhatIsClaimed() const;
  std::string root_;
  Observation seen_;
};

}  // namespace viaduct::measure::proof
