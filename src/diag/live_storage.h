// Tests of paths and object stores on the running machine. Threads: one at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "diag/node.h"
#include "s3/ask_store.h"

namespace viaduct::diag {

// Opens a file, folder or block device, and tries O_DIRECT there. No file is left behind.
PathFacts lookAtPath(const std::string& path);

// Asks the store of this process's settings for each bucket.
std::vector<StoreFacts> lookAtStores(const std::vector<std::string>& buckets);
// Asks the store that `settings` name for one bucket.
StoreFacts lookAtStore(const Settings& settings, const std::string& bucket);

}  // namespace viaduct::diag
