// Values that stay until the process ends, because a device or another process may still use their
// memory. Threads: any.
#pragma once

#include <type_traits>
#include <utility>
#include <vector>

#include "base/guarded.h"

namespace viaduct::base {

// A list has them, so that LeakSanitizer does not report them.
template <class T>
void keepForever(T&& value) {
  using Kept = std::vector<std::decay_t<T>>;
  static auto& all = *new Guarded<Kept>();
  all.with([&](Kept& kept) { kept.push_back(std::forward<T>(value)); });
}

}  // namespace viaduct::base
