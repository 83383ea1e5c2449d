// A value that code reaches only with its lock held.
#pragma once

#include <utility>

#include "base/mutex.h"

namespace viaduct::base {

template <class T>
class Guarded {
 public:
  template <class F>
  decltype(auto) with(F&& use) {
    const Lock lock(mutex_);
    return std::forward<F>(use)(value_);
  }

 private:
  Mutex mutex_;
  T value_ VIADUCT_GUARDED_BY(mutex_) = {};
};

}  // namespace viaduct::base
