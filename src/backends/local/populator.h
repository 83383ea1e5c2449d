// Populates shared memory ahead of its first use, so that transfers meet no page faults. Threads:
// any; its own thread starts with the first memory.
#pragma once

#include <viaduct/deadline.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <queue>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/budget.h"

namespace viaduct::local {

class Populator {
 public:
  enum class Pages : std::uint8_t {
    kAll,       // allocates absent pages: for our memory, which our cgroup pays for
    kResident,  // maps pages once they are resident: for memory of a peer
  };
  using RangeId = std::uint64_t;  // 0: no memory was queued
  using FreeMemory = std::function<std::uint64_t()>;

  // Populates at most `most` bytes of each kind. Stops when both kinds together would exceed a
  // quarter of what `free_memory` returns then.
  explicit Populator(std::uint64_t most);
  Populator(std::uint64_t most, FreeMemory free_memory);
  ~Populator();
  Populator(const Populator&) = delete;
  Populator& operator=(const Populator&) = delete;

  // Queues a mapping of a memfd, which has to stay until remove(). Populating leaves the contents
  // as they are.
  RangeId add(std::span<std::byte> memory, Pages pages);
  // On return the populating thread leaves the memory alone. Waits for at most one step, about half
  // a millisecond.
  void remove(RangeId id);
  // Whether all that was added is populated or given up. For tests.
  bool idle() const;

 private:
  using DueRange = std::pair<Clock::time_point, RangeId>;
  using Lock = std::unique_lock<std::mutex>;

  struct Range {
    std::span<std::byte> memory;
    Pages pages;
    std::vector<bool> done;           // one flag per step
    std::size_t next = 0;             // next step of this pass
    bool progress = false;            // in this pass
    std::chrono::milliseconds pause;  // before the next pass
    std::uint64_t populated = 0;      // bytes
  };

  base::Budget& budget(Pages pages) { return budgets_[static_cast<std::size_t>(pages)]; }
  bool start();
  void run();
  std::optional<Clock::time_point> advance(Lock& lock, RangeId id, Range& range);
  static std::optional<Clock::time_point> endPass(Range& range);

  const FreeMemory free_memory_;
  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable work_, stepped_;
  std::array<base::Budget, 2> budgets_;
  std::map<RangeId, Range> ranges_;  // ranges until remove()
  // Ranges with steps left. An id without a range was removed.
  std::priority_queue<DueRange, std::vector<DueRange>, std::greater<>> queue_;
  RangeId last_ = 0, stepping_ = 0;  // newest id; id whose step runs now, without the lock
  std::uint64_t populated_ = 0;      // bytes of all ranges
  unsigned until_look_ = 0;          // steps until the free memory is read again
  bool over_ = false;
  std::thread thread_;
};

}  // namespace viaduct::local
