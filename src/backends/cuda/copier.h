// Carries out the ops of all transfers that touch memory of GPUs: cuts them into batches, launches
// these, and reports their ends. Threads: under the agent's lock, except the function that
// settling() returns and OpenGpus::open().
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/settings.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "backends/cuda/open_gpu.h"
#include "backends/cuda/pinned_memory.h"
#include "core/op.h"
#include "cuda/end_bell.h"
#include "move/job_table.h"

namespace viaduct::cuda {

// The GPUs that an agent uses. Threads: any.
class OpenGpus {
 public:
  OpenGpus(const Settings& settings, std::shared_ptr<EndBell> bell);
  // Opens the GPU, which loads the driver at the first call. May take half a second.
  Result<std::shared_ptr<OpenGpu>> open(std::uint32_t ordinal);
  // The GPU if it is open; else null.
  std::shared_ptr<OpenGpu> find(std::uint32_t ordinal) const;
  std::vector<std::shared_ptr<OpenGpu>> all() const;

 private:
  const std::string library_;
  const AutoSize kernel_below_;
  const std::shared_ptr<EndBell> bell_;
  std::mutex opening_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<std::shared_ptr<OpenGpu>> gpus_;
};

// A pin as ops name it. A job does not use pins that are younger than itself.
struct CopierPin {
  std::shared_ptr<PinnedMemory> memory = {};  // null: a peer in another process has not lent it yet
  std::uint64_t born = 0;
  std::optional<Error> refused = {};  // why the memory cannot be mapped
};
// The pins of a peer, by slot. A link owns them.
using CopierPins = std::unordered_map<std::uint32_t, CopierPin>;

// Whether kernels of `gpu` may touch the memory. A kernel breaks its context if it touches virtual
// memory that is not open to its device. So true means that the memory certainly is open to it.
bool kernelsMayReach(OpenGpu& gpu, const DeviceBuffer& buffer);

class Copier final : private move::Carrier {
 public:
  Copier(const Settings& settings, std::shared_ptr<OpenGpus> gpus, std::shared_ptr<EndBell> bell);
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;
  ~Copier() = default;

  // core::Backend describes these functions.
  void pin(std::uint32_t slot, std::shared_ptr<PinnedMemory> memory);
  // The names of the peers in other processes that still map the memory, or an empty text.
  using LentTo = std::function<std::string(const PinnedMemory& memory)>;
  Status unpin(std::uint32_t slot, const LentTo& lent_to);
  // Null: there is no such pin, or it is being removed.
  PinnedMemory* find(std::uint32_t slot) const;
  std::uint64_t tick() { return ++births_; }

  // core::Rail describes these functions. `remote` belongs to the work's link, and stays until
  // close().
  std::size_t post(const core::Work& work, const CopierPins& remote);
  void poll(core::Completions& out);
  void cancel(const core::Sink& sink);
  bool busy() const { return busy_ || bell_->rung(); }
  // Whether batches are in flight. If busy() is false, only the bell reports their ends.
  bool waits() const { return waits_; }
  bool hasEnded() const {
    const std::lock_guard lock(mutex_);
    return jobs_.hasReports();
  }

  // core::Link describes close(). Batches that the GPU does not finish soon count as stuck until it
  // does.
  void close(const core::Link& link, core::Completions& out);
  static std::function<bool()> settling(const std::shared_ptr<Copier>& copier);
  // Withdraws all pins, and waits a limited time for the batches in flight. False: a GPU still
  // works on some of them.
  bool stop();
  // Whether the registrar has work for pins that were withdrawn.
  bool unregisters() const;

 private:
  static constexpr std::uint32_t kMostJobs = 64;
  struct GpuJob : move::Job {
    const CopierPins* remote = nullptr;
    std::uint64_t born = 0;
    bool waits = false;  // for the registration of host memory
  };
  // The way in which ops between two pins are copied.
  struct Aim {
    std::shared_ptr<PinnedMemory> from = {}, to = {};
    std::shared_ptr<OpenGpu> gpu = {};
    Direction direction = Direction::kWithin;
    std::uint64_t kernel_below = 0;
    std::uint64_t from_shift = 0, to_shift = 0;  // from the pins' addresses to those of kernels
    std::uint64_t most_bytes = 0;                // of one batch
    CopyBatch::Use* from_use = nullptr;          // the entry for `from` in the batch
    CopyBatch::Use* to_use = nullptr;
  };

  // A batch that a job fills.
  struct Filling {
    Aim aim = {};  // for ops between these pins
    std::optional<std::uint32_t> local_pin = {}, remote_pin = {};
    bool isFor(const core::Op& op) const {
      return local_pin == op.local_pin && remote_pin == op.remote_pin;
    }
    std::shared_ptr<OpenGpu> gpu = {};
    CopyStream* stream = nullptr;
    CopyBatch* batch = nullptr;
    std::optional<Current> current = {};
  };

  // The functions below are called with the mutex held. move::Carrier describes the next two.
  void stop(move::Job& job) override { ready_.remove(job); }
  void progressUntil(Clock::time_point until) override;
  void progress();
  void launchAll();
  bool launchOne(GpuJob& job);
  void fill(GpuJob& job, Filling& filling);
  bool turnTo(GpuJob& job, const core::Op& op, Filling& filling);
  Status findPins(GpuJob& job, const core::Op& op, Aim& out) const;
  Status aimAt(GpuJob& job, const core::Op& op, Aim& out);
  void prepareHost(GpuJob& job, const std::shared_ptr<PinnedMemory>& host, Aim& aim) const;
  static bool addSmall(GpuJob& job, const Aim& aim, CopyBatch& batch);
  Status add(GpuJob& job, const core::Op& op, const Aim& aim, CopyBatch& batch) const;
  void collect();

  const std::shared_ptr<OpenGpus> gpus_;
  const std::shared_ptr<EndBell> bell_;
  const Duration poll_for_, grace_;
  const std::uint64_t register_most_;

  mutable std::mutex mutex_;
  move::JobTable jobs_;
  move::JobQueue ready_;  // jobs with ops left to launch; the next job in turn comes first
  std::vector<std::shared_ptr<OpenGpu>> used_;  // GPUs that have had a batch
  std::uint64_t births_ = 0;
  std::vector<std::shared_ptr<PinnedMemory>> stuck_pins_;  // withdrawn, and still used
  bool busy_ = false;
  bool waits_ = false;
  struct PinSlot {
    CopierPin pin = {};
    std::optional<Clock::time_point> leaving = {};  // when unpin() was first called
  };
  std::vector<PinSlot> slots_;
};

}  // namespace viaduct::cuda
