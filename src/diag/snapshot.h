// A node in one file, for a diagnosis elsewhere: the files that the checks read, and the live
// facts. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

enum class SnapshotEntryKind : std::uint8_t { kFile, kFolder, kLink };
struct SnapshotEntry {
  std::string path = {};
  std::string text = {};    // contents of a file
  std::string target = {};  // target of a link
  SnapshotEntryKind kind = SnapshotEntryKind::kFile;
};

// Everything that the checks read on this node, with the links on the way. It has no secrets: of
// the environment it has only variables about transfers, without passwords and tokens.
std::vector<SnapshotEntry> snapshotOf(const Node& node);

// Opens a node's folder. Only an unpacked snapshot has the environment and the live facts.
Result<Node> nodeIn(const std::string& folder);

}  // namespace viaduct::diag
