// A value that code reaches only with its lock held.
#pragma once

#include <mutex>
#include <utility>

namespace viaduct::base {

template <class T>
class Guarded {
 public:
  template <class F>
  decltype(auto) with(F&& use) {
    const std::lock_guard lock(mutex_);
    return std::forward<F>(use)(value_);
  }

 private:
  std::mutex mutex_;
  T value_{};
};

}  // namespace viaduct::base
