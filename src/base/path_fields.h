// The fields of a share of a path in messages. Threads: pure functions.
#pragma once

#include <viaduct/path.h>

#include <cstddef>

#include "base/fields.h"

namespace viaduct {

inline constexpr std::size_t kMaxShareText = 255;  // each text of a share

auto fields(base::Is<PathShare> auto& s) {
  return base::list(base::cutTo(kMaxShareText, s.backend), base::cutTo(kMaxShareText, s.way),
                    base::cutTo(kMaxShareText, s.rail), s.bytes, s.ops, s.injected, s.batches,
                    s.stage, s.by_kernel);
}

}  // namespace viaduct
