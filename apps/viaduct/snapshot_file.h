// Reads and writes snapshots of nodes. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <string>
#include <vector>

#include "base/stop.h"
#include "diag/snapshot.h"

namespace viaduct::app {

// Writes a gzipped tar archive. Replaces the file only after a complete write.
Status writeSnapshot(const std::string& file, const std::vector<diag::SnapshotEntry>& entries);

// Unpacks an archive into an existing folder. Refuses entries outside of the folder or behind a
// link, hard links, devices, paths above 1000 bytes, and truncated archives. Takes at most 256 MiB
// and 100,000 entries. Ends early once `stop` is set.
Status unpackSnapshot(const std::string& file, const std::string& folder,
                      const base::StopFlag* stop = nullptr);

}  // namespace viaduct::app
