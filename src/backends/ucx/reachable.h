// The memory that peers may reach by messages, by keys that nobody can guess. Threads: under the
// agent's lock.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/random.h"

namespace viaduct::ucx {

class Reachable {
 public:
  Result<std::uint64_t> add(std::uint64_t address, std::uint64_t bytes) {
    VIADUCT_TRY(const std::uint64_t key, base::secretNumber());
    memory_[key] = {address, bytes};
    return key;
  }
  void drop(std::uint64_t key) { memory_.erase(key); }
  // Null: the key opens nothing, or not all of that.
  std::byte* find(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) const {
    const auto found = memory_.find(key);
    if (found == memory_.end()) return nullptr;
    const auto& [start, room] = found->second;
    if (address < start || bytes > room || address - start > room - bytes) return nullptr;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a peer's number becomes memory here alone
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }

 private:
  struct Memory {
    std::uint64_t start = 0, room = 0;
  };
  std::unordered_map<std::uint64_t, Memory> memory_;
};

}  // namespace viaduct::ucx
