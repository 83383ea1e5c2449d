// Objects that all places of this process at one server share, such as the thread that renews their
// names. Threads: any.
#pragma once

#include <fmt/format.h>
#include <unistd.h>
#include <viaduct/result.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace viaduct::meet {

template <class T>
class Shared {
 public:
  // The object of these options, as long as anybody holds it. `make` returns a
  // Result<std::shared_ptr<T>>. A child of fork() has none of its parent's threads, so it makes
  // objects of its own.
  template <class Make>
  Result<std::shared_ptr<T>> get(const std::string& options, Make&& make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    std::weak_ptr<T>& known = known_[fmt::format("{} {}", ::getpid(), options)];
    if (auto there = known.lock()) return there;
    VIADUCT_TRY(std::shared_ptr<T> made, make());
    known = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<T>> known_;
};

}  // namespace viaduct::meet
