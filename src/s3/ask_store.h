// One request to an object store, which blocks until the answer, for tests of the store itself.
// Threads: any.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <optional>
#include <string>

#include "s3/access.h"

namespace viaduct::s3 {

struct StoreAnswer {
  Answer answer = {};
  std::optional<Failure> failure = {};
  std::chrono::system_clock::time_point asked_at = {};
};
// Lists one object of a bucket, by a signed request; without a bucket, the buckets. Takes at most
// `limit`. An error: libcurl is not installed, or out of memory.
Result<StoreAnswer> askStore(const Access& access, const std::string& bucket,
                             std::chrono::milliseconds limit);

}  // namespace viaduct::s3
