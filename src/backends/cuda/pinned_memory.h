// Memory that an agent has pinned, as all agents of this process see it. Threads: any.
#pragma once

#include <viaduct/memory.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fd.h"
#include "core/backend.h"
#include "cuda/memory.h"

namespace viaduct::cuda {

// Memory of a GPU, as core::DeviceMemory::open() has found it.
struct DeviceBuffer {
  std::shared_ptr<const Context> context = {};
  MemoryFacts facts = {};
  std::shared_ptr<const Allocation> allocation = {};  // null: the memory is the caller's
};

class HostRegistration;
class PeerMapping;

// Memory of a GPU that a peer in another process has lent.
struct Borrowed {
  // The peer takes its memory back when the last copy of this descriptor closes. So the descriptor
  // has to stay open longer than the mapping.
  std::shared_ptr<const base::Fd> lifeline = {};
  std::shared_ptr<const PeerMapping> mapping = {};  // null: the memory is this process's
  std::uint64_t shift = 0;                          // from the peer's addresses to ours
};

class PinnedMemory {
 public:
  PinnedMemory(const Segment& memory, std::shared_ptr<const DeviceBuffer> device_buffer)
      : address(memory.address),
        bytes(memory.bytes),
        writable(memory.access == MemoryAccess::kReadWrite),
        buffer(std::move(device_buffer)) {}

  const std::uint64_t address, bytes;
  const bool writable;
  const std::shared_ptr<const DeviceBuffer> buffer;  // null: host memory
  std::uint64_t number = 0;                          // set by publish()
  core::Audience audience = core::Audience::everybody();
  Borrowed borrowed = {};

  bool isDevice() const { return buffer != nullptr; }
  bool covers(std::uint64_t at, std::uint64_t length) const {
    return at >= address && length <= bytes && at - address <= bytes - length;
  }

  // Between enter() and leave() the owner keeps the memory. False: the owner has withdrawn it.
  bool enter() {
    users_.fetch_add(1);
    if (!withdrawn_.load()) return true;
    leave();
    return false;
  }
  void leave() { users_.fetch_sub(1); }
  // enter() fails from now on.
  void withdraw() { withdrawn_.store(true); }
  bool withdrawn() const { return withdrawn_.load(); }
  bool inUse() const { return users_.load() != 0; }

  // Host memory's registration with the driver. host_memory.h changes it.
  enum class RegistrationState : std::uint8_t { kNone, kPending, kDone, kForeign, kRefused };
  std::atomic<RegistrationState> registration{RegistrationState::kNone};
  // Set before `registration` becomes kDone. Changes only after the memory is withdrawn and unused,
  // so that a user may read it between enter() and leave().
  std::shared_ptr<const HostRegistration> registered;

 private:
  // Both are sequentially consistent, so that an entering thread sees the withdrawal, or the
  // withdrawing owner sees the thread.
  std::atomic<std::uint32_t> users_{0};
  std::atomic<bool> withdrawn_{false};
};

// While it lives, its user may access the memory, and a withdrawal waits. False: the memory is
// withdrawn already.
class PinUse {
 public:
  explicit PinUse(PinnedMemory& memory) : memory_(memory), entered_(memory.enter()) {}
  ~PinUse() {
    if (entered_) memory_.leave();
  }
  PinUse(const PinUse&) = delete;
  PinUse& operator=(const PinUse&) = delete;
  explicit operator bool() const { return entered_; }

 private:
  PinnedMemory& memory_;
  const bool entered_;
};

// The pins of all agents of this process by number, so that agents of one process find each
// other's. publish() gives the pin its number, which the key of the pin contains.
void publish(const std::shared_ptr<PinnedMemory>& memory);
void retract(const PinnedMemory& memory);
std::shared_ptr<PinnedMemory> findPinned(std::uint64_t number);

}  // namespace viaduct::cuda
