// The rate of random I/O in batches: of file_bench, and of its floor file_bare. Threads: one.
#pragma once

#include "harness/program.h"

namespace viaduct::bench {

struct IoLoad {
  std::uint64_t bytes, count;  // bytes of one I/O; I/Os in a batch
  double seconds;
};

// Repeats a batch for a second that does not count, and then for the load's seconds. Returns fields
// of JSON for bench/file_floor.py. The processor time is that of all threads of this process.
template <class Batch>
std::string ioRate(const IoLoad& load, const Batch& batch) {
  using Seconds = std::chrono::duration<double>;
  secondsPerCall(Duration(std::chrono::seconds(1)), batch);
  const double processor = processorSeconds();
  const auto start = Clock::now();
  const double each =
      secondsPerCall(std::chrono::duration_cast<Duration>(Seconds(load.seconds)), batch) /
      static_cast<double>(load.count);
  const double busy = (processorSeconds() - processor) / secondsSince(start);
  return fmt::format(R"("iops": {:.0f}, "bytes_per_second": {:.0f}, "cpu_us_per_io": {:.3f})",
                     1 / each, static_cast<double>(load.bytes) / each, busy * each * 1e6);
}

}  // namespace viaduct::bench
