// Facts of a node that no file shows: tests find them on the running machine, and a snapshot
// carries them as JSON. Threads: one at a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/node.h"

namespace viaduct::diag {

struct LiveOptions {
  // The time between two readings of the counters.
  std::chrono::milliseconds counting{200};
  // Names to resolve, besides those in the environment.
  std::vector<std::string> names = {};
  // Files, folders and block devices to open.
  std::vector<std::string> paths = {};
  // Buckets to ask an object store for; an empty name stands for all buckets.
  std::vector<std::string> buckets = {};
};
// Tests the running machine. Takes about `counting`, and up to 3 s more for each name that does not
// resolve, 5 s for a path and 10 s for a bucket that do not answer.
Live collectLive(const Tree& tree, const Variables& variables, const LiveOptions& options);

base::Json asJson(const Live& live);
Result<Live> liveFromJson(const base::Json& json);

}  // namespace viaduct::diag
