// The target's part of a row: memory that is written to or read from, its contents, and what its
// process spent. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "measure/load/region.h"
#include "measure/load/workload.h"
#include "measure/run/channel.h"

namespace viaduct::measure {

// The CPU time this process has used, user and system, in seconds.
double cpuSeconds();

class Target {
 public:
  virtual ~Target() = default;
  // Makes memory for the row and pins it under `label`; what was there before is released.
  virtual Status prepare(const Workload& workload, const std::string& label) = 0;
  virtual Status fill(std::uint64_t epoch) = 0;
  // What is wrong with the contents; nothing when they are right.
  virtual Result<std::optional<Mismatch>> verify(std::uint64_t epoch) = 0;
  virtual Result<double> cpu() = 0;
  virtual Status release() = 0;
};

// In the process that does the work.
class OwnTarget final : public Target {
 public:
  explicit OwnTarget(Agent& agent) : agent_(agent) {}
  Status prepare(const Workload& workload, const std::string& label) override;
  Status fill(std::uint64_t epoch) override;
  Result<std::optional<Mismatch>> verify(std::uint64_t epoch) override;
  Result<double> cpu() override { return cpuSeconds(); }
  Status release() override;
  // What was prepared, or nullptr.
  Region* region() { return region_ ? &*region_ : nullptr; }

 private:
  Agent& agent_;
  std::optional<Region> region_;
};

// In another process, where serveTarget() runs at the other end of the channel. `lost`, when given,
// says that this process is known to be dead or frozen: then no answer is waited for.
class RemoteTarget final : public Target {
 public:
  RemoteTarget(Channel& channel, const StopFlag& stop, std::function<bool()> lost = {})
      : channel_(channel), stop_(stop), lost_(std::move(lost)) {}
  Status prepare(const Workload& workload, const std::string& label) override;
  Status fill(std::uint64_t epoch) override;
  Result<std::optional<Mismatch>> verify(std::uint64_t epoch) override;
  Result<double> cpu() override;
  Status release() override;

 private:
  Result<base::Bytes> ask(const base::Writer& request);
  Channel& channel_;
  const StopFlag& stop_;
  std::function<bool()> lost_;
};

// Answers a RemoteTarget until its end of the channel is closed.
Status serveTarget(Channel& channel, Target& target, const StopFlag& stop);

// A value or an error as one message, and back.
base::Bytes encodeAnswer(const Result<base::Bytes>& answer);
Result<base::Bytes> decodeAnswer(std::span<const std::byte> message);

}  // namespace viaduct::measure
