// Maps the memory of GPUs that one peer in another process lends, and returns it. Threads: under
// the agent's lock.
#pragma once

#include <viaduct/memory.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda/copier.h"
#include "backends/cuda/share_message.h"
#include "base/fd.h"
#include "core/backend.h"
#include "cuda/driver_thread.h"

namespace viaduct::cuda {

class Borrower {
 public:
  // `pins` gets the mapped pins. The link owns `pins` and the borrower. `changed` lets waiting jobs
  // look at `pins` again.
  Borrower(std::shared_ptr<OpenGpus> gpus, std::shared_ptr<Copier> copier, core::LinkHost& host,
           CopierPins& pins, std::function<void()> changed)
      : gpus_(std::move(gpus)),
        copier_(std::move(copier)),
        host_(host),
        pins_(pins),
        changed_(std::move(changed)) {}

  // The peer has announced a pin, or dropped it.
  void announce(const PinInfo& info, const MemoryKey& key);
  void drop(std::uint32_t slot);
  // The way to copy between the two pins, "ipc" or "vmm". The memory is mapped for the first work
  // that needs it.
  std::optional<std::string_view> reaches(const PinnedMemory& local,
                                          std::uint32_t remote_pin) const;
  // Asks for the pins that these ops need and that are not mapped.
  void request(std::span<const core::Op> ops);

  Status receive(const MemoryOffer& offer, std::vector<core::Fd> fds);
  void receive(const MemoryRefused& refused);
  void receive(const MemoryRecalled& recalled);
  // Returns withdrawn memory that no batch uses any more to the peer.
  void giveBack();
  void close();
  // The reason of the last refusal to map a pin of the peer; empty: no refusal yet.
  const std::string& refusal() const { return refusal_; }

 private:
  struct LenderPin {
    PinInfo info = {};
    MemoryKey key = {};
    bool asked = false;
    std::vector<SharedRange> ranges = {};  // offered so far
    std::vector<core::Fd> fds = {};
  };
  struct LeavingPin {
    std::uint64_t number = 0;
    std::shared_ptr<PinnedMemory> memory = {};  // null: its mapping is closed, or is being closed
    EndNumber closing = 0;
  };
  LenderPin* find(std::uint64_t number);
  Status map(const LenderPin& one);
  std::shared_ptr<OpenGpu> gpuFor(const MemoryKey& key) const;
  void refuse(LenderPin& one, Error why);
  void say(MemoryReturned returned) { static_cast<void>(host_.send(encode(returned))); }
  void leave(const LenderPin& one);

  const std::shared_ptr<OpenGpus> gpus_;
  const std::shared_ptr<Copier> copier_;
  core::LinkHost& host_;
  CopierPins& pins_;
  const std::function<void()> changed_;
  std::map<std::uint32_t, LenderPin> announced_;  // by slot
  std::uint32_t not_asked_ = 0;                   // number of pins in announced_ not asked for
  std::vector<LeavingPin> leaving_;
  std::shared_ptr<const core::Fd> lifeline_;
  std::string refusal_;
};

}  // namespace viaduct::cuda
