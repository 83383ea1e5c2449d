// The ways to copy blocks: a transfer of Viaduct, and the plain calls of the driver. Threads: one
// at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "measure/workload/mirror.h"
#include "measure/workload/swap.h"

namespace viaduct::measure::swap {

class Copying {
 public:
  virtual ~Copying() = default;
  // Copies all blocks once, and waits until the copies have ended.
  virtual Status copy() = 0;
  // The time that planning the last copy took.
  virtual Duration planned() const { return Duration(0); }
  // Returns the path of all copies so far.
  virtual Path path() const = 0;
};

// Copies by a transfer: plans, posts and waits. Each copy is planned anew, because an engine swaps
// other blocks each time.
class TransferCopying final : public Copying {
 public:
  TransferCopying(Agent& agent, Peer self, OpKind kind, Selection host, Selection gpu)
      : agent_(agent),
        self_(std::move(self)),
        kind_(kind),
        host_(std::move(host)),
        gpu_(std::move(gpu)) {}
  Status copy() override;
  Duration planned() const override { return planned_; }
  Path path() const override { return path_; }

 private:
  Agent& agent_;
  const Peer self_;
  const OpKind kind_;
  const Selection host_, gpu_;
  Duration planned_{0};
  Path path_;
};

// Copies by one cuMemcpyAsync for each block.
class CallsCopying final : public Copying {
 public:
  struct Call {
    std::uint64_t to = 0, from = 0;
  };
  CallsCopying(Gpu gpu, std::vector<Call> calls, std::uint64_t block_bytes)
      : gpu_(std::move(gpu)), calls_(std::move(calls)), block_bytes_(block_bytes) {}
  ~CallsCopying() override;
  CallsCopying(const CallsCopying&) = delete;
  CallsCopying& operator=(const CallsCopying&) = delete;
  Status copy() override;
  Path path() const override;

 private:
  Status launch() const;

  const Gpu gpu_;
  const std::vector<Call> calls_;
  const std::uint64_t block_bytes_;
  std::uint64_t copies_ = 0;
  cuda::CUstream stream_ = nullptr;
};

}  // namespace viaduct::measure::swap
