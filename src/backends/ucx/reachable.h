// The memory that peers may reach by messages. Each piece has a random, secret key. Threads: find()
// and drop() are those of the context's rail; all else under the agent's lock.
#pragma once

#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/random.h"
#include "move/endpoint.h"
#include "move/pins.h"

namespace viaduct::ucx {

class Reachable {
 public:
  Result<std::uint64_t> add(const move::MemoryRange& range) {
    VIADUCT_TRY(const std::uint64_t key, base::secretNumber());
    memory_[key] = range;
    return key;
  }
  void drop(std::uint64_t key) { memory_.erase(key); }
  bool has(std::uint64_t key) const { return memory_.contains(key); }
  // The pointer to these bytes. Null: the key is unknown, or does not allow this access to all of
  // them.
  std::byte* find(std::uint64_t key, std::uint64_t address, std::uint64_t bytes,
                  OpKind wanted) const {
    const auto found = memory_.find(key);
    if (found == memory_.end()) return nullptr;
    const move::MemoryRange& memory = found->second;
    if (!move::inside(memory.address, memory.bytes, address, bytes)) return nullptr;
    if (!(wanted == OpKind::kWrite ? memory.remote_write : memory.remote_read)) return nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only here a peer's address becomes a pointer
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }

 private:
  std::unordered_map<std::uint64_t, move::MemoryRange> memory_;
};

}  // namespace viaduct::ucx
