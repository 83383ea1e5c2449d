// The live registrations: one generation per slot. The owner writes the table, and peers map it
// read-only. Threads: set and clear under the owner's lock; generation() by any, in any process.
#pragma once

#include <viaduct/result.h>

#include <atomic>
#include <cstdint>

#include "base/fd.h"
#include "base/shared_memory.h"

namespace viaduct::local {

// A quarter of a million slots. Unused pages of the table cost nothing.
inline constexpr std::uint32_t kSlots = 1U << 18U;

// More than any address space: this backend ignores a pin that claims more.
inline constexpr std::uint64_t kMostPinBytes = std::uint64_t{1} << 50U;

class LiveTable {
 public:
  // Makes the owner's table, sealed so that no other process can map it writable.
  static Result<LiveTable> make();
  static Result<LiveTable> map(const base::Fd& file);

  // 0: the slot has no registration.
  std::uint64_t generation(std::uint32_t slot) const {
    return slot < kSlots ? slots()[slot].load() : 0;
  }
  void set(std::uint32_t slot, std::uint64_t generation) { slots()[slot].store(generation); }
  void clear(std::uint32_t slot) { slots()[slot].store(0); }
  int fd() const { return memory_.fd(); }

 private:
  explicit LiveTable(base::SharedMemory memory) : memory_(std::move(memory)) {}
  std::atomic<std::uint64_t>* slots() const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_.data());
  }
  base::SharedMemory memory_;
};

}  // namespace viaduct::local
