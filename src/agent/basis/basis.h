// The basis of all parts of an agent: its settings and identity, its lock and progress engine, its
// backends with their rails, its pins, the callbacks that it owes, and its counters. Threads:
// members are called with the agent's lock held unless their comment says otherwise.
#pragma once

#include <viaduct/agent.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/basis/backends.h"
#include "agent/basis/block_digester.h"
#include "agent/basis/counts.h"
#include "agent/basis/lent_ranges.h"
#include "agent/basis/pins.h"
#include "agent/basis/rails.h"
#include "agent/faults/fault_source.h"
#include "agent/progress/agent_lock.h"
#include "agent/progress/progress_engine.h"
#include "base/fd.h"

namespace viaduct::agent {

class Basis : public std::enable_shared_from_this<Basis> {
 public:
  Basis(const Basis&) = delete;
  Basis& operator=(const Basis&) = delete;

  // Returns an error after shutdown() and in a fork()ed child. Needs no lock.
  Status usable(const char* operation) const;
  Status ofThisProcess(const char* operation) const;  // an error in a fork()ed child only
  // True as soon as shutdown() has begun.
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  using Held = AgentLock::Held;
  Held hold() const;
  ProgressEngine& engine() { return *engine_; }
  Clock::time_point now() const { return engine_->poller().now(); }
  // The time of day. A test moves it with the clock.
  std::chrono::system_clock::time_point wallNow() const {
    return std::chrono::system_clock::now() +
           std::chrono::duration_cast<std::chrono::system_clock::duration>(now() - Clock::now());
  }
  const Settings& settings() const { return settings_; }
  const std::array<std::uint8_t, 16>& id() const { return id_; }
  const std::string& boot() const { return boot_; }  // empty: not known
  bool isThisHost(const std::string& boot) const { return !boot_.empty() && boot == boot_; }

  Backends& backends() { return backends_; }
  core::Backend& backend(std::size_t index) { return backends_[index]; }
  Rails& rails() { return rails_; }
  PinTable& pins() { return *pins_; }
  LentRanges& lentRanges() { return lent_ranges_; }
  Counts& counts() { return counts_; }

  // Storage and memory of GPUs: the segment as its backend has opened it. Blocks, so the caller
  // must not hold the lock. Host memory: the segment itself.
  Result<Segment> opened(const Segment& memory) const;
  Result<Segment> allocateAt(std::uint32_t device, std::uint64_t bytes) const;  // blocks as well
  // allocateAt() with the lock held, for a device that the agent uses already.
  Result<Segment> allocateHeld(std::uint32_t device, std::uint64_t bytes) const;
  // The pins that there are now, for digests of blocks in them.
  std::shared_ptr<const BlockMemory> blockMemory();
  // The duration of a new lease, which VIADUCT_FAULTS may shorten.
  Duration lentFor(Duration asked);

  void owe(std::function<void()> callback);
  bool owesCallbacks() const { return !owed_.empty(); }
  void runCallbacks();  // takes the lock
  // A descriptor that is readable while poll() has work.
  Result<int> eventFd();
  bool hasEventFd() const { return static_cast<bool>(bell_); }
  void ringBell();  // makes eventFd() readable; also called in a section (move/sections.h)
  bool poll();      // takes the lock

 protected:
  explicit Basis(Settings settings) : settings_(std::move(settings)) {}
  ~Basis() = default;
  Status openEngine(Progressable& target, const base::MovableClock* clock);
  Status openBackends(Deadline until);
  // Call it once all backends are open.
  void openPins();
  bool forked() const;

  const Settings settings_;
  std::array<std::uint8_t, 16> id_{};
  std::string boot_;
  std::uint64_t fork_generation_ = 0;
  std::atomic<bool> closed_{false};
  std::shared_ptr<ProgressEngine> engine_;
  std::unique_ptr<FaultSource> faults_;  // null without VIADUCT_FAULTS; outlives the backends
  Backends backends_;
  Rails rails_;
  std::unique_ptr<PinTable> pins_;

 private:
  Status openFaults();
  void pinScratch();
  template <class Skill>
  Result<std::shared_ptr<Skill>> skillFor(MemoryKind kind,
                                          std::shared_ptr<Skill> (core::Backend::*skill)()) const;

  LentRanges lent_ranges_;
  Counts counts_;
  std::vector<std::function<void()>> owed_;
  base::Fd bell_, bell_poller_;
  std::atomic<bool> bell_rung_{false};
};

}  // namespace viaduct::agent
