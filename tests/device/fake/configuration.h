// How the fake driver behaves, from the environment of its process. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::fakegpu {

struct Configuration {
  int devices = 2;                    // FAKE_CUDA_DEVICES
  int version = 13000;                // FAKE_CUDA_VERSION
  std::uint64_t memory = 8ULL << 30;  // FAKE_CUDA_MEMORY: bytes of each device
  std::uint64_t seed = 1;             // FAKE_CUDA_SEED: delays of streams
  bool peers = true;                  // FAKE_CUDA_PEERS: devices reach each other's memory
  bool virtual_memory = true;         // FAKE_CUDA_VMM: cuMemCreate and related calls
  bool fabric = false;                // FAKE_CUDA_FABRIC: fabric handles
  std::string faults = {};            // FAKE_CUDA_FAIL: faults.h

  static Configuration fromEnvironment();
};

// The parts of `text` between commas.
std::vector<std::string> listOf(const std::string& text);

}  // namespace viaduct::fakegpu
