// A backend, as an agent describes it. Threads: plain values.
#pragma once

#include <viaduct/memory.h>

#include <string>
#include <vector>

namespace viaduct {

struct BackendInfo {
  std::string name = {};
  bool open = false;
  std::string text = {};  // open: its library and devices, if known; else why it is not open
  // Only for an open backend:
  int preference = 0;  // lower is tried first
  std::vector<MemoryKind> memory = {};
  bool same_host = false, rdma = false, tcp = false;
  std::vector<std::string> rails = {};
};

}  // namespace viaduct
