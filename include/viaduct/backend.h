// A way to move bytes, as an agent tells of it. Threads: plain values.
#pragma once

#include <viaduct/memory.h>

#include <string>
#include <vector>

namespace viaduct {

struct BackendInfo {
  std::string name = {};
  bool open = false;
  std::string text = {};  // open: what is in force, where there is something to tell; else why not
  // Of one that is open:
  int preference = 0;  // the lower is tried first
  std::vector<MemoryKind> memory = {};
  bool same_host = false, rdma = false, tcp = false;
  std::vector<std::string> rails = {};
};

}  // namespace viaduct
