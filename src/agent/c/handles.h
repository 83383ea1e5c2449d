// The handles of the C interface: numbers for objects. A closed number, or one that never was a
// handle, names nothing. Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/guarded.h"
#include "base/process_id.h"

namespace viaduct::agent::c {

// A number that no other handle of this process has, of any type. Never 0.
std::uint64_t freshHandle();

template <class T>
class Handles {
 public:
  // The table of this process. A fork()ed child gets its own, because a thread that the child lacks
  // may hold the locks of the parent's table.
  static Handles& ofThisProcess() {
    static std::atomic<Handles*> current{new Handles};
    Handles* found = current.load(std::memory_order_acquire);
    if (found->fork_generation_ == base::forkGeneration()) return *found;
    auto mine = std::make_unique<Handles>();
    // Never destroyed: a child must not close the parent's objects.
    if (current.compare_exchange_strong(found, mine.get())) return *mine.release();
    return *found;
  }

  std::uint64_t add(std::shared_ptr<T> object) {
    const std::uint64_t handle = freshHandle();
    shard(handle).with([&](auto& objects) { objects.emplace(handle, std::move(object)); });
    return handle;
  }
  // Null: there is no such handle.
  std::shared_ptr<T> find(std::uint64_t handle) {
    return shard(handle).with([&](auto& objects) {
      const auto found = objects.find(handle);
      return found == objects.end() ? nullptr : found->second;
    });
  }
  // Finds the object and closes the handle. If several threads call it, one gets the object.
  std::shared_ptr<T> take(std::uint64_t handle) {
    return shard(handle).with([&](auto& objects) {
      auto node = objects.extract(handle);
      return node.empty() ? nullptr : std::move(node.mapped());
    });
  }

 private:
  // Several locks, so that threads with different handles seldom wait for each other.
  using Shard = base::Guarded<std::unordered_map<std::uint64_t, std::shared_ptr<T>>>;
  Shard& shard(std::uint64_t handle) { return shards_[handle % shards_.size()]; }

  const std::uint64_t fork_generation_ = base::forkGeneration();
  std::array<Shard, 16> shards_;
};

}  // namespace viaduct::agent::c
