// Parts of nixlbench's command line for a real etcd. Threads: one.
#pragma once

#include <string>
#include <vector>

#include "app/program.h"

namespace viaduct::testing {

using Words = std::vector<std::string>;

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline Words operator+(Words one, const Words& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

// A usual command line, except for the sizes, and with a duration of a second.
inline const Words kManyDevices{"--backend",
                                "tcp",
                                "--benchmark_group",
                                "bg100000",
                                "--target_seg_type",
                                "DRAM",
                                "--initiator_seg_type",
                                "DRAM",
                                "--num_initiator_dev=8",
                                "--num_target_dev=8",
                                "--total_buffer_size=16777216",
                                "--start_block_size=65536",
                                "--max_block_size=131072",
                                "--num_iter=16",
                                "--warmup_iter=1",
                                "--mode=MG",
                                "--meet_timeout=20s"};

struct Nixlbench : Program {
  explicit Nixlbench(const Words& words, const Words& environment = {})
      : Program(words, environment, "/usr/local/bin/nixlbench") {}
};

// Two members of one run, both started before the test reads from either.
struct Pair {
  explicit Pair(const Words& words, const Words& environment = {})
      : one(words, environment), other(words, environment) {}
  // Expects that both end well, and that exactly one of them, rank 0, has printed the table.
  void expectOneRun();
  std::string said() const { return one.err() + other.err(); }
  std::string printed() const { return one.out() + other.out(); }
  Nixlbench one, other;
};

}  // namespace viaduct::testing
