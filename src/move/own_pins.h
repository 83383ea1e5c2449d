// Our memory that is registered with the domains of a fabric library. Threads: as BackendPins.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/backend.h"
#include "move/endpoint.h"
#include "move/pins.h"

namespace viaduct::move {

using Registrations = std::vector<std::unique_ptr<Registration>>;  // one per rail

struct OwnPin : PinnedRange {
  Registrations registered = {};
  MemoryAccess access = MemoryAccess::kReadWrite;
  core::RailMask near = core::kAllRails;
  core::Audience audience = core::Audience::everybody();  // who gets the keys

  bool usable() const {
    return std::all_of(registered.begin(), registered.end(),
                       [](const auto& one) { return one->usable(); });
  }
};
using OwnPins = BackendPins<OwnPin>;

}  // namespace viaduct::move
