// Snapshots of nodes as files. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "diag/snapshot.h"

namespace viaduct::app {

// Writes a gzipped tar archive; replaces the file only when all is written.
Status writeSnapshot(const std::string& file, const std::vector<diag::SnapshotEntry>& entries);

// Unpacks an archive into a folder that exists. An entry that would lie outside of it, a link among
// its folders, a device, or more than 256 MiB are errors; so is an archive that ends too early.
Status unpackSnapshot(const std::string& file, const std::string& folder);

}  // namespace viaduct::app
