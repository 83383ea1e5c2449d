#include "base/attempt.h"

#include <algorithm>

namespace viaduct::base {

constinit thread_local Attempt* Attempt::current_ = nullptr;

void Watchers::add(const std::shared_ptr<Watcher>& watcher) {
  if (list_.size() >= sweep_at_) {
    std::erase_if(list_, [](const auto& one) { return one.expired(); });
    sweep_at_ = std::max<std::size_t>(8, 2 * list_.size());
  }
  list_.push_back(watcher);
}

void Watchers::tellAll() {
  for (const auto& one : std::exchange(list_, {}))
    if (const auto watcher = one.lock()) watcher->changed();
}

}  // namespace viaduct::base
