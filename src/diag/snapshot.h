// A node in one file, to be diagnosed elsewhere: the files that the checks look at, and what no
// file tells. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <string>
#include <vector>

#include "diag/node.h"

namespace viaduct::diag {

struct SnapshotEntry {
  std::string path = {};
  std::string text = {};    // of a file
  std::string target = {};  // of a link
  enum class Kind : std::uint8_t { kFile, kFolder, kLink } kind = Kind::kFile;
};

// All that the checks have looked at on this node, with the links on the way. Secrets are left out:
// of the environment only variables about transfers, without those that hold a password or token.
std::vector<SnapshotEntry> snapshotOf(const Node& node);

// The node in a folder. Only an unpacked snapshot has the environment and what no file tells.
Result<Node> nodeIn(const std::string& folder);

}  // namespace viaduct::diag
