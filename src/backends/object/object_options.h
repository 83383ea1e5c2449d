// The backend's settings, resolved: the way to the store, and how requests use it. Threads: pure,
// except that the keys may come from a file.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <cstdint>

#include "s3/access.h"

namespace viaduct::object {

struct ObjectOptions {
  s3::Access access = {};
  std::uint64_t part = 0;  // bytes of one request
  std::uint32_t connections = 0, retries = 0;
  bool sign_bodies = false;
};
Result<ObjectOptions> resolveOptions(const Settings& settings);

}  // namespace viaduct::object
