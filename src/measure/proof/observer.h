// Reads the device counters of one member before and after a row. Threads: one at a time.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure/proof/observation.h"

namespace viaduct::measure::proof {

// The time for which other programs' traffic is observed before each row.
inline constexpr std::chrono::milliseconds kLookAround{5};
// The longest delay of counters: some drivers update them only every second.
inline constexpr std::chrono::milliseconds kLag{1200};

class Observer {
 public:
  using RailStatisticsOf = std::function<std::vector<RailStatistics>()>;
  // `rails` is Settings::rails, or the requested list of devices. `statistics` reads the rail
  // statistics of the member's agent. Null: the agent's sockets are unknown.
  explicit Observer(std::vector<std::string> rails, std::string root = "/",
                    RailStatisticsOf statistics = {});

  // Measures this host's copy rate in about 100 ms. Only one member of each host calls it while the
  // others wait, because concurrent measurements would slow each other.
  void measureMemory(std::uint64_t working_set);

  // Sets the GPUs of this member's devices, and the rates that this member has measured for them.
  void setGpus(std::vector<GpuPlace> gpus, std::vector<GpuRate> rates);

  // Sets the files that this member moves, or the folders in which it makes files.
  void setFiles(std::span<const std::string> paths);

  // Call before(), resume() and pause() while all members are idle, after a barrier or an answer.
  // before() takes kLookAround.
  Observation before() const;
  // Bytes that move between pause() and resume() do not count. A row ends with pause().
  void resume(Observation& seen) const;
  void pause(Observation& seen) const;
  // Adds the claims of the transfers that this member began since before(). Waits while the devices
  // have counted fewer bytes than claimed, until the row has taken kLag.
  void claim(Observation& seen, std::vector<Claim> claims) const;

  const HostPlace& place() const { return place_; }

 private:
  Reading read() const;
  void readCauses(Reading& into) const;
  std::string root_;
  RailStatisticsOf statistics_;
  HostPlace place_;
};

}  // namespace viaduct::measure::proof
