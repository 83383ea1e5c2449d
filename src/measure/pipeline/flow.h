// Transfers of a pipeline: each stage alone, and the whole pipeline. Threads: see the functions.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::measure::pipeline {

// One planned transfer that moves its bytes again and again. Threads: one at a time.
class Flow {
 public:
  // Plans a copy from `from`, memory or storage of this agent, to `into` of `peer`.
  static Result<Flow> plan(Agent& agent, const Peer& peer, const PinInfo& from,
                           const PinInfo& into);

  // Moves the bytes until `enough` is set, at least once. `moved` is set after the first time.
  // Returns early with an error, or once `cancel` is set.
  Status run(const std::atomic<bool>& enough, std::atomic<bool>& moved,
             const std::atomic<bool>& cancel);

  // Of the last run():
  std::uint64_t times() const { return times_; }
  std::chrono::nanoseconds took() const { return took_; }  // up to the end of the last transfer
  std::uint64_t bytes() const { return transfer_.bytes(); }
  Path path() const { return transfer_.path(); }

 private:
  explicit Flow(Transfer transfer) : transfer_(std::move(transfer)) {}
  Status once(const std::atomic<bool>& cancel);

  Transfer transfer_;
  std::uint64_t times_ = 0;
  std::chrono::nanoseconds took_{0};
};

// Returns the mechanisms of a path, without amounts: "file/uring", "tcp/socket".
std::string wayOf(const Path& path);

// Reads the first bytes of an object in its present version.
Result<std::vector<std::byte>> readObject(Agent& agent, const std::string& url,
                                          std::uint64_t bytes);

}  // namespace viaduct::measure::pipeline
