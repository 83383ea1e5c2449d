#include "base/process_id.h"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "base/random.h"

namespace viaduct::base {
namespace {

std::atomic<std::uint64_t>& forks() {
  static std::atomic<std::uint64_t> count{0};
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
  static_cast<void>(registered);  // fails only without memory; then forks go unnoticed
  return count;
}

}  // namespace

std::uint64_t forkGeneration() { return forks().load(std::memory_order_relaxed); }

ProcessId processId() {
  static std::mutex lock;
  static ProcessId id{};
  static std::uint64_t made_for = ~std::uint64_t{0};
  const std::lock_guard held(lock);
  if (made_for != forkGeneration()) {
    // Without randomness the id stays the same, and two processes would be taken for one. Agents do
    // not open then, because they need random secrets as well.
    static_cast<void>(fillSecret(id));
    made_for = forkGeneration();
  }
  return id;
}

}  // namespace viaduct::base
