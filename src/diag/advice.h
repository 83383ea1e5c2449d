// The variables that make NCCL, UCX and libfabric use what this pod was given. Threads: pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "diag/pod_view.h"

namespace viaduct::diag {

struct AdvisedVariable {
  std::string name = {}, value = {};
  std::string reason = {};  // a sentence or two
  bool differs = false;     // in each pod: it does not belong into a manifest
};

// A variable that examples set, and that is better left to the library.
struct UnsetVariable {
  std::string name = {}, reason = {};
};

struct Advice {
  PodView pod = {};
  std::string devices = {};               // one line: which devices, and how that is known
  std::vector<std::string> remarks = {};  // what to know before use
  std::vector<AdvisedVariable> set = {};
  std::vector<UnsetVariable> unset = {};
};
Advice adviceFor(const Node& node);

}  // namespace viaduct::diag
