// What really happened to the bytes of a transfer. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct {

// One rail's share.
struct PathShare {
  std::string backend = {};  // "local", "tcp", ...
  std::string way = {};      // how: "mapped", "cma", "direct", "socket"
  std::string rail = {};     // which NIC, queue or socket group
  std::uint64_t bytes = 0;
  std::uint64_t ops = 0;
  std::uint64_t injected = 0;  // orders to the NIC that held their bytes themselves
  std::uint64_t batches = 0;   // how often the NIC was told to begin; 0: this way does not count it
  friend bool operator==(const PathShare&, const PathShare&) = default;
};

struct Path {
  std::vector<PathShare> shares = {};
  std::string text() const;              // "local/mapped 1.0 MiB in 16 ops"
  void add(PathShare share);             // to the share of the same rail, if there is one
  Path since(const Path& before) const;  // what came after an earlier state of it
  friend bool operator==(const Path&, const Path&) = default;
};

}  // namespace viaduct
