// The memory that peers may reach by messages, by keys that nobody can guess. Threads: under the
// agent's lock.
#pragma once

#include <viaduct/result.h>

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
  // For who wants that access. Null: the key opens nothing, or not all of that.
  std::byte* find(std::uint64_t key, std::uint64_t address, std::uint64_t bytes,
                  MemoryAccess wanted) const {
    const auto found = memory_.find(key);
    if (found == memory_.end()) return nullptr;
    const auto& [start, room, allowed] = found->second;
    if (!move::inside(start, room, address, bytes)) return nullptr;
    if (wanted == MemoryAccess::kReadWrite && allowed != wanted) return nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a peer's number becomes memory here alone
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }

 private:
  std::unordered_map<std::uint64_t, move::MemoryRange> memory_;
};

}  // namespace viaduct::ucx
