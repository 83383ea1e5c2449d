// The variables that make NCCL, UCX and libfabric use the devices that this pod got. Threads: pure
// functions.
#pragma once

#include <string>
#include <vector>

#include "diag/pod_view.h"

namespace viaduct::diag {

struct AdvisedVariable {
  std::string name = {}, value = {};
  std::string reason = {};  // a sentence or two
  bool differs = false;     // the value differs between pods, so no manifest may contain it
};

// A variable that examples set, but that works best unset.
struct UnsetVariable {
  std::string name = {}, reason = {};
};

struct Advice {
  PodView pod = {};
  std::string devices = {};  // one line: the devices, and the source of that knowledge
  // The devices that the device plugin names and that are absent: without them a program may use
  // TCP. Empty: none.
  std::string absent = {};
  std::vector<std::string> remarks = {};  // for the user, to read before using the variables
  std::vector<AdvisedVariable> set = {};
  std::vector<UnsetVariable> unset = {};
};
Advice adviceFor(const Node& node);

}  // namespace viaduct::diag
