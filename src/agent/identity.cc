#include "agent/identity.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <mutex>

#include "base/random.h"

namespace viaduct::agent {
namespace {

std::atomic<std::uint64_t>& forks() {
  static std::atomic<std::uint64_t> count{0};
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
  static_cast<void>(registered);  // fails only without memory, and then the child is refused less
  return count;
}

}  // namespace

std::uint64_t forkGeneration() { return forks().load(std::memory_order_relaxed); }

std::array<std::uint8_t, 16> processId() {
  static std::mutex lock;
  static std::array<std::uint8_t, 16> id{};
  static std::uint64_t made_for = ~std::uint64_t{0};
  const std::lock_guard held(lock);
  if (made_for != forkGeneration()) {
    // Without randomness the id stays what it was: two processes would then be taken for one, so
    // agents do not open (they need secrets as well).
    static_cast<void>(base::fillSecret(id));
    made_for = forkGeneration();
  }
  return id;
}

Error unknownBackend(std::string_view wanted, std::span<const core::BackendEntry> catalogue) {
  std::string names;
  for (const auto& entry : catalogue)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return {.code = Code::kNotFound,
          .operation = "settings: backends",
          .detail = fmt::format("no backend named {} is built in", wanted),
          .remedy = fmt::format("choose one of: {}", names)};
}

}  // namespace viaduct::agent
