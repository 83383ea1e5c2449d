#include "agent/identity.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>
#include <mutex>

#include "agent/session/hello.h"
#include "base/random.h"

namespace viaduct::agent {
namespace {

std::atomic<std::uint64_t>& forks() {
  static std::atomic<std::uint64_t> count{0};
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
  static_cast<void>(registered);  // fails only without memory, and then the child is refused less
  return count;
}

Error bad(std::string_view what, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = fmt::format("settings: {}", what),
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
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

Status checkSettings(const Settings& settings) {
  if (settings.name.size() > kMaxNameBytes)
    return bad("name",
               fmt::format("{} bytes; the limit is {}", settings.name.size(), kMaxNameBytes),
               "choose a shorter name");
  if (settings.name.find('\0') != std::string::npos)
    return bad("name", "contains a NUL byte", "choose a printable name");
  if (settings.detect < std::chrono::milliseconds(20))
    return bad("detect", fmt::format("{} ms", settings.detect.count()),
               "20 ms is the least; 2000 ms is the default");
  if (settings.deadline <= std::chrono::milliseconds(0) ||
      settings.grace <= std::chrono::milliseconds(0))
    return bad("deadline, grace", "must be more than 0", "leave them at their defaults");
  if (settings.spin < std::chrono::microseconds(0))
    return bad("spin", "must not be negative", "0 sleeps at once");
  if (settings.sockets == 0 || settings.sockets > 64)
    return bad("sockets", fmt::format("{}", settings.sockets), "1 to 64 per rail and peer");
  if (settings.note_backlog == 0)
    return bad("note_backlog", "0 bytes would never let a note in", "64MiB is the default");
  return Ok{};
}

Error unknownBackend(std::string_view wanted, std::span<const core::BackendEntry> catalogue) {
  std::string names;
  for (const auto& entry : catalogue)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return {.code = Code::kNotFound,
          .operation = "settings: backends",
          .detail = fmt::format("no backend named {} is built in", wanted),
          .remedy = fmt::format("built in are: {}", names)};
}

}  // namespace viaduct::agent
